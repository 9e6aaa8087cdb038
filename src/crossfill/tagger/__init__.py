"""The front door: train, load, tag, save."""
