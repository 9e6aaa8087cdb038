"""Multilingual encoders: one feature vector per word."""
