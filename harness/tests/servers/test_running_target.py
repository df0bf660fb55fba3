"""Targets that run already: what is one, what is not, and what is never done to it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.command import known_commands, options
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import binaries, running_target
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.command_process import run as command


def parse(text: str, *, allow_remote: bool = False) -> running_target.RunningTarget | None:
    return running_target.parse(text, allow_remote=allow_remote)


@pytest.mark.parametrize("name", ["reference", "go_net_http", "null"])
def test_a_name_is_no_target(name: str) -> None:
    assert parse(name) is None


@pytest.mark.parametrize(
    ("text", "address", "port", "tls_port", "path"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, None, None),
        ("http://127.0.0.1:8080/a?b=c", "127.0.0.1", 8080, None, "/a?b=c"),
        ("http://localhost", "127.0.0.1", 80, None, None),
        ("https://127.0.0.1/x", "127.0.0.1", 443, 443, "/x"),
        ("http://[::1]:99/", "::1", 99, None, None),
    ],
)
def test_targets_are_read(
    text: str, address: str, port: int, tls_port: int | None, path: str | None
) -> None:
    one = parse(text)
    assert one is not None
    assert (one.address, one.port, one.tls_port, one.path) == (address, port, tls_port, path)
    assert ("tls" in one.server.capabilities) is (tls_port is not None)


@pytest.mark.process
def test_a_child_that_holds_the_listener_is_a_process_and_no_tree_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = parse(f"127.0.0.1:{listener.getsockname()[1]}")
        assert one is not None
        with subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, pass_fds=(listener.fileno(),)
        ) as child:
            assert {os.getpid(), child.pid} <= set(one.pids())
            assert one.trees() == [os.getpid()]
            assert child.stdin is not None
            child.stdin.close()
    assert one.trees() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ftp://127.0.0.1/", "only http://"),
        ("http://127.0.0.1:99999/", "port"),
        ("http://example.org/", "--allow-remote"),
        ("http://192.0.2.1/", "--allow-remote"),
        ("192.0.2.1:80", "--allow-remote"),
    ],
)
def test_what_cannot_be_loaded_is_said(text: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        parse(text)


def test_a_load_is_laid_on_one_machine_not_on_a_name() -> None:
    with pytest.raises(HarnessError, match="IP address"):
        parse("http://example.org/", allow_remote=True)


def test_leave_is_leave() -> None:
    one = parse("http://192.0.2.1/", allow_remote=True)
    assert one is not None
    assert one.pids() == []


def test_the_processes_of_a_target_on_this_machine_are_found_and_let_live() -> None:
    with peers.peer(peers.answering(peers.OK)) as peer:
        one = parse(f"127.0.0.1:{peer.port}")
        assert one is not None
        assert os.getpid() in one.pids()
        assert one.alive()
        one.stop()
        assert one.alive()
    assert not one.alive()
    assert "is the server running?" in one.exit_reason()


@pytest.mark.process
def test_bench_loads_a_target_and_says_it_is_not_restarted(tmp_path: Path) -> None:
    null = [binaries.need("null"), "--port", "0"]
    with subprocess.Popen(null, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        try:
            target = f"http://127.0.0.1:{port}/x"
            code, out, errors = command(
                "bench", "null", target, "--profile", "keepalive", "--rounds", "3", "--quick",
                "--runtime", "process", "--json", "--seed", "1", cwd=tmp_path, timeout=200,
            )  # fmt: skip
        finally:
            server.terminate()
        assert server.wait(5) == 0, "a target is never stopped by us"
    assert code == 0, errors
    assert "not restarted for each sample" in errors
    found = json.loads(out)
    assert any("not restarted for each sample" in note for note in found["notes"])
    names = {one["name"]: one for one in found["servers"]}
    assert set(names) == {"null", target}
    assert names[target]["runtime"] == "address"
    load = names[target]["load"][0]
    assert load["cpu_ns_per_request"]["server"] > 0
    assert load["rounds"] == 3
    pairs = {pair["metric"]: pair for pair in found["paired"]}
    assert pairs["cpu_ns_per_request"]["base"] == "null"
    assert pairs["cpu_ns_per_request"]["pairs"] == 3
    assert 0.3 < pairs["cpu_ns_per_request"]["ratio"] < 3


@contextlib.contextmanager
def nulls(count: int) -> Iterator[list[str]]:
    """So many null servers that run already."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            words = [binaries.need("null"), "--port", "0"]
            server = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            stack.callback(server.terminate)
            assert server.stdout is not None
            found.append(f"http://127.0.0.1:{int(server.stdout.readline().rpartition(':')[2])}/")
        yield found


@pytest.mark.process
def test_the_first_word_is_the_base_also_where_it_is_a_target(tmp_path: Path) -> None:
    with nulls(2) as targets:
        code, out, errors = command(
            "bench", *targets, "--profile", "keepalive", "--rounds", "1", "--quick",
            "--runtime", "process", "--json", "--seed", "1", cwd=tmp_path, timeout=200,
        )  # fmt: skip
        assert code == 0, errors
        (cost,) = (p for p in json.loads(out)["paired"] if p["metric"] == "cpu_ns_per_request")
        assert (cost["base"], cost["head"], cost["pairs"]) == (*targets, 1)
        words = ("bench", targets[0], "null", "--profile", "keepalive", "--rounds", "1", "--quick")
        code, out, errors = command(
            *words, "--runtime", "process", "--json", cwd=tmp_path, timeout=200
        )
        assert code == 0, errors
        assert {p["base"] for p in json.loads(out)["paired"]} == {targets[0]}


@pytest.mark.process
def test_bench_of_a_target_that_is_not_there(tmp_path: Path) -> None:
    code, _, errors = command("bench", "127.0.0.1:1", "--profile", "keepalive", cwd=tmp_path)
    assert code == 3
    assert "is the server running?" in errors.strip().splitlines()[-1]


@pytest.mark.process
def test_of_several_targets_the_living_are_loaded_and_the_dead_one_is_told(tmp_path: Path) -> None:
    with nulls(1) as (target,):
        code, out, errors = command(
            "bench", target, "127.0.0.1:1", "--profile", "keepalive", "--rounds", "1", "--quick",
            "--runtime", "process", "--json", cwd=tmp_path, timeout=200,
        )  # fmt: skip
    assert code == 3, errors
    living, dead = json.loads(out)["servers"]
    assert living["load"][0]["rounds"] == 1
    assert "is the server running?" in dead["unavailable"]


@pytest.mark.process
def test_an_engine_that_lays_on_nothing_is_one_line(tmp_path: Path) -> None:
    engine = tmp_path / "wrk2"
    engine.write_text("#!/bin/sh\nexit 0\n")
    engine.chmod(0o755)
    code, out, errors = command(
        "bench", "null", "--profile", "open_10k", "--quick", "--engine", "wrk2",
        "--wrk2", str(engine), "--runtime", "process", cwd=tmp_path, timeout=200,
    )  # fmt: skip
    assert (code, out) == (3, "")
    assert "nothing could be measured; null under open_10k: wrk2" in errors.strip().splitlines()[-1]


@pytest.mark.process
def test_all_is_every_profile_that_is_not_told_in_vain(tmp_path: Path) -> None:
    # wrk2 has no binary here, which is said before anything starts: the names were understood.
    code, _, errors = command("bench", "null", "--profile", "all", "--engine", "wrk2", cwd=tmp_path)
    assert (code, "--wrk2 PATH" in errors) == (3, True), errors
    bench = known_commands.load("bench")
    context = click.Context(bench)
    assert options.every_profile(context, bench.params[0], ()) == ()
    every = options.every_profile(context, bench.params[0], ("churn", "all"))
    assert set(every) == set(loading.load().plans)


@pytest.mark.process
@pytest.mark.needs("wrk")
def test_bench_says_what_an_engine_cannot_do(tmp_path: Path) -> None:
    words = ("bench", "null", "--profile", "open_10k", "--engine", "wrk")
    code, _, errors = command(*words, cwd=tmp_path)
    assert code == 2
    assert "wrk cannot do open_10k: it cannot offer a rate" in errors
    # Of several profiles it does those it can, and the others are told.
    code, out, errors = command(
        *words, "--profile", "keepalive", "--rounds", "1", "--quick", "--runtime", "process",
        "--json", cwd=tmp_path, timeout=200,
    )  # fmt: skip
    assert code == 0, errors
    found = json.loads(out)
    assert [load["profile"] for one in found["servers"] for load in one["load"]] == ["keepalive"]
    assert "wrk cannot do open_10k: it cannot offer a rate" in found["notes"]
    code, _, errors = command("bench", "null", "--engine", "wrk2", cwd=tmp_path)
    assert code == 3
    assert "--wrk2 PATH" in errors
    code, _, errors = command("bench", "null", "--wrk2", "/x", cwd=tmp_path)
    assert code == 2
    assert "--engine wrk2" in errors
