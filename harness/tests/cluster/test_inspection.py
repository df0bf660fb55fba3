"""Each lack of a worker is told with what mends it, and a good cluster lacks nothing."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.cluster import inspection
from httpmark.harness.cluster.clock_offsets import Offset
from httpmark.harness.cluster.connecting import ROLES, Worker
from httpmark.harness.cluster.worker_facts import Facts

OWN = Facts(
    version="1.2", python="3.11.2", host="here", cores=4, descriptors=20_000, ports=28_232,
    binaries=("server", "load", "probe", "null"),
)  # fmt: skip
WORKER = Worker(address="tcp://10.0.0.1:4000", name="one", roles=ROLES)
CLOCK = Offset(0.001, 0.002, 0.004)


def of(
    told: object, worker: Worker = WORKER, clock: Offset | None = CLOCK
) -> tuple[inspection.Lack, ...]:
    clocks = {} if clock is None else {worker.address: clock}
    return inspection.report([worker], {worker.address: told}, clocks, OWN).workers[0].lacks


def but(**changed: object) -> Facts:
    return msgspec.structs.replace(OWN, **changed)


def test_a_worker_that_has_all_lacks_nothing() -> None:
    report = inspection.report([WORKER], {WORKER.address: OWN}, {WORKER.address: CLOCK}, OWN)
    assert report.missing == 0
    assert of(but(descriptors=None, ports=None)) == ()


@pytest.mark.parametrize(
    ("told", "what", "mend"),
    [
        (but(version="1.1"), "httpmark is 1.1 there and 1.2 here", "httpmark[cluster]==1.2"),
        (ModuleNotFoundError("No module named 'httpmark'"), "no httpmark", "httpmark[cluster]=="),
        (AttributeError("facts"), "another version", "httpmark[cluster]==1.2"),
        (OSError("timed out"), "it does not answer: timed out", "restart"),
        (None, "it does not answer: it is gone", "restart"),
        (but(descriptors=1024), "1024 file descriptors are few", "ulimit -Hn 4096"),
        (but(binaries=("server", "load")), "httpmark-probe is missing", "httpmark[cluster]=="),
        (but(binaries=("probe",)), "httpmark-load is missing", "httpmark[cluster]=="),
    ],
)
def test_what_is_missing_is_told_with_its_mend(told: object, what: str, mend: str) -> None:
    (lack,) = of(told)
    assert what in lack.what
    assert mend in lack.mend


def test_a_suite_worker_needs_no_load_generator() -> None:
    suites = msgspec.structs.replace(WORKER, roles=("suite",))
    assert of(but(binaries=("probe",)), suites) == ()


def test_a_clock_is_off_only_where_the_round_trip_shows_it() -> None:
    (lack,) = of(OWN, clock=Offset(2.0, 0.01, 0.02))
    assert "its clock is +2.0 s off" in lack.what
    assert of(OWN, clock=Offset(2.0, 1.5, 3.0)) == ()


def test_a_worker_without_a_role_and_a_role_without_a_worker_are_told() -> None:
    bare = msgspec.structs.replace(WORKER, roles=())
    report = inspection.report([bare], {bare.address: OWN}, {bare.address: CLOCK}, OWN)
    assert "no role" in report.workers[0].lacks[0].what
    assert [lack.what for lack in report.lacks] == [f"no worker may be a {one}" for one in ROLES]
    assert report.missing == 1 + len(ROLES)
