"""How the command behaves when something is wrong: one clear line, the documented exit code,
what is known kept, nothing left running. Each test runs the real command as a process."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from httpmark.harness.tests.shared import command_process, peers
from httpmark.harness.tests.shared.command_process import last_line, run, start
from httpmark.harness.tests.shared.ports import is_listening, own_port, wait_listening

MANIFEST = """
name = "{name}"
title = "{name}"
language = "Python"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]
ready_timeout_s = 5.0

[process]
start = ["{{python}}", "{{source}}/server.py", "{{address}}", "{{port}}"]
"""

# Good at heart; the word in place of MANNER makes it odd.
SERVER = """
import os, socket, sys, threading
manner = "MANNER"
if manner == "dies-at-start":
    print("cannot find my teeth", file=sys.stderr)
    sys.exit(7)
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=512)
count = 0
def serve(connection):
    global count
    count += 1
    if manner == "dies-mid-run" and count > 300:
        print("out of teeth", file=sys.stderr, flush=True)
        os._exit(9)
    held = b""
    try:
        while piece := connection.recv(65536):
            held += piece
            heads = held.count(b"\\r\\n\\r\\n")
            held = held.rpartition(b"\\r\\n\\r\\n")[2]
            if manner != "mute":
                connection.sendall(ANSWER * heads)
    except OSError:
        pass
    connection.close()
ANSWER = (b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\n"
          b"Content-Length: 12\\r\\n\\r\\nHello World!")
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of odd servers for HTTPMARK_IMAGES."""
    folder = tmp_path / "images"
    for manner in ("plain", "dies-at-start", "dies-mid-run", "mute"):
        place = folder / manner.replace("-", "_")
        place.mkdir(parents=True)
        (place / "server.toml").write_text(MANIFEST.format(name=place.name))
        (place / "server.py").write_text(SERVER.replace("MANNER", manner))
    return folder


QUICK = ("run", "--runtime", "process", "--quick", "--suite", "seed")


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "--nonsense"), 2, "--nonsense"),
        (("run", "--server", "nginy"), 2, "did you mean nginx"),
        (("run", "--suite", "sed"), 2, "did you mean seed"),
        (("run", "--profile", "pipelines"), 2, "did you mean pipelined"),
        (("run", "--quick", "--full"), 2, "exclude each other"),
        (("run", "--port", "70000"), 2, "--port"),
        (("run", "--out", "/proc/nowhere"), 2, "--out"),
        (("bench",), 2, "SERVER...'; see httpmark bench --help"),
        (("calibrate", "--seconds", "nan"), 2, "not a number"),
        (("fuzz", "127.0.0.1:1", "--seconds", "nan"), 2, "not a number"),
        (("check",), 2, "TARGET"),
        (("check", "http://192.0.2.1:80/"), 2, "--allow-remote"),
        (("check", "ftp://127.0.0.1/"), 2, "only http://"),
        (("check", "http://127.0.0.1:99999/"), 2, "port"),
        (("check", "http://127.0.0.1:1/", "--suite", "seed"), 3, "nothing answers there"),
        (("report", "nowhere"), 2, "is this a run folder?"),
        (("judge", "nowhere"), 2, "is this a run folder?"),
        (("explain", "path_bite-80"), 2, "did you mean path_byte"),
        (("frobnicate",), 2, "frobnicate"),
    ],
)
def test_wrong_words_get_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    got, out, errors = run(*words, cwd=tmp_path)
    assert got == code, errors
    assert said in errors
    assert len(errors.strip().splitlines()) == 1, errors
    assert out == ""


@pytest.mark.process
def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with peers.peer(peers.mute) as peer:
        code, _, errors = run(*QUICK, "--port", str(peer.port), cwd=tmp_path)
    assert code == 3
    assert f"port {peer.port} on 127.0.0.1 is taken" in last_line(errors)


@pytest.mark.process
def test_a_server_that_dies_at_start_is_said_with_its_last_words(
    tmp_path: Path, images: Path
) -> None:
    port = own_port()
    code, _, errors = run(
        *QUICK, "--server", "dies_at_start", "--out", "r", "--port", str(port),
        cwd=tmp_path, images=images,
    )  # fmt: skip
    assert code == 3
    assert "cannot find my teeth" in errors
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert "cannot find my teeth" in json.dumps(result["servers"][0])
    assert not is_listening(port)


@pytest.mark.process
def test_a_server_that_dies_mid_run_keeps_what_was_seen(tmp_path: Path, images: Path) -> None:
    port = own_port()
    code, _, errors = run(
        *QUICK, "--server", "dies_mid_run", "--server", "null", "--out", "r",
        "--port", str(port), cwd=tmp_path, images=images,
    )  # fmt: skip
    assert code == 3
    assert "died" in errors
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    dead, other = result["servers"]
    assert "out of teeth" in dead["died"]
    suite = dead["compliance"]["suites"]["seed"]
    assert suite["score_percent"] is None
    assert suite["controls"]["passed"] > 0
    # The others go on.
    assert other["compliance"]["suites"]["seed"]["score_percent"] == 0.0
    assert (tmp_path / "r" / "report.html").stat().st_size > 1000
    assert not is_listening(port)


@pytest.mark.process
def test_a_mute_server_is_not_scored(tmp_path: Path, images: Path) -> None:
    code, _, errors = run(*QUICK, "--server", "mute", "--out", "r", cwd=tmp_path, images=images)
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    seed = result["servers"][0]["compliance"]["suites"].get("seed", {})
    assert seed.get("score_percent") is None
    assert code == 3
    assert "mute" in errors


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_what_it_has_and_leaves_nothing(
    tmp_path: Path, images: Path, number: signal.Signals, code: int
) -> None:
    port = own_port()
    process = start(
        *QUICK, "--server", "plain", "--server", "reference", "--out", "r",
        "--port", str(port), cwd=tmp_path, images=images,
    )  # fmt: skip
    wait_listening(port, until=True, seconds=60)
    time.sleep(1.0)
    process.send_signal(number)
    out, errors = process.communicate(timeout=30)
    assert "Traceback" not in out + errors
    assert process.returncode == code, errors
    assert "interrupted" in last_line(errors)
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert result["interrupted"] is True
    assert (tmp_path / "r" / "report.html").exists()
    assert not is_listening(port)
    children = subprocess.run(
        ["pgrep", "-f", str(images)], capture_output=True, text=True, check=False
    ).stdout
    assert children == ""


@pytest.mark.process
def test_a_killed_harness_leaves_no_server(tmp_path: Path, images: Path) -> None:
    port = own_port()
    process = start(
        *QUICK, "--server", "plain", "--out", "r", "--port", str(port),
        cwd=tmp_path, images=images,
    )  # fmt: skip
    wait_listening(port, until=True, seconds=60)
    process.kill()
    process.communicate(timeout=10)
    wait_listening(port, until=False, seconds=10)


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_said(tmp_path: Path, images: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    words = [*QUICK, "--server", "plain", "--out", str(small / "r")]
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not on this machine")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c",
         f'mount -t tmpfs -o size=512k tmpfs "{small}" && exec "$@"', "sh",
         *command_process.COMMAND, *words],
        cwd=tmp_path, env=command_process.environment(images),
        text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 3, done.stderr
    assert re.search("disk is full|No space left", last_line(done.stderr))


@pytest.mark.process
def test_what_a_server_logs_cannot_reach_the_terminal_as_an_escape_sequence(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("import sys\nsys.exit('\\x1b]0;owned\\x07\\x1b[2Jgone\\x9b31m')\n")
    code, out, errors = run(
        "check", "--serve", f"{sys.executable} {server} {{port}}", "--out", "r", cwd=tmp_path
    )
    assert code == 3
    assert "]0;owned" in errors
    assert "gone" in errors
    assert all(character.isprintable() or character == "\n" for character in out + errors), errors


@pytest.mark.process
def test_a_target_that_dies_under_check_is_said_and_its_evidence_kept(
    tmp_path: Path, images: Path
) -> None:
    port = own_port()
    server = subprocess.Popen(
        [sys.executable, str(images / "plain" / "server.py"), "127.0.0.1", str(port)]
    )
    try:
        wait_listening(port, until=True, seconds=10)
        with start(
            "check", f"127.0.0.1:{port}", "--suite", "seed", "--out", "r", "--json", "r.json",
            cwd=tmp_path,
        ) as process:  # fmt: skip
            written = tmp_path / "r" / "evidence.sqlite-wal"
            until = time.monotonic() + 60
            while not (written.is_file() and written.stat().st_size > 500_000):
                assert time.monotonic() < until, "no evidence was written"
                time.sleep(0.02)
            server.kill()
            server.wait()
            out, errors = process.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert "Traceback" not in errors
    assert process.returncode == 1
    assert "it refuses connections" in " ".join(out.splitlines()[:2])
    [told] = json.loads((tmp_path / "r.json").read_text())["servers"]
    assert "refuses connections since case" in told["died"]
    [crash] = told["crashes"]
    assert (crash["kind"], crash["blame"], crash["went_on"]) == ("died", "suspected", False)
    suite = told["compliance"]["suites"]
    assert suite["seed"]["score_percent"] is None
    assert suite["seed"]["controls"]["passed"] > 0


@pytest.mark.process
@pytest.mark.needs("docker")
def test_no_leave_for_docker_is_said(tmp_path: Path) -> None:
    code, _, errors = run(
        "run", "--runtime", "docker", "--server", "nginx", "--suite", "seed", "--out", "r",
        cwd=tmp_path, DOCKER_HOST="unix:///nowhere/docker.sock",
    )  # fmt: skip
    assert code == 3
    assert "ocker" in last_line(errors)
