"""What parameter space factorization is compared with: the paper's four baselines, and variants of the joint one."""
