"""The last line of a server's log, which messages quote."""

from __future__ import annotations

import pytest

from httpmark.harness.servers.running import last_line


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", ""),
        ("one\ntwo\n \n", "two"),
        ("one\n\x1b[0m\x07\n", "[0m"),
        ("one\n\x1b\x07\n", "one"),
        ("\x1b]0;owned\x07 bye \u202e", "]0;owned  bye"),
    ],
)
def test_the_last_line_of_a_log_can_be_printed(log: str, told: str) -> None:
    assert last_line(log) == told
