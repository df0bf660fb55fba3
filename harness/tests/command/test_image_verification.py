"""`httpmark images verify`: rows for people and programs, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from httpmark.harness.command import image_verification
from httpmark.harness.servers.verification import Row, Seen, Verified
from httpmark.harness.tests.shared.command_process import run


def of(*verdicts: Seen) -> Verified:
    rows = tuple(Row(name="hello", verdict=one, seen="what was seen") for one in verdicts)
    return Verified(name="a", runtime="process", version=None, rows=rows)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((Seen.KEPT, Seen.NOT_SEEN), 0),
        ((Seen.KEPT, Seen.NO_START), 3),
        ((Seen.BROKEN, Seen.NO_START), 1),
    ],
)
def test_the_exit_code_is_that_of_the_contract(verdicts: tuple[Seen, ...], code: int) -> None:
    assert image_verification.exit_code([of(Seen.KEPT), of(*verdicts)]) == code
    assert image_verification.exit_code([of(one) for one in verdicts]) == code


def test_a_row_says_what_was_seen_and_what_to_do() -> None:
    row = Row(name="hello", verdict=Seen.BROKEN, seen="404", mend="answer 200")
    one = Verified(name="a", runtime="process", version="1", rows=(row,))
    assert [line.split() for line in image_verification.lines([one])] == [
        ["a", "(process):", "broken"],
        ["hello", "broken", "404"],
        ["do:", "answer", "200"],
    ]


MANIFEST = """
name = "lacking"
title = "Lacking"
language = "C"
version = "1"
homepage = "https://example.org/"
capabilities = ["hello"]
[process]
start = ["no-such-program", "{port}"]
[[process.needs]]
command = "no-such-program"
install = "get it"
"""


@pytest.mark.process
def test_the_command_verifies_each_server_and_tells_json(tmp_path: Path) -> None:
    (tmp_path / "images" / "lacking").mkdir(parents=True)
    (tmp_path / "images" / "lacking" / "server.toml").write_text(MANIFEST)
    code, out, _ = run(
        "images", "verify", "lacking", "null", "--runtime", "process", "--json",
        cwd=tmp_path, images=tmp_path / "images",
    )  # fmt: skip
    assert code == 3
    lacking, null = json.loads(out)["servers"]
    assert (lacking["name"], lacking["verdict"]) == ("lacking", "no start")
    assert lacking["rows"][0]["seen"] == "process: no-such-program not found: get it"
    assert (null["name"], null["verdict"], null["runtime"]) == ("null", "kept", "process")
    assert {row["name"] for row in null["rows"]} == {
        "ready", "version", "HTTP/1.0", "hello", "tls", "SIGTERM", "workers",
    }  # fmt: skip
