"""OpenMetrics: read by another reader, absent where unknown, and the same figures as the run."""

from __future__ import annotations

from typing import Any

import msgspec
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from httpmark.harness.gate import findings
from httpmark.harness.gate.metrics import metrics
from httpmark.harness.model.load import Cost
from httpmark.harness.model.run import Run
from httpmark.harness.tests.shared.made_findings import hostile_run, mixed
from httpmark.harness.tests.shared.made_run import made_run, with_server


def read(run: Run) -> dict[str, list[tuple[dict[str, str], float]]]:
    text = metrics(run, findings.findings(run))
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    }


def test_another_reader_finds_the_figures_of_the_run() -> None:
    run = mixed()
    found = read(run)
    go = next(server for server in run.servers if server.name == "go_net_http")
    score = go.compliance.suites["seed"].score_percent
    labels = {"server": "go_net_http", "suite": "seed"}
    assert score is not None
    (said,) = [value for where, value in found["httpmark_score_percent"] if where == labels]
    assert abs(said - score) < 1e-6
    requests = {
        where["outcome"]: value
        for where, value in found["httpmark_requests"]
        if where["server"] == "go_net_http" and where["family"] == "path_byte"
    }
    counts = go.compliance.suites["seed"].families["path_byte"]
    assert requests["rejected"] == counts.rejected
    assert requests["accepted"] == counts.accepted
    costs = {
        where["estimate"]: value
        for where, value in found["httpmark_cost_nanoseconds"]
        if (where["server"], where["profile"]) == ("go_net_http", "pipelined")
    }
    assert costs["low"] < costs["median"] < costs["high"]


def test_what_is_absent_is_left_out() -> None:
    run = made_run(("reference",))
    load = msgspec.structs.replace(
        run.servers[0].load[0],
        cpu_ns_per_request=Cost(None, None),
        interval_95=None,
        requests_per_second=None,
    )
    found = read(with_server(run, "reference", load=(load,), memory=None))
    assert "httpmark_cost_nanoseconds" not in found
    assert "httpmark_requests_per_second" not in found
    assert "httpmark_memory_bytes" not in found


def test_hostile_words_break_no_line() -> None:
    run = hostile_run()
    hostile: Any = '"} 1\n# EOF\nx{y="\\'
    run = with_server(run, run.servers[0].name, name=hostile)
    found = read(run)
    assert any(where["server"] == hostile for where, _ in found["httpmark_memory_bytes"])
