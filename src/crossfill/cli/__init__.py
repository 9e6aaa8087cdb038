"""The command line: one file per command, each importing what it needs when it is called."""
