"""One file per figure; reads results only, never torch."""
