"""A server is held to its folder: each promise that is broken has a row, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import certificates, verification
from httpmark.harness.servers.certificates import Pair
from httpmark.harness.servers.verification import Row, Seen, Verified
from httpmark.harness.tests.shared.tiny_server import tiny

pytestmark = [pytest.mark.usefixtures("nothing_is_left"), pytest.mark.process]

START = ("{python}", "-S", "{source}/server.py", "{address}", "{port}", "{workers}")
# At SIGTERM, end the whole process group.
TOGETHER = """
def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.killpg(0, signal.SIGTERM)
signal.signal(signal.SIGTERM, end)
"""
ONE = (*START[:-1], "1")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return certificates.make(tmp_path_factory.mktemp("certificate"), address="127.0.0.1")


def verified(folder: Path, pair: Pair, manner: str = "", **changes: Any) -> Verified:
    server = tiny(folder, manner, **({"capabilities": ()} | changes))
    how = verification.Start("process", "127.0.0.1", "verification", pair)
    return verification.verify(server, how)


def row(found: Verified, name: str) -> Row:
    [one] = [row for row in found.rows if row.name == name]
    return one


def test_a_server_that_keeps_everything(tmp_path: Path, pair: Pair) -> None:
    recipe = Recipe(start=START, version=("echo", "tiny 1.2.3"))
    found = verified(tmp_path, pair, TOGETHER, process=recipe, version="1.2", workers="processes")
    assert [one.name for one in found.rows] == [
        "ready",
        "version",
        "HTTP/1.0",
        "SIGTERM",
        "workers",
    ]
    assert {one.verdict for one in found.rows} == {found.verdict} == {Seen.KEPT}
    assert found.version == row(found, "version").seen == "1.2.3"
    assert row(found, "SIGTERM").seen.startswith("killed by SIGTERM after ")
    assert row(found, "workers").seen == (
        "1 worker: 1 process, 1 thread, 1 listening socket; "
        "2 workers: 2 processes, 2 threads, 1 listening socket"
    )


def test_a_broken_capability_has_its_row(tmp_path: Path, pair: Pair) -> None:
    found = verified(tmp_path, pair, capabilities=("hello", "echo"))
    assert row(found, "hello").verdict == row(found, "echo").verdict == found.verdict == Seen.BROKEN
    assert row(found, "hello").seen == "GET /hello: 'ok' instead of 'Hello World!'"
    assert row(found, "hello").mend == "answer as images/README.md says of hello"
    assert "take echo out of capabilities" in str(row(found, "echo").mend)


@pytest.mark.parametrize(
    ("told", "declared", "verdict", "seen"),
    [
        ((), "1", Seen.NOT_SEEN, "no command tells the version"),
        (("echo", "none"), "1", Seen.BROKEN, "echo none prints no version"),
        (("echo", "2.0"), "1.9", Seen.BROKEN, "2.0 runs, and the manifest is made for 1.9"),
        (("echo", "2.0"), "1.9 or newer", Seen.KEPT, "2.0"),
    ],
)
def test_the_version_is_told(
    tmp_path: Path, pair: Pair, told: tuple[str, ...], declared: str, verdict: Seen, seen: str
) -> None:
    recipe = Recipe(start=START, version=told)
    one = row(verified(tmp_path, pair, process=recipe, version=declared), "version")
    assert (one.verdict, one.seen) == (verdict, seen)
    assert (one.mend is None) is (verdict == Seen.KEPT)


def test_the_version_that_answers_1_0_is_the_declared_one(tmp_path: Path, pair: Pair) -> None:
    one = row(verified(tmp_path, pair, answers_1_0_as_1_0=True), "HTTP/1.0")
    assert (one.verdict, one.seen) == (Seen.BROKEN, "answered as HTTP/1.1")
    assert one.mend == "say answers_1_0_as_1_0 = false"


@pytest.mark.parametrize(
    ("start", "declared", "verdict"),
    [
        (START, "threads", Seen.BROKEN),
        (START, "one", Seen.BROKEN),
        (ONE, "processes", Seen.BROKEN),
        (ONE, "one", Seen.KEPT),
        (ONE, "", Seen.NOT_SEEN),
        (START, "", Seen.KEPT),
    ],
)
def test_the_workers_are_those_that_are_declared(
    tmp_path: Path, pair: Pair, start: tuple[str, ...], declared: str, verdict: Seen
) -> None:
    found = verified(tmp_path, pair, process=Recipe(start=start), workers=declared)
    assert row(found, "workers").verdict == verdict


def test_a_server_that_ignores_sigterm_is_told(
    tmp_path: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("httpmark.harness.servers.running.STOP_GRACE_S", 0.3)
    one = row(verified(tmp_path, pair, "signal.signal(signal.SIGTERM, signal.SIG_IGN)"), "SIGTERM")
    assert one.verdict == Seen.BROKEN
    assert "still ran" in one.seen


def test_a_process_that_is_left_is_told(tmp_path: Path, pair: Pair) -> None:
    # Its second worker.
    one = row(verified(tmp_path, pair), "SIGTERM")
    assert one.verdict == Seen.BROKEN
    assert one.seen.endswith(", and 1 process of it ran on")


def test_a_server_that_does_not_start_says_so(tmp_path: Path, pair: Pair) -> None:
    found = verified(tmp_path, pair, "sys.exit('no such option')")
    assert {one.name for one in found.rows} == {"start"}
    assert found.verdict == Seen.NO_START
    assert "with 2 workers: died at start: exit code 1: no such option" in found.rows[0].seen


def test_a_broken_promise_outweighs_a_start_that_fails() -> None:
    rows = [Row(name="a", verdict=verdict, seen="") for verdict in Seen]
    one = Verified(name="a", runtime="process", version=None, rows=tuple(rows))
    assert one.verdict == Seen.BROKEN
    assert msgspec.structs.replace(one, rows=(rows[0],)).verdict == Seen.KEPT
    assert msgspec.structs.replace(one, rows=(rows[0], rows[3])).verdict == Seen.NO_START
