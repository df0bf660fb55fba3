"""The published tables beside a run: figures, ratios, and why there is none."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.model.load import Bottleneck, LoadResult
from httpmark.harness.model.memory import Memory
from httpmark.harness.model.run import Run
from httpmark.harness.report import published_tables
from httpmark.harness.report.published_tables import Comparison, Figure
from httpmark.harness.tests.shared.made_run import load_result, made_run, with_server

KNOWN = loading.load()
NAMES = ("reference", "go_net_http", "rust_hyper")


def of(profile: str, rps: float | None, bottleneck: Bottleneck = Bottleneck.SERVER) -> LoadResult:
    made = load_result(300.0, profile=profile)
    return msgspec.structs.replace(
        made, requests_per_second=rps, bottleneck=bottleneck, bottleneck_why="it was busy",
        scaled="1 + 1 threads instead of 6 + 6: 2 processors for both ends",
    )  # fmt: skip


def a_run(profile: str, rates: Mapping[str, float | None], **limits: Bottleneck) -> Run:
    run = msgspec.structs.replace(made_run(NAMES), profiles=(profile,), suites=())
    for name, rps in rates.items():
        loads = (of(profile, rps, limits.get(name, Bottleneck.SERVER)),)
        run = with_server(run, name, load=loads)
    return run


def table(run: Run, word: str) -> tuple[Comparison, dict[str, Figure]]:
    found = [one for one in published_tables.comparisons(run, KNOWN) if word in one.name]
    assert len(found) == 1
    return found[0], {one.server: one for one in found[0].figures}


def test_rates_stand_beside_the_posted_ones_with_ratios_to_a_server_of_both() -> None:
    rates = {"reference": 8e6, "go_net_http": 1e5, "rust_hyper": 2e6}
    run = a_run("published_plain", rates, rust_hyper=Bottleneck.CLIENT)
    plain, rows = table(run, "plaintext")
    assert plain.machines == ("m7a.4xlarge, 8 + 8 threads", "Ryzen 5 1600, 6 + 6 threads")
    assert plain.base == "go_net_http"
    hyper = rows["rust_hyper"]
    assert list(hyper.posted) == [None, 4382914]
    assert list(hyper.posted_ratio) == [None, pytest.approx(18.97, abs=0.01)]
    assert [hyper.measured, hyper.measured_ratio] == [2e6, 20]
    assert hyper.reason == "the limit was not the server (client): it was busy"
    assert list(rows["reference"].posted) == [None, None]
    assert rows["reference"].measured_ratio == 80
    assert list(rows["kourier"].posted) == [33041886, 12138068]
    assert rows["kourier"].measured is None
    assert rows["kourier"].reason == "not part of this run"
    assert "scaled: 1 + 1 threads instead of 6 + 6: 2 processors for both ends" in plain.differs


def test_vmpeak_stands_beside_the_posted_one_with_the_connections_it_is_of() -> None:
    run = a_run("published_500k", {"go_net_http": 1e5})
    held = Memory(vmpeak_kb=1 << 20, vmhwm_kb=1, pss_kb=1, connections_held=17000)
    run = with_server(run, "go_net_http", memory=held)
    peaks, rows = table(run, "VmPeak")
    assert list(rows["go_net_http"].posted) == [9801832]
    assert [rows["go_net_http"].measured, rows["go_net_http"].reason] == [1 << 20, ""]
    assert "measured with 17,000 connections, not 500,000" in peaks.differs
    assert "memory, VmPeak" in {one.name for one in published_tables.comparisons(run, KNOWN)}


def test_compliance_is_the_published_percentage() -> None:
    run = made_run(("go_net_http", "rust_hyper"))
    seed, rows = table(run, "compliance")
    assert seed.base is None
    posted = {
        name: round(row.posted[0], 1) for name, row in rows.items() if row.posted[0] is not None
    }
    assert posted == {
        "kourier": 100.0, "rust_hyper": 89.7, "go_net_http": 63.1, "qhttpserver": 1.2,
        "lithium": 0.0,
    }  # fmt: skip
    assert rows["go_net_http"].measured == pytest.approx(63.1, abs=0.05)


def test_a_run_without_them_has_no_table() -> None:
    run = msgspec.structs.replace(made_run(NAMES), suites=("rfc",), profiles=("keepalive",))
    assert published_tables.comparisons(run, KNOWN) == ()


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_fits_and_says_all(width: int) -> None:
    rates = {"reference": 8e6, "go_net_http": 1e5, "rust_hyper": None}
    run = a_run("published_plain", rates)
    text = list(published_tables.lines(run, KNOWN, width=width))
    assert max(map(len, text)) <= width
    whole = "\n".join(text)
    assert "231 k (1.00)" in whole
    assert "8.00 M (80.0)" in whole
    assert "differs: posted: what wrk counted" in whole
