"""Runs: train, evaluate, compare."""
