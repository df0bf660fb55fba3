"""Files for charting services: single figures, each with its unit, of which less is better."""

from __future__ import annotations

import json

import msgspec

from httpmark.harness.gate import charts
from httpmark.harness.model.load import Cost
from httpmark.harness.tests.shared.made_findings import CONTROLS_FAIL, MUST_FAILS, run_of
from httpmark.harness.tests.shared.made_run import made_run, with_server


def test_both_files_say_the_same_figures() -> None:
    run = made_run(("reference", "go_net_http", "null"))
    listed = json.loads(charts.github_action_benchmark(run))
    assert {"name", "unit", "value"} <= set(listed[0])
    bencher = json.loads(charts.bencher(run))
    assert {entry["name"]: entry["value"] for entry in listed} == {
        name: figure["value"] for name, slugs in bencher.items() for figure in slugs.values()
    }
    names = [entry["name"] for entry in listed]
    assert len(set(names)) == len(names)
    assert not any("null" in name for name in names), "a control is no contestant"
    cost = next(entry for entry in listed if entry["name"] == "go_net_http pipelined cost")
    assert (cost["value"], cost["unit"], cost["range"]) == (4310.0, "ns/request", "4138 - 4526")


def test_what_is_not_known_is_not_charted() -> None:
    run = made_run(("reference",))
    load = msgspec.structs.replace(run.servers[0].load[0], cpu_ns_per_request=Cost(None, None))
    run = with_server(run, "reference", load=(load,), memory=None)
    assert [figure.slug for figure in charts.figures(run)] == ["undetected"]
    blocked = run_of("reference", CONTROLS_FAIL).servers[0].compliance
    run = with_server(run, "reference", load=(), compliance=blocked)
    assert list(charts.figures(run)) == []


def test_failed_requirements_are_a_figure() -> None:
    figures = list(charts.figures(run_of("reference", MUST_FAILS)))
    assert [figure.value for figure in figures if figure.slug == "failed-must"] == [2]
