"""The first screen as data: order, ranks, axes and bars."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.report import overview, scoreboard
from httpmark.harness.tests.shared.made_run import (
    FEW,
    OCTET_FAMILIES,
    load_result,
    made_run,
    small_run,
    with_server,
)


def test_ties_are_marked() -> None:
    run = small_run()
    for name, rank in (("reference", 1), ("go_net_http", 2), ("rust_hyper", 2)):
        run = with_server(run, name, load=(load_result(300.0 * rank, rank=rank),))
    cells = overview.columns(run)[0].cells
    assert [cells[name].rank for name in FEW] == ["1", None, "=2", "=2"]


def test_positions_on_an_axis_keep_the_order_of_costs() -> None:
    column = overview.columns(made_run(only=OCTET_FAMILIES))[0]
    xs = [column.cells[name].x for name in column.order]
    assert None not in xs
    assert xs == sorted(x for x in xs if x is not None)
    assert xs[0] == 0, "the axis begins at null"
    for name in column.order:
        cell = column.cells[name]
        assert cell.low is not None
        assert cell.high is not None
        assert cell.x is not None
        assert cell.low <= cell.x <= cell.high <= 100


def test_a_server_cheaper_than_null_stands_left_of_it() -> None:
    run = with_server(small_run(), "rust_hyper", load=(load_result(20.0),))
    column = overview.columns(run)[0]
    assert column.cells["rust_hyper"].x == 0
    null_x = column.cells["null"].x
    assert null_x is not None
    assert null_x > 0
    assert (null_x, "1×") in column.axis.ticks if column.axis else False


def test_a_stacked_bar_fills_its_width_and_hides_nothing() -> None:
    for row in overview.rows(made_run(only=OCTET_FAMILIES)):
        for family in row.families.values():
            pieces = overview.parts(family)
            assert sum(piece.count for piece in pieces) == family.requests + family.void
            assert sum(piece.width for piece in pieces) == pytest.approx(100, abs=0.1)
            assert all(piece.width > 1 for piece in pieces)


def test_servers_with_one_parser_stand_together_where_the_best_of_them_stands() -> None:
    run = made_run(("reference", "nginx", "go_net_http"))
    first = [row.server.name for row in overview.rows(run) if row.state == "scored"]
    best, last = first[0], first[-1]
    servers = tuple(
        msgspec.structs.replace(one, engine=best) if one.name == last else one
        for one in run.servers
    )
    rows = overview.rows(msgspec.structs.replace(run, servers=servers))
    together = [row.server.name for row in rows if row.state == "scored"]
    assert together == [best, last, *first[1:-1]]
    text = scoreboard.scoreboard(msgspec.structs.replace(run, servers=servers))
    assert f"HTTP parser of {best}: {last}" in text
    assert "HTTP parser of" not in scoreboard.scoreboard(run)
