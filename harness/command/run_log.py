"""What a run tells its caller, its log file and its result."""

from __future__ import annotations

import contextlib
from pathlib import Path

from httpmark.harness.http import masking
from httpmark.harness.model import run_folder
from httpmark.harness.model.progress import Events


class RunLog:
    """Progress for the caller, with a line in the run's log for all that is said.

    ``notes`` are kept in the result: they belong to the figures.
    """

    def __init__(self, events: Events, folder: Path) -> None:
        self.events = events
        self.notes: list[str] = []
        self._file = folder / run_folder.LOG

    def say(self, line: str) -> None:
        """Tell the caller, and the log."""
        self._write(line)
        self.events.say(line)

    def note(self, text: str) -> None:
        """Say it now, and keep it in the result, once."""
        self.keep(text)
        self.say(text)

    def keep(self, text: str) -> None:
        """Keep it in the result, once."""
        if text not in self.notes:
            self.notes.append(text)

    def done(self, task: str, result: str) -> None:
        """End a task with its result."""
        self._write(f"{task}: {result}")
        self.events.done(task, result)

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError), self._file.open("a", encoding="utf-8") as log:
            log.write(f"{run_folder.now()} {masking.text(line)}\n")
