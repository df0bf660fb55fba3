"""A server that is started again where it went away, or where it has to be fresh."""

from __future__ import annotations

import time
from collections.abc import Callable

from httpmark.harness.http.printable import one_line
from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers import open_connections
from httpmark.harness.servers.running import Running

_WORDS_MAX = 10  # lines
_WORD_CHARACTERS_MAX = 200
_AGAIN_S = 0.5  # between two tries to start


class Restartable:
    """A server that was started, and can be started again in the same way at the same place.

    :param begin: starts it, and returns when it answers.
    """

    def __init__(self, begin: Callable[[], Running]) -> None:
        self._begin = begin
        self.now = begin()
        self.starts = 1

    def death(self) -> str | None:
        """How its process ended; None while it lives."""
        return None if self.now.alive() else f"died: {self.now.exit_reason()}"

    def ending(self) -> str:
        """The same in short, without what it wrote: exit code or signal."""
        return self.now.ending()

    def last_words(self) -> tuple[str, ...]:
        """The last lines that it wrote, safe to print. They are its own words, not ours."""
        lines = [one_line(line).rstrip() for line in self.now.log_tail().splitlines()]
        spoken = [line[:_WORD_CHARACTERS_MAX] for line in lines if line.strip()]
        return tuple(spoken[-_WORDS_MAX:])

    def stop(self) -> None:
        self.now.stop()

    def restart(self, *, patience_s: float = open_connections.KEPT_S) -> None:
        """Stop it, if it still runs, and start it afresh.

        :param patience_s: how long to try, where its port is kept by closed connections.
        :raises Unusable: it does not start again.
        """
        self.now.stop()
        end = time.monotonic() + patience_s
        while True:
            self.starts += 1
            try:
                self.now = self._begin()
                return
            except Unusable:
                if time.monotonic() >= end:
                    raise
            time.sleep(_AGAIN_S)
