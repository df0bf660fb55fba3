"""`httpmark abuse` whole, as a process of its own."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from httpmark.harness.command import abuse_run
from httpmark.harness.model.abuse import Abused, AbuseReport, Done, Fate, Suffered
from httpmark.harness.servers import proc_files
from httpmark.harness.tests.shared import fragile_server
from httpmark.harness.tests.shared.command_process import last_line, run, start
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.tiny_server import until

LOAD = "httpmark-load"


def serve(folder: Path) -> tuple[str, str]:
    return "--serve", f"{sys.executable} {fragile_server.script(folder)} {{port}}"


def report(*suffered: Suffered) -> AbuseReport:
    return AbuseReport(
        rate=1.0, clients=1, seconds=1.0, quick=True, load_average=(0.0, 0.0, 0.0), processors=1,
        servers=(Abused(name="one", suffered=suffered),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "over", "fails"),
    [
        (Suffered(scenario="idle", fate=Fate.DIED), None, True),
        (Suffered(scenario="idle", fate=Fate.SILENT), None, True),
        (Suffered(scenario="idle", fate=Fate.STARVED), None, False),
        (Suffered(scenario="idle", fate=Fate.STARVED), 100.0, True),
        (Suffered(scenario="idle", fate=Fate.SLOWED, p99_ratio=12.0), None, False),
        (Suffered(scenario="idle", fate=Fate.SLOWED, p99_ratio=12.0), 12.0, False),
        (Suffered(scenario="idle", fate=Fate.SLOWED, p99_ratio=12.1), 12.0, True),
        (Suffered(scenario="idle", reason="it speaks no TLS"), 10.0, False),
    ],
)
def test_what_fails(one: Suffered, over: float | None, fails: bool) -> None:
    assert abuse_run.is_failed(report(one), over) is fails


def test_what_was_not_tried_is_undecided_only_where_it_should_have_come() -> None:
    done = Done(seconds=1.0, opened=0, refused=0, held_max=0, sent_bytes=0)
    assert abuse_run.is_undecided(report(Suffered(scenario="idle", reason="busy", done=done)))
    held = Suffered(scenario="idle", fate=Fate.HELD, done=done)
    assert not abuse_run.is_undecided(report(Suffered(scenario="idle", reason="no TLS"), held))


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a TARGET or a SERVER"),
        (("no-such-server",), "no server is called"),
        (("reference", "--scenario", "rudeness"), "rudeness"),
        (("reference", "--rate", "0"), "--rate"),
        (("reference", "--fail-over", "nan"), "nan"),
        (("http://192.0.2.1:80/",), "--allow-remote"),
        (("reference", "--page", "nowhere/abuse.md"), "nowhere"),
        (("reference", "--path", "hello"), "not a path"),
        (("--serve", "./server"), "{port}"),
    ],
)
def test_wrong_words_are_told_in_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    code, out, errors = run("abuse", *words, cwd=tmp_path)
    assert code == 2
    assert out == ""
    assert said in last_line(errors)


@pytest.mark.process
def test_where_nothing_answers_the_target_cannot_be_used(tmp_path: Path) -> None:
    code, _, errors = run("abuse", f"http://127.0.0.1:{own_port()}/", "--quick", cwd=tmp_path)
    assert code == 3
    assert "is the server running?" in last_line(errors)


@pytest.mark.process
def test_a_server_that_dies_is_started_again_for_the_next_scenario(tmp_path: Path) -> None:
    code, out, _ = run(
        "abuse", *serve(tmp_path), "--quick", "--json", "--page", "abuse.md",
        "--scenario", "many-fields", "--scenario", "connects", "--scenario", "tls-handshakes",
        cwd=tmp_path,
    )  # fmt: skip
    assert code == 1
    [server] = json.loads(out)["servers"]
    died, flood, tls = server["suffered"]
    assert died["fate"] == "died"
    assert "exit code 9" in died["reason"]
    assert flood["fate"] in ("held", "slowed", "starved")
    assert flood["done"]["opened"] > 0
    assert flood["held"]["pss_peak_kb"] > 0
    assert tls["fate"] is None
    assert "| many-fields | died |" in (tmp_path / "abuse.md").read_text()


@pytest.mark.process
def test_a_target_is_not_limited_and_not_stopped(tmp_path: Path) -> None:
    with listening("server") as url:
        words = ("--quick", "--json", "--scenario", "slow-bodies")
        code, out, errors = run("abuse", url, *words, cwd=tmp_path)
        assert (code, errors.count("Traceback")) == (0, 0)
        [server] = json.loads(out)["servers"]
        [found] = server["suffered"]
        assert found["under"]["answered"] == found["under"]["due"]
        assert found["descriptors"] is None
        assert run("abuse", url, *words, "--fail-over", "1000000", cwd=tmp_path)[0] == 0


def loads(pid: int) -> list[int]:
    """The generators of load among what a process started."""
    return [one for one in proc_files.tree([pid]) if proc_files.text_if_there(one, "comm") == LOAD]


@pytest.mark.process
def test_what_was_interrupted_shows_what_it_has_and_leaves_nothing(tmp_path: Path) -> None:
    names = ("tls-handshakes", "connects", "slow-heads", "chunk-extensions")
    words = ("--quick", *(word for name in names for word in ("--scenario", name)))
    page = tmp_path / "abuse.md"
    with start("abuse", *serve(tmp_path), *words, "--page", str(page), cwd=tmp_path) as process:
        # The first load is that of the quiet. The scenario before takes none: there is no TLS.
        seen: set[int] = set()

        def is_second_load() -> bool:
            seen.update(loads(process.pid))
            return len(seen) > 1

        assert until(is_second_load, deadline_s=60)
        tree = proc_files.tree([process.pid])
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert last_line(errors) == "httpmark: interrupted; the results until then are printed"
    assert "tls-handshakes" in out
    assert "tls-handshakes" in page.read_text()
    assert "Traceback" not in errors
    assert not [pid for pid in tree if pid in proc_files.process_ids()]
