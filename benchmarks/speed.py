"""The speed of a core, which measurements on different machines are compared by."""

import time

import numpy as np


def machine_speed() -> float:
    """Floating-point operations per second of one core, measured on a matrix product that runs in one thread."""
    size, rounds = 96, 0
    a = np.random.default_rng(0).random((size, size), dtype=np.float32)
    np.matmul(a, a)
    started = time.thread_time()  # processor time, not wall time: the machine may be shared
    while time.thread_time() - started < 0.1:
        np.matmul(a, a)
        rounds += 1
    return 2 * size**3 * rounds / (time.thread_time() - started)
