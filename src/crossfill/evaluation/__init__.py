"""Scores of every cell of a grid."""
