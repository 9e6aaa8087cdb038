"""The methods: parameter space factorization, and what it is compared with."""
