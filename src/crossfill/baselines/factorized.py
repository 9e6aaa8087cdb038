"""PF, parameter space factorization: the method of the paper, with a low-rank or a diagonal covariance."""

from crossfill.baselines.method import Method
from crossfill.model import FactorizedHeads

METHODS = (
    Method("pf-lr", "factorised, low-rank covariance", FactorizedHeads),
    Method("pf-d", "factorised, diagonal covariance", FactorizedHeads),
)
