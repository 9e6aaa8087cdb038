"""The methods: parameter space factorization and its baselines."""
