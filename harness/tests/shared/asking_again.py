"""What tests asked again. No retry may hide a wrong answer: each is counted and told at the end."""

from __future__ import annotations

import threading


class AskedAgain:
    """What was asked again in this process, a line each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[str] = []

    def note(self, what: str, why: str) -> None:
        """Note that ``what`` was asked again, and why."""
        with self._lock:
            self._lines.append(f"{what}: {why}")

    def taken(self) -> list[str]:
        """What was noted since the last call. Call it in the process that ran the test."""
        with self._lock:
            lines, self._lines = self._lines, []
        return lines


asked_again = AskedAgain()
