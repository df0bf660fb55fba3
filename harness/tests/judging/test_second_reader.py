"""The second opinion: told where the two readers differ, silent where they agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from httpmark.harness.command import cli
from httpmark.harness.judging import second_reader
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.exchanges import End, Exchange, Outcome

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def kept(path: Path, *answers: bytes) -> Path:
    with Evidence(path / "evidence.sqlite", create=True) as evidence:
        evidence.add(
            "peer",
            [
                Exchange(f"c-{n}", "f", b"GET", octets, Outcome.ANSWERED, End.CLOSED, 1, 2, 3)
                for n, octets in enumerate(answers)
            ],
        )
    return path


@pytest.mark.parametrize(
    ("answer", "differ"),
    [
        (OK, False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, False),
        (b"\x15\x03\x01", False),  # neither finds a response
        (OK.replace(b"\r\n", b"\n"), True),  # h11 accepts bare LF
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),  # and a missing SP
    ],
)
def test_they_differ_where_h11_is_lenient(tmp_path: Path, answer: bytes, differ: bool) -> None:
    with Evidence(kept(tmp_path, answer) / "evidence.sqlite") as evidence:
        found = second_reader.disagreements(evidence)
    assert bool(found) == differ
    if found:
        assert (found[0].server, found[0].h11, found[0].received) == ("peer", "200", answer)


def test_alike_answers_are_one_line(tmp_path: Path) -> None:
    lenient = OK.replace(b"\r\n", b"\n")
    folder = kept(tmp_path, lenient, lenient, OK, b"HTTP/1.1 200\r\n\r\n")
    with Evidence(folder / "evidence.sqlite") as evidence:
        found = second_reader.disagreements(evidence)
    assert [one.exchanges for one in found] == [2, 1]
    told = CliRunner().invoke(cli.httpmark, ["judge", str(folder), "--second-opinion"])
    assert told.exit_code == 0
    assert "Our reader and h11 differ in 2 kinds of answers" in told.output
