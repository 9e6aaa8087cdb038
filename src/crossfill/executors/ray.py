"""Executor on Ray: a cluster, or a Ray instance on this machine. Ray itself replaces lost workers.

Every machine needs what a job names (data, cache, model and output folders) under the same path; results come back
through Ray to the machine that gave out the jobs.
"""

import logging
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from crossfill.errors import ConfigError, first_line, missing_package
from crossfill.executors import worker_jobs
from crossfill.executors.worker_jobs import Advanced, Failed, JobQueue


class RayExecutor(worker_jobs.Executor):
    """Runs jobs as Ray tasks."""

    def __init__(self, settings: worker_jobs.ExecutionSettings) -> None:
        try:
            ray: Any = import_module("ray")
        except ModuleNotFoundError:
            raise ConfigError(missing_package("Ray for the ray executor", "ray")) from None
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
                raise ConfigError(f"expected a Ray cluster at {settings.address}; {error}") from None
            except Exception as error:  # Ray has no class of its own for a start that takes too long
                problem = f"expected Ray to start on this machine; {first_line(error)}; run again, or use local"
                raise ConfigError(problem) from None

    def run(self, jobs: Mapping[str, worker_jobs.WorkerJob]) -> Iterator[worker_jobs.Event]:
        resources: dict[str, Any] = {"num_cpus": self.settings.threads, "num_gpus": self.settings.gpus}
        task = self.ray.remote(**resources)(worker_jobs.attempt)
        queue, running = JobQueue(jobs), {}
        try:
            while queue.ready or running:
                while queue.ready and len(running) < self._slots():
                    name = queue.take()
                    running[task.remote(name, jobs[name].work, self.settings.threads)] = name
                    yield Advanced(name)
                for reference in self.ray.wait(list(running), num_returns=1)[0]:
                    name = running.pop(reference)
                    try:
                        event = self.ray.get(reference)
                    except self.ray.exceptions.RayError as error:
                        event = Failed(name, "its worker was lost several times", str(error))
                    yield from queue.end(event)
        finally:
            for reference in running:
                self.ray.cancel(reference, force=True)

    def _slots(self) -> int:
        resources = self.ray.cluster_resources()
        cores = int(resources.get("CPU", 1)) // self.settings.threads
        places = min(cores, self.settings.jobs or cores)
        if self.settings.gpus:
            places = min(places, worker_jobs.shares(resources.get("GPU", 0), self.settings.gpus))
        return max(1, places)
