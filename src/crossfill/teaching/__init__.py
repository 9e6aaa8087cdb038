"""Corrected sentences → a journal on disk → a cell that learns from them while it is served."""
