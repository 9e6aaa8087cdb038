"""The main interface: train, load, tag, save."""
