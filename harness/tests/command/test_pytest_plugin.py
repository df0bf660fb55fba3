"""The pytest plugin, as projects use it: an item per case, a batch per suite, -k and xdist."""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.servers import binaries, certificates
from httpmark.harness.tests.shared import crashing_server, peers
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.repository import ROOT


def pytest_run(
    folder: Path, *words: str, xdist: bool = False, installed: bool = False
) -> tuple[int, str]:
    """Run pytest in a folder.

    :param installed: with the plugins that are installed, not with those named here alone.
    """
    plugins = [] if installed else ["-W", "error", "-p", "httpmark.harness.command.pytest_plugin"]
    plugins += ["-p", "xdist", "-n", "2"] if xdist else []
    switch = {} if installed else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rA", *words],
        cwd=folder, text=True, capture_output=True, timeout=240, check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **switch, "COLUMNS": "120"},
    )  # fmt: skip
    assert "INTERNALERROR" not in done.stdout
    return done.returncode, done.stdout + done.stderr


def counts(out: str) -> dict[str, int]:
    last = [line for line in out.splitlines() if re.search(r"\d+ \w+.* in [\d.]+s", line)][-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


@pytest.mark.process
def test_there_is_an_item_for_each_case(project: Path) -> None:
    with listening("server") as url:
        code, out = pytest_run(project, f"--httpmark={url}", "--collect-only", "-q")
    assert code == 0
    ids = [line.rpartition("::")[2] for line in out.splitlines() if line.startswith("httpmark::")]
    known = loading.load()
    checks = {id for id in ids if id.startswith("RESP-")}
    assert len(checks) == 36
    assert set(ids) - checks == {
        family.id
        for family in known.families.values()
        if not (family.suite == "seed" and family.level == "CTRL")
    }
    nodes = [line for line in out.splitlines() if line.startswith("httpmark::")]
    assert len(set(nodes)) == len(nodes)


@pytest.mark.process
def test_a_failure_has_its_rule_and_its_reproducer_and_only_what_is_chosen_is_fired(
    project: Path,
) -> None:
    with listening("null") as url:
        code, out = pytest_run(
            project, f"--httpmark={url}", "--httpmark-suite=rfc", "-k", "host-missing or get-plain"
        )
        assert code == 1
        assert f"httpmark replay host-missing {url}" in out
        assert re.search(r"printf 'GET .*\| timeout 2 nc 127\.0\.0\.1 \d+", out)
        assert "MUST: RFC 9112 3.2" in out
        assert "FAILED httpmark::rfc::host-missing" in out
        assert "PASSED httpmark::rfc::get-plain" in out
        assert "Traceback" not in out
        # By number as well; a chosen few take no whole suite's time.
        code, out = pytest_run(project, f"--httpmark={url}", "-k", "HOST-01")
    assert "FAILED httpmark::rfc::host-missing" in out
    found = counts(out)
    assert found.pop("deselected") > 100
    assert found == {"failed": 1}
    assert re.search(r"collected \d+ items / \d+ deselected / 1 selected", out)


@pytest.mark.process
def test_a_baseline_makes_an_xfail_and_strict_a_failure(project: Path) -> None:
    (project / "httpmark.toml").write_text(
        '[check]\nbaseline = "known.toml"\nstrict-baseline = true\n'
    )
    (project / "known.toml").write_text(
        '[[expected]]\nid = "host-missing"\noutcome = "any"\nreason = "old clients"\n'
    )
    words = ("--httpmark-suite=rfc", "-k", "HOST-01")
    with listening("null") as url:
        code, out = pytest_run(project, f"--httpmark={url}", *words)
    assert code == 0, out
    assert "XFAIL httpmark::rfc::host-missing - old clients" in out
    with listening("server") as url:
        code, out = pytest_run(project, f"--httpmark={url}", *words)
    assert code == 1
    assert "remove it" in " ".join(out.split())


@pytest.mark.process
@pytest.mark.parametrize("own_path", [True, False])
def test_the_configuration_says_how_the_server_is_addressed(project: Path, own_path: bool) -> None:
    """Path, host and field lines, as ``httpmark check`` does."""

    def picky(connection: socket.socket) -> None:
        while request := peers.head(connection):
            known = request.startswith(b"GET /app") and b"\r\nHost: a.example\r\n" in request
            known = known and b"\r\nX-Key: k\r\n" in request
            connection.sendall(peers.OK if known else peers.NOT_FOUND)

    path = "/other" if own_path else "/app"
    (project / "httpmark.toml").write_text(
        f'[check]\npath = "{path}"\nhost = "a.example"\nheader = ["X-Key: k"]\n'
    )
    with peers.peer(picky) as peer:
        code, out = pytest_run(
            project, f"--httpmark=http://127.0.0.1:{peer.port}/{'app' if own_path else ''}",
            "--httpmark-suite=rfc", "-k", "get-plain",
        )  # fmt: skip
    assert code == 0, out


@pytest.mark.process
@pytest.mark.parametrize(("said", "few"), [("jobs = 1\n", True), ("", False)])
def test_the_configuration_says_how_many_connections_are_borne(
    project: Path, said: str, few: bool
) -> None:
    lock = threading.Lock()
    under_way = 0
    most: list[int] = []

    def counted(connection: socket.socket) -> None:
        """Count what waits for an answer; a connection's end may be seen late."""
        nonlocal under_way
        while peers.head(connection):
            with lock:
                under_way += 1
                most.append(under_way)
            time.sleep(0.02)
            with lock:
                under_way -= 1
            connection.sendall(peers.OK)

    (project / "httpmark.toml").write_text(f"[check]\n{said}")
    with peers.peer(counted) as peer:
        pytest_run(
            project, f"--httpmark=http://127.0.0.1:{peer.port}/", "--httpmark-suite=rfc",
            "-k", "host- or get-plain",
        )  # fmt: skip
    assert len(most) > 30
    assert (max(most) <= 8) is few, max(most)


@pytest.mark.process
@pytest.mark.parametrize(("mine", "code"), [(True, 0), (False, 1)])
def test_the_configuration_says_whom_to_trust(project: Path, mine: bool, code: int) -> None:
    folders = (project / "a", project / "b")
    for folder in folders:
        folder.mkdir()
    authorities = [certificates.Authority(folder) for folder in folders]
    pair = authorities[0].server("127.0.0.1")
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(pair.certificate, pair.key)

    def encrypted(connection: socket.socket) -> None:
        with own.wrap_socket(connection, server_side=True) as talk:
            while peers.head(talk):
                talk.sendall(peers.OK)

    trusted = authorities[0 if mine else 1].certificate
    (project / "httpmark.toml").write_text(f'[check]\ncacert = "{trusted}"\n')
    with peers.peer(encrypted) as peer:
        found, out = pytest_run(
            project, f"--httpmark=https://127.0.0.1:{peer.port}/", "--httpmark-suite=rfc",
            "-k", "get-plain",
        )  # fmt: skip
    assert found == code, out


@pytest.mark.process
def test_workers_of_xdist_fire_once_and_agree(project: Path) -> None:
    (project / "test_log.py").write_text("def test_own():\n    assert True\n")
    words = (
        "--httpmark-suite=smuggling", "--httpmark-suite=rfc", "-k",
        "CLTE-0 or HOST-0 or path_octet_last or test_own",
    )  # fmt: skip
    with listening("null") as url:
        code, alone = pytest_run(project, f"--httpmark={url}", *words)
        assert code == 1
        code, shared = pytest_run(project, f"--httpmark={url}", *words, xdist=True)
        assert code == 1
    told = {
        name: counts(out) for name, out in (("alone", alone), ("shared", shared))
    }  # fmt: skip
    for found in told.values():
        found.pop("deselected", None)
    assert told["alone"] == told["shared"]
    assert told["alone"]["failed"] > 3
    verdicts = re.compile(r"^(PASSED|FAILED|SKIPPED) (httpmark::\S+)", re.MULTILINE)
    assert set(verdicts.findall(alone)) == set(verdicts.findall(shared))


@pytest.mark.process
def test_a_server_that_is_not_there_fails_in_one_line(project: Path) -> None:
    code, out = pytest_run(
        project, "--httpmark=http://127.0.0.1:1/", "--httpmark-suite=rfc", "-k", "get-plain"
    )
    assert code == 1
    assert "nothing answers there: is the server running?" in out
    assert "Traceback" not in out


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--httpmark=http://192.0.2.1/",), "--allow-remote"),
        (("--httpmark=http://127.0.0.1:1/", "--httpmark-suite=rcf"), "did you mean rfc"),
        (("--httpmark=http://127.0.0.1:1/", "--httpmark-baseline=no.toml"), "that exists"),
    ],
)
def test_wrong_words_are_a_usage_error(project: Path, words: tuple[str, ...], said: str) -> None:
    code, out = pytest_run(project, *words)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert said in out
    assert "Traceback" not in out


OWN = """
import urllib.request

def get(url):
    with urllib.request.urlopen(url + "hello", timeout=5) as answer:
        return answer.status, answer.read()

def test_session(httpmark_server):
    assert get(httpmark_server) == (200, b"Hello World!")

def test_again(httpmark_server):
    assert get(httpmark_server) == (200, b"Hello World!")

def test_two(httpmark_serve):
    one, other = httpmark_serve(COMMAND), httpmark_serve(COMMAND)
    assert one != other
    assert get(one) == get(other) == (200, b"Hello World!")

def test_dead(httpmark_serve):
    httpmark_serve("false {port}")
"""


@pytest.mark.process
def test_fixtures_start_servers_and_stop_them(project: Path) -> None:
    server = project / "my-server"
    server.symlink_to(binaries.need("server"))
    command = f"{server} --address 127.0.0.1 --port {{port}} --workers 1"
    (project / "test_own.py").write_text(f"COMMAND = {command!r}\n{OWN}")
    (project / "pyproject.toml").write_text(f"[tool.httpmark.check]\nserve = {command!r}\n")
    code, out = pytest_run(project)
    assert code == 1
    assert counts(out) == {"passed": 3, "failed": 1}
    assert "FAILED test_own.py::test_dead" in out
    left = ["pgrep", "-af", str(server)]
    assert subprocess.run(left, capture_output=True, text=True, check=False).stdout == ""
    (project / "pyproject.toml").unlink()
    code, out = pytest_run(project, "-k", "test_session")
    assert code == 1
    assert "name the server with --httpmark-serve" in out


@pytest.mark.process
def test_items_and_fixtures_may_share_a_command(project: Path) -> None:
    command = f"{binaries.need('server')} --address 127.0.0.1 --port {{port}} --workers 1"
    (project / "test_own.py").write_text(f"COMMAND = {command!r}\n{OWN}")
    words = ("--httpmark-suite=rfc", "-k", "test_session or get-plain")
    code, out = pytest_run(project, f"--httpmark-serve={command}", *words)
    assert code == 0, out
    assert counts(out)["passed"] == 2


@pytest.mark.process
def test_a_relative_command_is_found_in_the_project(project: Path) -> None:
    (project / "my-server").symlink_to(binaries.need("server"))
    (project / "test_own.py").write_text(f"COMMAND = 'none {{port}}'\n{OWN}")
    command = "./my-server --address 127.0.0.1 --port {port} --workers 1"
    code, out = pytest_run(project, f"--httpmark-serve={command}", "-k", "test_session")
    assert code == 0, out


@pytest.mark.process
def test_nothing_happens_where_nothing_is_asked(project: Path) -> None:
    (project / "test_own.py").write_text("def test_own():\n    pass\n")
    code, out = pytest_run(project)
    assert code == 0
    assert counts(out) == {"passed": 1}


def test_an_installation_registers_the_plugin() -> None:
    words = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert words["project"]["entry-points"]["pytest11"] == {
        "httpmark": "httpmark.harness.command.pytest_plugin"
    }


@pytest.mark.process
@pytest.mark.skipif(
    not importlib.metadata.entry_points(group="pytest11", name="httpmark"),
    reason="this environment was installed before there was a plugin",
)
def test_an_installed_plugin_is_found_by_itself(project: Path) -> None:
    with listening("server") as url:
        words = (f"--httpmark={url}", "--httpmark-suite=rfc", "-k", "get-plain")
        code, out = pytest_run(project, *words, installed=True)
    assert code == 0, out
    assert "PASSED httpmark::rfc::get-plain" in out


@pytest.mark.process
def test_a_case_that_kills_the_server_fails_and_the_others_are_judged(project: Path) -> None:
    code, out = pytest_run(
        project, f"--httpmark-serve={crashing_server.command('gzip')}", "--httpmark-suite=rfc",
        "-k", "transfer-encoding-gzip-chunked-lines or get-plain",
    )  # fmt: skip
    assert code == 1
    assert "FAILED httpmark::rfc::transfer-encoding-gzip-chunked-lines" in out
    assert "killed by SIGABRT" in out
    assert "PASSED httpmark::rfc::get-plain" in out
