"""Abuse beside honest clients: verdicts differ between a fragile and a strong server."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from httpmark.harness.load import abuse
from httpmark.harness.load.abuse_scenarios import BY_NAME
from httpmark.harness.model.abuse import Fate, Honest
from httpmark.harness.model.errors import Unusable
from httpmark.harness.servers.abusive_clients import Crowd
from httpmark.harness.tests.shared import fragile_server
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.ports import own_port, wait_listening

BRIEF = abuse.Asked(seconds=1.5, lead_s=0.5)
QUIET = Honest(due=400, answered=400, p50_us=100.0, p99_us=1000.0, new_asked=20, new_answered=20)


def honest(**changes: object) -> Honest:
    return Honest(**({"due": 400, "answered": 400, "p99_us": 2000.0} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("under", "again_s", "died", "fate"),
    [
        (honest(), 0.0, None, Fate.HELD),
        (honest(p99_us=9_999.0), 0.0, None, Fate.HELD),
        (honest(p99_us=10_000.0), 0.0, None, Fate.SLOWED),
        (honest(answered=396), 0.0, None, Fate.HELD),
        (honest(answered=395), 0.0, None, Fate.STARVED),
        (honest(p99_us=None), 0.0, None, Fate.STARVED),
        (honest(new_asked=20, new_answered=19), 0.0, None, Fate.STARVED),
        (honest(), None, None, Fate.SILENT),
        (honest(), None, "killed by SIGSEGV", Fate.DIED),
        (honest(), 0.0, "killed by SIGSEGV", Fate.DIED),
    ],
)
def test_the_worst_that_happened_is_the_fate(
    under: Honest, again_s: float | None, died: str | None, fate: Fate
) -> None:
    assert abuse.judged(QUIET, under, again_s=again_s, died=died)[0] is fate


def test_the_ratio_is_that_of_the_p99() -> None:
    assert abuse.judged(QUIET, honest(p99_us=2500.0), again_s=0.0, died=None)[1] == 2.5
    assert abuse.judged(QUIET, honest(p99_us=None), again_s=0.0, died=None)[1] is None


def ground(port: int, process: subprocess.Popen[bytes] | None = None) -> abuse.Ground:
    def death() -> str | None:
        return None if process is None or process.poll() is None else "it ended"

    return abuse.Ground(
        address="127.0.0.1",
        port=port,
        path="/hello",
        tls=False,
        tls_port=None,
        pids=lambda: [process.pid] if process is not None else [],
        death=death,
        is_ours=process is not None,
    )


@contextlib.contextmanager
def fragile(folder: Path) -> Iterator[abuse.Ground]:
    port = own_port()
    process = subprocess.Popen([sys.executable, str(fragile_server.script(folder)), str(port)])
    try:
        wait_listening(port, until=True, seconds=20)
        yield ground(port, process)
    finally:
        process.kill()
        process.wait()


@pytest.mark.process
@pytest.mark.timed
def test_slow_heads_starve_a_server_of_few_threads_and_not_the_reference(tmp_path: Path) -> None:
    scenario = BY_NAME["slow-heads"]
    with fragile(tmp_path) as place:
        weak = abuse.Besieged(place, BRIEF).suffer(scenario)
    assert weak.fate is Fate.STARVED
    assert weak.quiet is not None
    assert weak.under is not None
    assert weak.quiet.new_answered == weak.quiet.new_asked
    assert weak.under.new_answered < weak.under.new_asked
    assert weak.again_s is not None  # it is free again when they have gone
    assert weak.held.pss_peak_kb is not None
    with listening("server") as url:
        port = urlsplit(url).port
        assert port is not None
        strong = abuse.Besieged(ground(port), BRIEF).suffer(scenario)
    assert strong.fate in (Fate.HELD, Fate.SLOWED)
    assert strong.under is not None
    assert strong.under.lost == 0
    assert strong.under.new_asked > 0
    assert strong.done is not None
    assert strong.done.held_max == scenario.clients
    assert strong.held.pss_peak_kb is None  # none of its processes was named


@pytest.mark.process
def test_a_server_that_dies_of_it_is_said_to_have_died(tmp_path: Path) -> None:
    with fragile(tmp_path) as place:
        found = abuse.Besieged(place, BRIEF).suffer(BY_NAME["many-fields"])
    assert found.fate is Fate.DIED
    assert found.reason == "it ended"
    assert found.again_s is None


@pytest.mark.process
def test_what_a_server_does_not_speak_is_not_tried(tmp_path: Path) -> None:
    with fragile(tmp_path) as place:
        besieged = abuse.Besieged(place, BRIEF)
        tls = besieged.suffer(BY_NAME["tls-handshakes"])
        websocket = besieged.suffer(BY_NAME["websocket-fragments"])
    assert tls.fate is websocket.fate is None
    assert tls.reason == "it speaks no TLS"
    assert websocket.reason == "GET /websocket is no WebSocket"


@pytest.mark.process
def test_abuse_that_never_came_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Crowd, "_run", lambda crowd: None)
    with fragile(tmp_path) as place:
        found = abuse.Besieged(place, BRIEF).suffer(BY_NAME["many-fields"])
    assert found.fate is None
    assert found.done is not None
    assert found.reason is not None
    assert found.reason.startswith("no abuser came")


@pytest.mark.process
def test_without_good_answers_in_the_quiet_there_is_nothing_to_compare() -> None:
    with listening("server") as url:
        port = urlsplit(url).port
        assert port is not None
        other = abuse.Ground(
            address="127.0.0.1", port=port, path="/404", tls=False, tls_port=None,
            pids=list, death=lambda: None, is_ours=False,
        )  # fmt: skip
        with pytest.raises(Unusable, match="without abuse"):
            abuse.Besieged(other, BRIEF).suffer(BY_NAME["slow-heads"])


@pytest.mark.process
def test_filling_the_descriptors_gives_the_limit_back() -> None:
    import resource

    port = own_port()
    process = subprocess.Popen([
        sys.executable, "-c",
        "import socket, sys, time\nsocket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "time.sleep(60)", str(port),
    ])  # fmt: skip
    try:
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        besieged = abuse.Besieged(ground(port, process), BRIEF)
        limits, most = besieged.limited(BY_NAME["idle"])
        assert most is not None
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == most
        abuse.give_back(limits)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == before
        assert besieged.limited(BY_NAME["connects"]) == ({}, None)
    finally:
        process.kill()
        process.wait()
