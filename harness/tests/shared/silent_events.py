"""Progress that goes nowhere, for sessions that tests start."""

from __future__ import annotations


class SilentEvents:
    """:class:`httpmark.harness.model.progress.Events` that nobody hears."""

    def say(self, line: str) -> None: ...

    def task(self, name: str, total: int) -> None: ...

    def advance(self, name: str, by: int) -> None: ...

    def done(self, name: str, result: str) -> None: ...
