"""Executor on Ray: a cluster, or a Ray instance on this machine. Ray itself replaces lost workers.

Every machine needs the data, the cache and the RUN folder under the same path; results come back through Ray and are
written by the machine that runs the study.
"""

import logging
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from crossfill.errors import StudyError
from crossfill.studies.executors.base import RETRIES, Event, Executor, Failed, Started, attempt, ended, shares
from crossfill.studies.plan import Job
from crossfill.studies.study import ExecutionSettings


class RayExecutor(Executor):
    """Runs jobs as Ray tasks."""

    def __init__(self, settings: ExecutionSettings) -> None:
        try:
            ray: Any = import_module("ray")
        except ModuleNotFoundError:
            raise StudyError("the ray executor needs Ray; install it with: pip install 'crossfill[ray]'") from None
        self.ray, self.settings = ray, settings
        if not ray.is_initialized():
            local = {"include_dashboard": False, "num_cpus": settings.jobs * settings.threads or None}
            try:
                ray.init(
                    address=settings.address,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **({} if settings.address else local),
                )
            except ConnectionError as error:
                raise StudyError(f"expected a Ray cluster at {settings.address}; {error}") from None

    @property
    def slots(self) -> int:
        found = self.ray.cluster_resources()
        cores = int(found.get("CPU", 1)) // self.settings.threads
        places = min(cores, self.settings.jobs or cores)
        if self.settings.gpus:
            places = min(places, shares(found.get("GPU", 0), self.settings.gpus))
        return max(1, places)

    def run(self, jobs: Sequence[Job], run: Path) -> Iterator[Event]:
        resources: dict[str, Any] = {"num_cpus": self.settings.threads, "num_gpus": self.settings.gpus}
        task = self.ray.remote(**resources, max_retries=RETRIES)(attempt)
        waiting, running = list(reversed(jobs)), {}
        try:
            while waiting or running:
                while waiting and len(running) < self.slots:
                    job = waiting.pop()
                    running[task.remote(job.as_dict(), str(run.absolute()), self.settings.threads)] = job.id
                    yield Started(job.id)
                for reference in self.ray.wait(list(running), num_returns=1)[0]:
                    job_id = running.pop(reference)
                    try:
                        yield ended(job_id, self.ray.get(reference))
                    except self.ray.exceptions.RayError as error:
                        yield Failed(job_id, f"its worker was lost {RETRIES + 1} times", str(error))
        finally:
            for reference in running:
                self.ray.cancel(reference, force=True)
