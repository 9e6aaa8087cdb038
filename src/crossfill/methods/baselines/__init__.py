"""Baselines for parameter space factorization: the paper's four, and variants of the joint one."""
