"""How far a run is, on standard error: bars in a terminal, plain lines in CI and pipes.

Both are a :class:`httpmark.harness.model.progress.Events`.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from httpmark.harness.command import printing
from httpmark.harness.http import masking
from httpmark.harness.http.printable import one_line

_PLAIN_EVERY_S = 10.0
_BAR_COLUMNS = 20


class PlainLines:
    """A line per task when it is done, and every ten seconds until then."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[int, int, float]] = {}  # done, total, when a line was printed

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, line: str) -> None:
        printing.echo(one_line(masking.text(line)), err=True)

    def task(self, name: str, total: int) -> None:
        self._tasks[name] = (0, total, time.monotonic())

    def advance(self, name: str, by: int) -> None:
        done, total, printed = self._tasks[name]
        done = min(done + by, total)
        if time.monotonic() - printed >= _PLAIN_EVERY_S:
            printed = time.monotonic()
            self.say(f"{name}: {done} of {total}")
        self._tasks[name] = (done, total, printed)

    def done(self, name: str, result: str) -> None:
        self.say(f"{name}: {result}")


class Bars:
    """A progress bar per task, and a line when it is done."""

    def __init__(self) -> None:
        import rich.console
        import rich.progress
        import rich.table

        # A long name gives way: how far it is must be seen whole.
        name = rich.table.Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._progress = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", table_column=name),
            rich.progress.BarColumn(bar_width=_BAR_COLUMNS),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            console=rich.console.Console(stderr=True),
            transient=True,
            expand=True,
        )
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._progress.stop()

    def say(self, line: str) -> None:
        told = one_line(masking.text(line))
        self._progress.console.print(told, markup=False, highlight=False)

    def task(self, name: str, total: int) -> None:
        # A task that is begun once more starts again in its place.
        if name in self._tasks:
            self._progress.remove_task(self._tasks.pop(name))
        self._tasks[name] = self._progress.add_task(name, total=total)

    def advance(self, name: str, by: int) -> None:
        self._progress.advance(self._tasks[name], by)

    def done(self, name: str, result: str) -> None:
        self._progress.remove_task(self._tasks.pop(name))
        self.say(f"{name}: {result}")


def display() -> PlainLines | Bars:
    """Bars where standard error is a terminal and the variable ``CI`` is not set."""
    is_plain = not sys.stderr.isatty() or bool(os.environ.get("CI"))
    return PlainLines() if is_plain else Bars()
