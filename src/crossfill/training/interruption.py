"""Ctrl-C and SIGTERM while a model trains: finish the step, write a checkpoint, then stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crossfill.errors import TrainingError


class InterruptedTraining(TrainingError):  # noqa: N818 - nothing went wrong
    """Training was stopped by Ctrl-C or SIGTERM; the run can be resumed."""

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(f"{folder}: interrupted at step {step}; train with the same settings and --resume to go on")
        self.folder, self.step = folder, step


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does, outside of training steps, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stoppable(wanted: bool = True) -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, instead of ending the process at once; a second Ctrl-C does end it.

    Only the main thread can take signals; in others, and where nothing is `wanted`, the event is never set.
    """
    stop = threading.Event()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for which in before:
        signal.signal(which, handle)
    try:
        yield stop
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
