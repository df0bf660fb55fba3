"""The scoreboard: plain text that fits."""

from __future__ import annotations

import string

import msgspec
import pytest

from httpmark.harness.model.exchanges import Doubt
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.model.verdicts import Compliance
from httpmark.harness.report import scoreboard
from httpmark.harness.tests.shared.made_run import (
    OCTET_FAMILIES,
    load_result,
    made_run,
    rfc_suite,
    with_server,
)


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


def test_ranks_say_which_musts_stand_behind_them() -> None:
    run = made_run(only=OCTET_FAMILIES)
    told = "the MUSTs of rfc were not checked"
    for suites, said in (
        ((), "conformance: no suite ran;"),
        (("seed",), "conformance: only seed ran;"),
    ):
        board = scoreboard.scoreboard(msgspec.structs.replace(run, suites=suites))
        (line,) = (line for line in board.splitlines() if told in line)
        assert line.startswith(said)
    asked = scoreboard.scoreboard(msgspec.structs.replace(run, suites=("seed", "rfc")))
    assert told not in asked
    unloaded = tuple(msgspec.structs.replace(server, load=()) for server in run.servers)
    nothing = msgspec.structs.replace(run, suites=("seed",), servers=unloaded)
    assert told not in scoreboard.scoreboard(nothing)


def test_one_reason_for_both_ranks_is_said_once() -> None:
    why = "not ranked: 3 MUSTs failed"
    result = msgspec.structs.replace(
        load_result(300.0), cost_rank=None, cost_rank_reason=why, ranked=False, ranked_reason=why
    )
    board = scoreboard.scoreboard(
        with_server(made_run(only=OCTET_FAMILIES), "go_net_http", load=(result,))
    )
    assert "  go_net_http: not ranked: 3 MUSTs failed" in board.splitlines()
    assert "3.33 M server" in board
    assert ">= 3.33 M" not in board


def test_windows_that_were_taken_again_are_counted_under_the_table() -> None:
    result = msgspec.structs.replace(load_result(100.0), redone=4)
    run = with_server(made_run(only=OCTET_FAMILIES), "go_net_http", load=(result,))
    assert "go_net_http: 4 samples lacked CPU time and were repeated" in scoreboard.scoreboard(run)


def test_what_was_asked_again_is_counted_by_reason_in_one_line() -> None:
    suite = msgspec.structs.replace(
        rfc_suite("nginx"), asked_again={Doubt.RESET: 2, Doubt.FAILED: 1200}
    )
    run = made_run(only=OCTET_FAMILIES)
    run = with_server(run, "nginx", compliance=Compliance({"rfc": suite}))
    (line,) = (one for one in scoreboard.scoreboard(run).splitlines() if "asked again" in one)
    assert line == "  nginx: cases asked again: 1,202, of which 1,200 failed, 2 ended in a reset"


def test_a_ratio_beside_two_costs_that_do_not_divide_to_it_says_so() -> None:
    told = "x null is typical of samples in one block; it is not ns/req divided by that of null"

    def lines(over_null: float) -> str:
        run = with_server(
            made_run(("null", "nginx"), only=OCTET_FAMILIES),
            "nginx",
            load=(load_result(100.0, over_null=over_null),),
        )
        return " ".join(scoreboard.scoreboard(run).split())

    assert told in lines(2.6)
    assert told not in lines(100.0 / 34.6)
    without_null = with_server(
        made_run(("nginx",), only=OCTET_FAMILIES),
        "nginx",
        load=(load_result(100.0, over_null=2.6),),
    )
    assert told not in " ".join(scoreboard.scoreboard(without_null).split())


def test_the_path_that_was_requested_is_told_where_it_is_not_the_usual_one() -> None:
    def board(path: str | None, runtime: str = "process") -> str:
        result = msgspec.structs.replace(load_result(100.0), path=path)
        run = with_server(
            made_run(only=OCTET_FAMILIES), "go_net_http", load=(result,), runtime=runtime
        )
        return scoreboard.scoreboard(run)

    assert "  go_net_http: requested: GET /health" in board("/health")
    assert "  go_net_http: requested: GET /hello" in board("/hello", "address")
    assert "requested" not in board("/hello")
    assert "requested" not in board(None)
