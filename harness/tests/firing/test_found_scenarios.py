"""A find as a scenario: its file, its rule, its folder."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from click.testing import CliRunner

from httpmark.harness.catalogue import loading
from httpmark.harness.command import cli
from httpmark.harness.firing import found_scenarios, fuzz, targets
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.tests.shared import peers


@pytest.mark.parametrize("octet", range(256))
def test_any_byte_of_a_find_survives_its_file(octet: int, tmp_path: Path) -> None:
    octets = b"GET /" + bytes((octet,)) + b"'{h}\\x00 HTTP/1.1\r\nHost: a:1\r\n\r\n"
    find = fuzz.Find(fuzz.Kind.ACCEPTED, "request line", octets, "200")
    found_scenarios.save(find, tmp_path, host="a:1", command="x")
    known = loading.load(tmp_path)
    one = targets.Target(name="peer", address="127.0.0.1", port=1, host="a:1")
    facts = one.facts()
    [planned] = known.planned(find.slug, facts)
    assert planned.case.steps[0].data == octets


def test_a_find_asks_for_its_rule_and_tolerates_what_the_catalogue_does() -> None:
    head = b"POST /a HTTP/1.1\r\nHost: a:1\r\n"

    def asked(octets: bytes) -> found_scenarios.Demand:
        return found_scenarios.demand(fuzz.Find(fuzz.Kind.ACCEPTED, "", octets, "200"))

    plus = asked(head + b"Content-Length: +0\r\n\r\n")
    assert (plus.clause, plus.passes, plus.allows) == ("RFC 9112 6.3", ("R400C",), ())
    words = asked(head.replace(b"/a ", b"/a  ") + b"\r\n")
    assert (words.clause, words.passes, words.allows) == ("RFC 9112 3", ("REJ301",), ("ACC",))
    nul = asked(head + b"X: \x00y\r\n\r\n")
    assert (nul.clause, nul.level, nul.allows) == ("RFC 9110 5.5", "MUST", ("ACC; field? X = y",))
    both = b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    assert asked(head + both).allows == ("ACC; content? a; close",)


def test_a_folder_that_cannot_be_written_is_told_before_the_search() -> None:
    with peers.peer(peers.mute) as peer:
        arguments = ["fuzz", f"http://127.0.0.1:{peer.port}/", "--out", "/proc/nope"]
        result = CliRunner().invoke(cli.httpmark, arguments)
        assert peer.connections == 0
    assert isinstance(result.exception, HarnessError)
    assert str(result.exception).startswith("--out /proc/nope: ")
    assert result.output == ""


def test_making_sure_leaves_nothing_behind(tmp_path: Path) -> None:
    found_scenarios.ready(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_find_is_saved_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = fuzz.Find(fuzz.Kind.ACCEPTED, "request line", b"GET / HTTP/1.1\r\n\r\n", "200")
    path = found_scenarios.save(find, tmp_path, host="a:1", command="x")
    before = path.read_text()

    def full(file: Path, text: str, *_: object) -> int:
        file.write_bytes(text[:20].encode())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(HarnessError, match="No space left on device; name another folder"):
        found_scenarios.save(find, tmp_path, host="a:1", command="y")
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
