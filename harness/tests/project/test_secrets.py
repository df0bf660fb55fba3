"""A value of ``--header`` goes over the wire, and is found in no file and on no screen."""

from __future__ import annotations

import base64
import html
import json
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.command_process import COMMAND

SECRET = "s3cr3t<of>the&owner"
LINE = ("--header", f"X-Api-Key: {SECRET}", "--header", "Cookie: id=c00kie-of-the-owner")
# Every form that a server of these tests tells a secret in; of a part, too.
HIDDEN = [
    "s3cr3t", "c00kie", quote(SECRET), html.escape(SECRET), "%3Cof%3E", "&lt;of&gt;",
    *(base64.b64encode(b"-" * ahead + SECRET.encode()).decode()[4:-4] for ahead in range(3)),
]  # fmt: skip


def told(request: bytes) -> bytes:
    """The request as a mirror, an error page and a careless application would tell it."""
    value = SECRET.encode() if SECRET.encode() in request else b"no key"
    return b"\n".join(
        (
            request, base64.b64encode(request), base64.b64encode(value), json.dumps(str(value))
            .encode(), html.escape(value.decode()).encode(), quote(value).encode(),
        )
    )  # fmt: skip


MASKED: list[bytes] = []  # requests that held a mask, which is never to be sent


def echoing(connection: socket.socket) -> None:
    """Takes all, and tells what it was sent in fields and content."""
    while request := peers.head(connection):
        if b"***" in request:
            MASKED.append(request)
        secret = SECRET.encode() if SECRET.encode() in request else b"no-key"
        connection.sendall(
            b"HTTP/1.1 200 Hello %b\r\nServer: %b\r\nSet-Cookie: a=%b\r\nContent-Length: %d\r\n\r\n"
            % (secret, secret, secret, len(told(request)))
            + told(request)
        )


def spoken(*words: str, cwd: Path) -> tuple[int, str]:
    """The exit code of a command, and what it prints on both streams."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=240, check=False, cwd=cwd
    )
    return done.returncode, done.stdout + done.stderr


def holding(folder: Path) -> list[str]:
    """The files below a folder that hold a secret in any form."""
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(one.encode() in path.read_bytes() for one in HIDDEN)
    )


@pytest.mark.process
@pytest.mark.timeout(900)
def test_no_file_and_no_output_holds_a_secret(tmp_path: Path) -> None:
    with peers.peer(echoing) as peer:
        target = f"http://127.0.0.1:{peer.port}/"
        found, said = spoken(
            "check", target, *LINE, "--suite", "rfc", "--suite", "seed", "--suite", "resilience",
            "--case", "host-*", "--case", "field_name_byte", "--case", "get-plain", "--full",
            "--case", "9112/6.3", "--outputs", "outputs", "--out", "run", "--json", "result.json",
            cwd=tmp_path,
        )  # fmt: skip
        assert found == 1, said
        texts = [said]
        for words in (
            ("replay", "host-twice-different", target, *LINE),
            ("replay", "host-twice-different", target, *LINE, "--minimise"),
            ("replay", "get-plain", target, *LINE, "--delivery", "two@17"),
            ("judge", "run"),
            ("judge", "--second-opinion", "run"),
            ("report", "run", "--out", "report.html"),
            ("findings", "run"),
            ("export", "run", "--json", "--out", "tables"),
            ("check", target, *LINE, "--rerun", "run", "--suite", "rfc", "--out", "again"),
        ):
            code, said = spoken(*words, cwd=tmp_path)
            assert "internal error" not in said, said
            assert code in (0, 1), said
            texts.append(said)
    assert not MASKED
    assert holding(tmp_path) == []
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) > 15
    for text in texts:
        assert not [one for one in HIDDEN if one in text], text
    assert "X-Api-Key: ***" in texts[0]
    assert "X-Api-Key: ***" in (tmp_path / "run" / "report.html").read_text()


DYING = """\
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    octets = connection.recv(65536)
    if b"Content-Length: +5" in octets:
        sys.exit("cannot take " + octets.decode("latin-1"))
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
    connection.close()
"""


@pytest.mark.process
def test_the_last_words_of_a_server_hold_no_secret(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    code, said = spoken(
        "check", "--serve", f"{sys.executable} dying.py {{port}}", *LINE, "--suite", "rfc",
        "--case", "content-length-plus-sign", "--out", "run", "--outputs", "outputs", cwd=tmp_path,
    )  # fmt: skip
    assert code == 1, said
    assert "cannot take" in (tmp_path / "run" / "result.json").read_text()
    assert holding(tmp_path) == []
    assert not [one for one in HIDDEN if one in said], said


@pytest.mark.process
def test_a_run_that_lacks_a_secret_says_what_it_needs(tmp_path: Path) -> None:
    """No mask is ever sent in its place."""
    with peers.peer(echoing) as peer:
        target = f"http://127.0.0.1:{peer.port}/"
        code, said = spoken(
            "check", target, *LINE, "--suite", "rfc", "--case", "host-*", "--out", "run",
            cwd=tmp_path,
        )  # fmt: skip
        assert code == 1, said
        before = peer.connections
        rerun = ("check", target, "--rerun", "run", "--suite", "rfc")
        assert spoken(*rerun, cwd=tmp_path) == (
            2,
            "httpmark: run: this run was made with the field X-Api-Key, and its value is not "
            "stored: give it again, as --header 'X-Api-Key: VALUE'\n",
        )
        for stars in ("***", "*" * len(SECRET)):
            words = ("replay", "host-missing", target, "--header", f"X-Api-Key: {stars}")
            assert spoken(*words, cwd=tmp_path) == (
                2, "httpmark: --header: X-Api-Key: replace *** by the value\n"
            )  # fmt: skip
        wrong = spoken("check", target, "--header", f"X-Api-Key {SECRET}", cwd=tmp_path)
        assert wrong == (
            2, "httpmark: --header: it is not a field line; write 'Name: value'\n"
        )  # fmt: skip
        assert peer.connections == before, "nothing was sent"


@pytest.mark.process
def test_a_field_of_the_user_is_not_taken_for_one_of_a_case(tmp_path: Path) -> None:
    """A case asks whether a trailer became the field that the user sends with each request."""
    code, said = spoken(
        "check", "--serve", f"{binaries.need('server')} --address 127.0.0.1 --port {{port}}",
        "--header", "Authorization: Bearer 0123456789", "--suite", "rfc", "--quick",
        "--case", "trailer-authorization", "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    assert code == 0, said


@pytest.mark.parametrize("name", ["action.yml", "ci/gitlab.yml"])
def test_the_templates_publish_no_evidence(name: str) -> None:
    """The run folder is apart from the folder of outputs, which alone is kept."""
    from httpmark.harness.tests.shared.repository import ROOT

    text = (ROOT / name).read_text()
    [line] = [one for one in text.splitlines() if "--outputs" in one]
    words = line.split()
    assert words[words.index("--out") + 1] != words[words.index("--outputs") + 1]
    assert "evidence.sqlite" not in text
