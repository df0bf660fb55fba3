"""What a task on a worker tells its caller, and hears from it. All here runs on the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HEARD: dict[str, Any] = {}
"""What callers said, by the key of who it is said to."""


def tell(said: Mapping[str, Any]) -> None:
    """Say something to the tasks of this worker, by their keys; others do not hear it."""
    _HEARD.update(said)


class WorkerTask:
    """The task of Dask that is carried out at the moment."""

    def __init__(self, topic: str) -> None:
        import distributed

        self._worker = distributed.get_worker()
        self._task = self._worker.get_current_task()
        self._topic = topic

    @property
    def address(self) -> str:
        """That of the worker."""
        return str(self._worker.address)

    @property
    def folder(self) -> str:
        """Where the worker keeps files."""
        return str(self._worker.local_directory)

    @property
    def is_wanted(self) -> bool:
        """Whether anybody still waits for what comes of it."""
        task = self._worker.state.tasks.get(self._task)
        alive = self._worker.status.name == "running"
        return alive and task is not None and task.state == "executing"

    def say(self, what: Any) -> None:
        """Tell who listens to the topic."""
        self._worker.log_event(self._topic, what)


def heard(key: str) -> Any:
    """The last that was said to a key and not yet heard; None: nothing."""
    return _HEARD.pop(key, None)
