"""The scoreboard: plain text that fits."""

from __future__ import annotations

import string

import pytest

from httpmark.harness import scoreboard
from httpmark.harness.model import Bottleneck

from .made_run import OCTET_FAMILIES, load_result, made_run, with_server


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_of_the_scoreboard_is_too_long(width: int) -> None:
    run = with_server(made_run(only=OCTET_FAMILIES), "ring", name="http-" + "x" * 60)
    run = with_server(
        run,
        "go_net_http",
        memory=None,
        memory_reason="not measured because " + "of this " * 40,
        load=(load_result(99_999_999.0, bottleneck=Bottleneck.STARVED, over_null=2_890_173.0),),
    )
    board = scoreboard.scoreboard(run, width=width)
    assert max(map(len, board.splitlines())) <= width
    assert all(line == line.rstrip() for line in board.splitlines())
    assert set(board) <= set(string.printable)
