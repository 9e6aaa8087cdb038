"""Work on more text than one process should do: shards of files, on local processes or Ray."""
