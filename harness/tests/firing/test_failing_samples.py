"""Which very large families are thinned: those that fail already, and that do not bind."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import failing_samples, targets
from httpmark.harness.firing.case_stream import CaseStream
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()
PAIRS = ["path_pair", "query_pair", "host_port"]
LEFT_OUT = 62_016 - 2_001


def refusing(is_refused: Callable[[bytes], bool]) -> peers.Handler:
    def handler(connection: socket.socket) -> None:
        octets = peers.head(connection)
        status = b"400 Bad Request" if is_refused(octets) else b"200 OK"
        connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n" % status)
        connection.sendall(b"Connection: close\r\n\r\n")

    return handler


def thinned(folder: Path, handler: peers.Handler) -> tuple[dict[str, int], CaseStream, list[int]]:
    """What is thinned at a server, the stream afterwards, and what its progress was told."""
    told: list[int] = []
    with peers.peer(handler) as peer, Evidence(folder / "e.sqlite", create=True) as evidence:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        evidence.set_facts("peer", target.facts())
        fired = suite_results.Fired()
        stream = CaseStream(KNOWN, target, evidence, fired, progress=told.append)
        failing_samples.thin(stream, PAIRS)
        assert not list(evidence.attempts("peer", family="path_pair")), "a sample is not kept"
    return fired.thinned, stream, told


@pytest.mark.process
def test_a_family_that_fails_already_is_thinned(tmp_path: Path) -> None:
    """As by h11: bytes that are not ASCII are refused, a malformed pair of others is served."""
    found, stream, told = thinned(
        tmp_path, refusing(lambda octets: not re.match(rb"[!-~]+ [!-~]+ HTTP", octets))
    )
    assert found == {"path_pair": LEFT_OUT, "query_pair": LEFT_OUT}
    assert sum(1 for _ in stream.cases(["path_pair"])) == 2001
    assert sum(1 for _ in stream.cases(["host_port"])) == KNOWN.families["host_port"].count
    assert sum(told) > 2 * LEFT_OUT, "the progress comes to its end"


@pytest.mark.process
def test_a_family_of_which_few_fail_is_asked_whole(tmp_path: Path) -> None:
    hole = re.compile(rb"%[!-.]")  # 14 of 256 first bytes
    found, stream, _ = thinned(tmp_path, refusing(lambda octets: not hole.search(octets)))
    assert found == {}
    assert sum(1 for _ in stream.cases(["query_pair"])) == 62_016


@pytest.mark.process
def test_where_one_place_is_good_only_the_other_is_thinned(tmp_path: Path) -> None:
    found, _, _ = thinned(tmp_path, refusing(lambda octets: b"?" not in octets.split(b"\r\n")[0]))
    assert found == {"query_pair": LEFT_OUT}


def test_only_what_does_not_bind_can_be_thinned() -> None:
    large = [one for one in KNOWN.families.values() if quick_look.is_very_large(one)]
    assert {one.id for one in large} == {"path_pair", "query_pair"}
    assert not any(one.level.is_binding for one in large)


def test_what_is_left_out_is_said_in_one_line() -> None:
    told = quick_look.thinned({"query_pair": 60_015, "path_pair": 60_015})
    assert told.startswith("120,030 requests of path_pair and query_pair are left out, because")
    assert "\n" not in told
