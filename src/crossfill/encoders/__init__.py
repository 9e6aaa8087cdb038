"""Multilingual networks under the heads: one vector per word."""
