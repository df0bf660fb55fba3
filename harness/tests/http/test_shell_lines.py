"""Lines of shell: what they send is what was sent, and it goes to the target."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.http import shell_lines
from httpmark.harness.model.cases import Facts, Op, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD, EventKind
from httpmark.harness.servers import certificates
from httpmark.harness.tests.shared import peers

HERE = shell_lines.Place("127.0.0.1", 18080)
ENDED = r"printf '\n[%d] 0: closed, 124: open after 2 s\n' $?"
FACTS = Facts(host="a.example:81", address="127.0.0.1", port=18080)


def exchange(*writes: bytes, half_close: bool = False, unsent: bytes = b"") -> Exchange:
    events = [(EventKind.SENT, len(octets)) for octets in writes]
    events += [(EventKind.OWN_FIN, 0)] * half_close
    return Exchange(
        "c", "c", b"".join(writes) + unsent, b"", Outcome.HUNG, End.OPEN, None, 0, 0,
        timeline=b"".join(EVENT_RECORD.pack(kind, 0, octets) for kind, octets in events),
    )  # fmt: skip


@pytest.mark.process
@hypothesis.given(st.binary(max_size=120))
@hypothesis.example(b"-\0")
@hypothesis.example(b"\0005%d\\n'")
@hypothesis.settings(max_examples=60, deadline=None)
def test_a_pipe_sends_the_same_bytes(sent: bytes) -> None:
    line = shell_lines.piped(sent, HERE)
    command, _, rest = line.rpartition(" | ")
    assert rest == f"timeout 2 nc 127.0.0.1 18080; {ENDED}"
    assert "\n" not in line
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, timeout=10, check=True)
    assert said.stdout == sent


@pytest.mark.parametrize(
    ("facts", "client"),
    [
        (FACTS, "nc 127.0.0.1 18080"),
        (msgspec.structs.replace(FACTS, address="::1"), "nc ::1 18080"),
        (
            msgspec.structs.replace(FACTS, scheme="https"),
            "openssl s_client -quiet -connect 127.0.0.1:18080",
        ),
        (
            msgspec.structs.replace(FACTS, scheme="https", address="::1"),
            "openssl s_client -quiet -connect '[::1]:18080'",
        ),
        (msgspec.structs.replace(FACTS, unix="/run/a b.sock"), "nc -U '/run/a b.sock'"),
        (msgspec.structs.replace(FACTS, address=None), "nc HOST PORT"),
        (None, "nc HOST PORT"),
    ],
)
@pytest.mark.parametrize("host", [b"$(reboot):80", b"h:9", b"", None])
def test_a_line_leads_to_the_target_whatever_its_host_says(
    facts: Facts | None, client: str, host: bytes | None
) -> None:
    field = b"" if host is None else b"Host: " + host + b"\r\n"
    line = shell_lines.by_hand(exchange(b"GET / HTTP/1.1\r\n" + field + b"\r\n"), facts)
    assert line is not None
    assert line.endswith(f" | timeout 2 {client}; {ENDED}")


def test_every_case_that_fits_a_line_leads_to_its_target() -> None:
    """The place is that of the target in all of them, be the request as odd as it may."""
    known = loading.load()
    facts = msgspec.structs.replace(
        lookup.EXAMPLE, host="other.example:1234", address="127.0.0.9", port=4321
    )
    told = 0
    wrong: list[str] = []
    for family in known.families.values():
        if family.generated or known.inapplicable(family.id, facts) is not None:
            continue
        for planned in known.planned(family.id, facts):
            sends = [step.data for step in planned.case.steps if step.op is Op.SEND]
            if not sends:
                continue
            line = shell_lines.by_hand(exchange(*sends), facts)
            if line is None:
                continue
            told += 1
            if "nc 127.0.0.9 4321; printf" not in line and '("127.0.0.9", 4321)' not in line:
                wrong.append(f"{planned.case.id}: {line}")
    assert wrong == []
    assert told > 300


def test_a_long_line_is_none() -> None:
    assert shell_lines.by_hand(exchange(b"a" * shell_lines.LINE_CHARACTERS_MAX), FACTS) is None
    over_tls = msgspec.structs.replace(FACTS, scheme="https")
    assert shell_lines.by_hand(exchange(b"a", half_close=True), over_tls) is None


def test_the_request_that_follows_a_case_needs_no_time_of_its_own() -> None:
    canary = b"GET /?canary-c HTTP/1.1\r\n\r\n"
    sent = shell_lines.by_hand(exchange(b"a", canary), FACTS)
    assert sent is not None
    assert sent.startswith("printf 'aGET /?canary-c")
    assert shell_lines.by_hand(exchange(b"a", unsent=canary), FACTS) == sent


@hypothesis.given(st.binary(max_size=60))
@hypothesis.example(b"'")
@hypothesis.example(b'"')
@hypothesis.example(b"'\"\\")
@hypothesis.example(b"")
@hypothesis.settings(deadline=None)
def test_a_script_sends_the_same_bytes_and_has_no_quote_that_it_can_spare(octets: bytes) -> None:
    line = shell_lines.scripted([Step(Op.SEND, octets)], HERE)
    [calls] = [
        node
        for node in ast.walk(ast.parse(shlex.split(line)[2]))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sendall"
    ]
    assert ast.literal_eval(calls.args[0]) == octets
    if not set(octets) & set(b"'\""):
        assert line.count("'") == 2


@pytest.mark.process
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_writes_apart_and_a_half_close_are_said_in_python(family: int, tmp_path: Path) -> None:
    unix = family == socket.AF_UNIX
    with socket.socket(family) as listener:
        listener.bind(str(tmp_path / "s") if unix else ("127.0.0.1", 0))
        listener.listen()
        facts = msgspec.structs.replace(
            FACTS,
            unix=str(tmp_path / "s") if unix else None,
            port=80 if unix else listener.getsockname()[1],
        )
        line = shell_lines.by_hand(exchange(b"a\xff", b"b'", half_close=True), facts)
        assert line is not None
        with subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE) as client:
            talk = listener.accept()[0]
            received = b""
            while piece := talk.recv(100):
                received += piece
            talk.sendall(b"answer")
            talk.close()
            said, _ = client.communicate(timeout=20)
    assert received == b"a\xffb'"
    assert said == b"b'answer'\nclosed\n"


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on this machine")
@pytest.mark.parametrize("in_one_write", [True, False])
def test_over_tls_the_bytes_arrive(tmp_path: Path, in_one_write: bool) -> None:
    pair = certificates.Authority(tmp_path).server("127.0.0.1")
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(pair.certificate, pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        facts = msgspec.structs.replace(FACTS, scheme="https", port=listener.getsockname()[1])
        line = shell_lines.by_hand(
            exchange(*([b"Q\nR\n"] if in_one_write else [b"Q\n", b"R\n"])), facts
        )
        assert line is not None
        with subprocess.Popen(
            ["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as client:
            talk = own.wrap_socket(listener.accept()[0], server_side=True)
            received = b""
            while len(received) < 4:
                received += talk.recv(100)
            talk.sendall(b"answer")
            talk.close()
            said, _ = client.communicate(timeout=20)
    assert received == b"Q\nR\n"
    assert b"answer" in said
    assert b"] 0: closed, 124: open after 2 s" in said if in_one_write else len(said) > 10
    assert b"[124]" not in said
    assert b"timed out" not in said


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"GET /a?b HTTP/1.1\r\nHost: h\r\nX-A: 'v'\r\nX-B:\r\n\r\n", True),
        (b"POST /mirror HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", True),
        (b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", False),  # not valid
        (b"GET / HTTP/1.0\r\nHost: h\r\n\r\n", False),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", False),
    ],
)
def test_curl_says_what_it_can_say(octets: bytes, said: bool) -> None:
    assert (shell_lines.curl(octets, address="127.0.0.1", port=1) is not None) == said


@pytest.mark.process
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on this machine")
def test_the_curl_line_sends_the_same_request() -> None:
    seen: list[bytes] = []

    def keep(connection: socket.socket) -> None:
        seen.append(peers.head(connection))
        connection.sendall(peers.BAD)

    octets = b"DELETE /a?b=%41 HTTP/1.1\r\nHost: h\r\nX-A: 'v' \"w\"\r\nX-B:\r\n\r\n"
    with peers.peer(keep) as peer:
        line = shell_lines.curl(octets, address="127.0.0.1", port=peer.port)
        assert line is not None
        subprocess.run(["sh", "-c", line], capture_output=True, check=False, timeout=20)
    first, *fields = seen[0].split(b"\r\n")
    assert first == b"DELETE /a?b=%41 HTTP/1.1"
    assert sorted(fields) == sorted(
        [b"Host: 127.0.0.1:%d" % peer.port, b"X-A: 'v' \"w\"", b"X-B:", b"", b""]
    )


NC = """#!{python}
import socket, sys, threading
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
threading.Thread(target=lambda: s.sendall(sys.stdin.buffer.read()), daemon=True).start()
while octets := s.recv(100):
    sys.stdout.buffer.write(octets)
    sys.stdout.flush()
"""
"""What nc does: it sends its input, and keeps the connection until the other end closes it."""


@pytest.fixture
def with_nc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("nc") is None:
        (tmp_path / "nc").write_text(NC.format(python=sys.executable))
        (tmp_path / "nc").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.process
@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.usefixtures("with_nc")
def test_a_line_by_hand_half_closes_nothing_and_tells_a_close_from_silence(
    closes: bool, writes: int
) -> None:
    """A server that sees the end of what is sent may answer otherwise, or close for that reason."""
    half_closed: list[bool] = []

    def talk(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(b"answer")
        connection.settimeout(0.8)
        try:
            while connection.recv(100):
                pass
            half_closed.append(True)
        except TimeoutError:
            half_closed.append(False)
        if not closes:
            connection.settimeout(10)
            connection.recv(100)

    with peers.peer(talk) as peer:
        facts = msgspec.structs.replace(FACTS, port=peer.port)
        line = shell_lines.by_hand(exchange(*[b"a", b"b"][:writes]), facts)
        assert line is not None
        said = subprocess.run(["sh", "-c", line], capture_output=True, timeout=20, check=False)
    assert half_closed == [False]
    assert b"answer" in said.stdout
    told = {
        (1, True): b"[0] 0: closed",
        (1, False): b"[124] 0: closed, 124: open",
        (2, True): b"\nclosed\n",
        (2, False): b"\ntimed out\n",
    }
    assert told[writes, closes] in said.stdout


def recorded(*events: tuple[EventKind, int, int], end_us: int = 0) -> Exchange:
    """An exchange that wrote ``a`` and ``b``, with this timeline of kinds, bytes and times."""
    return Exchange(
        "c", "c", b"ab", b"", Outcome.HUNG, End.OPEN, None, end_us, 0,
        timeline=b"".join(EVENT_RECORD.pack(kind, at_us, n) for kind, n, at_us in events),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("between", "at_us", "said"),
    [
        ((), 900, 's.sendall(b"a"); time.sleep(0.3); s.sendall(b"b")'),
        ((), 1_200_900, 's.sendall(b"a"); time.sleep(1.2); s.sendall(b"b")'),
        (
            ((EventKind.RECEIVED, 9, 500),),
            900,
            's.sendall(b"a"); select.select([s], [], [], 2)[0] and print(s.recv(65536)); '
            's.sendall(b"b")',
        ),
    ],
)
def test_a_line_leaves_as_much_time_between_writes_as_the_case_did(
    between: tuple[tuple[EventKind, int, int], ...], at_us: int, said: str
) -> None:
    sent = recorded((EventKind.SENT, 1, 0), *between, (EventKind.SENT, 1, at_us))
    line = shell_lines.by_hand(sent, FACTS)
    assert line is not None
    assert said in line


def test_a_line_waits_as_long_as_the_exchange_took() -> None:
    for end_us, seconds in ((0, 2), (1_999_999, 2), (6_900_000, 7)):
        line = shell_lines.by_hand(recorded((EventKind.SENT, 2, 0), end_us=end_us), FACTS)
        assert line is not None
        assert f"| timeout {seconds} nc" in line
        assert f"open after {seconds} s" in line


def test_a_comment_ends_at_its_line_end() -> None:
    assert shell_lines.commented("httpmark check 'é'") == "httpmark check 'é'"
    assert shell_lines.commented("a\nsuite = 1") == r"a\nsuite = 1"
