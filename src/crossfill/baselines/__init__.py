"""The methods to compare, each one a way to make a cell's head."""
