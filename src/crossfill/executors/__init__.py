"""Executors, which run jobs: local processes, or Ray."""
