"""Minimising a smooth convex function by its gradients: L-BFGS with backtracking.

PyTorch's own needs a second and a half before its first step, as its optimisers load the compiler.
"""

from collections import deque
from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

Slope = Callable[[Float[Tensor, "size"]], tuple[float, Float[Tensor, "size"]]]
"""The value and the gradient of a function at a point."""
MEMORY = 10
"""Pairs of steps and changes of the gradient that the curvature is taken from."""


def descend(
    slope: Slope, start: Float[Tensor, "size"], first: Float[Tensor, "size"], steps: int, tolerance: float
) -> Float[Tensor, "size"]:
    """A point near the minimum, from a start and a first step that points downhill.

    It stops when a step promises less than `tolerance` of decrease, as a share of the value.
    """
    point, (value, gradient) = start, slope(start)
    step, pairs = first, deque[tuple[Tensor, Tensor, float]](maxlen=MEMORY)
    for _ in range(steps):
        promise = -float(gradient @ step)
        if not promise > tolerance * (1 + abs(value)):
            break
        size, (found, new) = 1.0, slope(point + step)
        while found > value - 1e-4 * size * promise and size > 1e-4:
            # the minimum of the parabola through both values and the slope, within bounds
            size *= min(0.5, max(0.1, 0.5 * size * promise / (found - value + size * promise)))
            found, new = slope(point + size * step)
        if found >= value:
            break
        moved, changed = size * step, new - gradient
        along = float(moved @ changed)
        if along > 0:
            pairs.append((moved, changed, along))
        point, value, gradient = point + moved, found, new
        step = -_inverse_hessian_product(gradient, pairs)
    return point


def _inverse_hessian_product(
    gradient: Float[Tensor, "size"], pairs: deque[tuple[Tensor, Tensor, float]]
) -> Float[Tensor, "size"]:
    """The gradient times an estimate of the inverse Hessian: the two loops of L-BFGS."""
    found, shares = gradient.clone(), []
    for moved, changed, along in reversed(pairs):
        share = float(moved @ found) / along
        shares.append(share)
        found.add_(changed, alpha=-share)
    if pairs:
        _, changed, along = pairs[-1]
        found.mul_(along / float(changed @ changed))
    for (moved, changed, along), share in zip(pairs, reversed(shares), strict=True):
        found.add_(moved, alpha=share - float(changed @ found) / along)
    return found
