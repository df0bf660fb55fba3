"""A server as a process: it starts, is watched, and nothing of it is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.model.cases import SECRET
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.servers import ProcessRecipe as Recipe
from httpmark.harness.servers import (
    cpu_time,
    running,
    sockets,
)
from httpmark.harness.tests.shared.tiny_server import lives, start, tiny, until

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.process
def test_a_server_starts_answers_and_is_gone_after_stop(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=3)
    pids = one.pids()
    assert len(pids) == 3
    assert one.alive()
    answer = sockets.ask("127.0.0.1", one.port, b"GET / HTTP/1.1\r\n\r\n", deadline_s=2)
    assert answer is not None
    assert answer.endswith(b"ok")
    assert one.log_tail() == "tiny says hello"
    assert sockets.port_taken("127.0.0.1", one.port)
    one.stop()
    assert not any(map(lives, pids))
    assert not sockets.port_taken("127.0.0.1", one.port)
    assert not one.alive()
    assert one.pids() == []
    assert one.exit_reason() == "killed by SIGTERM: tiny says hello"
    one.stop()  # a second time changes nothing


@pytest.mark.process
def test_a_server_that_dies_at_start_says_its_last_words(tmp_path: Path) -> None:
    server = tiny(tmp_path, "print('no teeth', file=sys.stderr, flush=True); sys.exit(7)")
    with pytest.raises(Unusable, match=r"died at start: exit code 7: no teeth"):
        start(server)
    killed = tiny(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(Unusable, match=r"died at start: killed by SIGSEGV: tiny says hello"):
        start(killed)


@pytest.mark.process
def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    server = tiny(tmp_path, process=Recipe(start=("no-such-program-at-all",)))
    with pytest.raises(Unusable, match=r"cannot be run: no-such-program-at-all: .*No such file"):
        start(server)


@pytest.mark.process
def test_a_server_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "STOP_GRACE_S", 0.2)
    one = start(tiny(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)"), workers=2)
    pids = one.pids()
    one.stop()
    assert not any(map(lives, pids))
    assert one.exit_reason().startswith("killed by SIGKILL")


@pytest.mark.process
def test_a_child_that_runs_away_is_still_part_of_the_tree(tmp_path: Path) -> None:
    runaway = """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
    """
    one = start(tiny(tmp_path, runaway))
    pids = one.pids()
    assert len(pids) == 2
    one.stop()
    assert not any(map(lives, pids))


@pytest.mark.process
def test_what_a_child_that_ran_away_used_is_in_the_books_when_it_has_ended(tmp_path: Path) -> None:
    manner = """
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.4: pass
            os._exit(0)
        os.wait()
        """
    one = start(tiny(tmp_path, manner))
    assert until(lambda: len(one.pids()) == 1)
    (pid,) = one.pids()
    assert (cpu_time.cpu_ns([pid]) or 0) < 0.3e9
    assert (cpu_time.spent_ns([pid]) or 0) < 0.3e9
    assert until(lambda: (cpu_time.spent_ns(one.trees()) or 0) > 0.4e9)


@pytest.mark.process
def test_death_in_mid_run_is_seen(tmp_path: Path) -> None:
    one = start(tiny(tmp_path), workers=2)
    pids = one.pids()
    os.kill(min(pids), signal.SIGKILL)
    assert until(lambda: not one.alive())
    assert one.exit_reason() == "killed by SIGKILL: tiny says hello"
    assert until(lambda: not any(map(lives, pids)))  # its workers do not outlive it


@pytest.mark.process
def test_pinning_is_to_the_processors_named(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    one = start(tiny(tmp_path), workers=2, cpus=str(last))
    assert [os.sched_getaffinity(pid) for pid in one.pids()] == [{last}, {last}]


@pytest.mark.process
def test_a_server_of_files_is_given_the_planted_ones(tmp_path: Path) -> None:
    recipe = tiny(tmp_path).process
    assert recipe is not None
    served = msgspec.structs.replace(recipe, start=(*recipe.start, "{static}"))
    manner = """
        folder = sys.argv[4]
        print(sorted(os.listdir(folder)), os.listdir(folder + '/..'), flush=True)
    """
    one = start(tiny(tmp_path, manner, process=served, capabilities=("hello", "static")))
    said = one.log_tail().splitlines()[-1]
    assert "'link-out', 'ok.html', 'sub'" in said
    assert SECRET in said
