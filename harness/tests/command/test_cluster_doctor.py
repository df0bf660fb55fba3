"""What `httpmark cluster doctor` prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from httpmark.harness.cluster.clock_offsets import Offset
from httpmark.harness.cluster.inspection import Inspected, Lack, Report
from httpmark.harness.cluster.worker_facts import Facts
from httpmark.harness.command import cluster_doctor
from httpmark.harness.tests.shared.command_process import run

FACTS = Facts(
    version="1.2", python="3.11.2", host="here", cores=1, descriptors=None, ports=None,
    binaries=("probe",),
)  # fmt: skip
GOOD = Inspected(
    address="tcp://10.0.0.1:1", name="one", roles=("suite",), facts=FACTS,
    clock=Offset(-0.0015, 0.0004, 0.0008), lacks=(),
)  # fmt: skip
BAD = Inspected(
    address="tcp://10.0.0.2:1", name="two", roles=(), facts=None, clock=None,
    lacks=(Lack("it has no httpmark", "pip install it"),),
)  # fmt: skip


def test_a_worker_is_told_with_all_that_is_known_of_it() -> None:
    text = " ".join(
        cluster_doctor.lines(Report(version="1.2", workers=(GOOD,), lacks=()), width=400)
    )
    assert text == (
        "ok   one (tcp://10.0.0.1:1): suite; httpmark 1.2; 1 core; unlimited descriptors; unknown "
        "ports; clock -1.5 ms, to 0.4 ms; round trip 0.8 ms through the scheduler"
    )


def test_each_lack_stands_below_its_worker_with_its_mend() -> None:
    report = Report(version="1.2", workers=(GOOD, BAD), lacks=(Lack("no server", "start one"),))
    assert report.missing == 2
    assert cluster_doctor.lines(report, width=200)[1:] == [
        "MEND two (tcp://10.0.0.2:1): no role",
        "     it has no httpmark: pip install it",
        "MEND no server",
        "     start one",
    ]


@pytest.mark.process
def test_two_local_workers_lack_nothing(tmp_path: Path) -> None:
    code, out, errors = run("cluster", "doctor", "--cluster", "local:2", "--json", cwd=tmp_path)
    assert code == 0, errors
    found = json.loads(out)
    assert [one["lacks"] for one in found["workers"]] == [[], []]
    assert {one["facts"]["version"] for one in found["workers"]} == {found["version"]}


@pytest.mark.process
def test_an_address_that_names_no_cluster_is_refused(tmp_path: Path) -> None:
    code, _, errors = run("cluster", "doctor", "--cluster", "nowhere", cwd=tmp_path)
    assert code == 2
    assert errors.count("\n") == 1
