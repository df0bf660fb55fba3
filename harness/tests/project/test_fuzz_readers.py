"""Every reader of the harness holds its laws on mutated files, and on what was once found."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.tests import fuzz_readers
from httpmark.harness.tests.fuzz_readers import Finding, Fuzzed, fuzz
from httpmark.harness.tests.shared import fuzzed_readers
from httpmark.harness.tests.shared.fuzzed_readers import FOUND, READERS, Reader
from httpmark.harness.tests.shared.repository import ROOT

INPUTS = 250
BY_NAME = {reader.name: reader for reader in READERS}
ONCE_FOUND = sorted(FOUND.glob("*/*"))


@pytest.mark.parametrize("name", BY_NAME)
def test_a_reader_gives_a_value_or_its_error_whatever_it_reads(name: str, tmp_path: Path) -> None:
    done = fuzz(BY_NAME[name], tmp_path, seed=1, inputs=INPUTS)
    assert not done.findings, done.findings[0].why
    assert done.inputs == INPUTS
    assert done.edges > 5
    if name not in ("responses", "requests"):  # what those refuse is a value of the law's
        assert 0 < done.refused < INPUTS


@pytest.mark.parametrize("path", ONCE_FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_is_not_found_again(path: Path, tmp_path: Path) -> None:
    reader = BY_NAME[path.parent.name]
    for seed in range(6):  # a reader may draw how it reads
        said = fuzz_readers.tried(reader, path.read_bytes(), tmp_path, random.Random(seed))
        assert isinstance(said, str), said.why


def test_every_reader_that_had_finds_has_a_name_here() -> None:
    assert {path.parent.name for path in ONCE_FOUND} <= BY_NAME.keys()
    assert len(ONCE_FOUND) > 10


def made(read: fuzzed_readers.Reader | object, *words: bytes) -> Reader:
    return Reader("made", lambda: [b"a = 1\n"], read, words)  # type: ignore[arg-type]


def fuzzed(read: object, tmp_path: Path, *words: bytes) -> Fuzzed:
    return fuzz(made(read, *words), tmp_path, seed=1, inputs=2000)


def test_another_error_is_a_finding_with_its_input(tmp_path: Path) -> None:
    def read(octets: bytes, folder: Path, draw: random.Random) -> None:
        if b"[[" in octets:
            raise KeyError("what nobody documents")

    done = fuzzed(read, tmp_path, b"[[")
    assert b"[[" in done.findings[0].octets
    assert "KeyError" in done.findings[0].why
    assert "1 findings" in str(done)
    assert not fuzzed(read, tmp_path).findings  # no word has it, and chance does not make it


def test_a_complaint_of_two_lines_is_a_finding(tmp_path: Path) -> None:
    def read(octets: bytes, folder: Path, draw: random.Random) -> None:
        if octets != b"a = 1\n":
            raise HarnessError("one\ntwo" if b"!" in octets else "one")

    done = fuzzed(read, tmp_path, b"!")
    assert "not one line" in done.findings[0].why
    assert done.refused > 0


def test_one_that_takes_too_long_or_too_much_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_readers, "CPU_S_MAX", 0.2)

    def hangs(octets: bytes, folder: Path, draw: random.Random) -> None:
        while True:
            time.monotonic()

    def swells(octets: bytes, folder: Path, draw: random.Random) -> None:
        bytearray(2 * fuzz_readers.MEMORY_BYTES_MAX)

    for read, why in ((hangs, "Hung"), (swells, "MemoryError")):
        said = fuzz_readers.tried(made(read), b"", tmp_path, random.Random(1))
        assert isinstance(said, Finding)
        assert why in said.why
    assert fuzz_readers.tried(made(lambda *_: None), b"", tmp_path, random.Random(1)) == ""


def test_what_reaches_new_lines_is_kept_and_mutated(tmp_path: Path) -> None:
    """Four words in a row, of which chance alone makes one of many millions: each is an edge."""
    source = "def read(octets, folder, draw):\n" + "".join(
        f"{' ' * (depth + 1)}if octets[{depth}:{depth + 1}] == {word!r}:\n"
        for depth, word in enumerate((b"w", b"x", b"y", b"z"))
    )
    names: dict[str, object] = {}
    traced = str(ROOT / "harness" / "made.py")
    exec(compile(source + "     raise KeyError\n", traced, "exec"), names)
    done = fuzz(made(names["read"]), tmp_path, seed=1, inputs=60_000)
    assert done.kept >= 3
    assert done.findings[0].octets.startswith(b"wxyz")


def test_the_program_says_what_it_did_and_keeps_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--seconds", "0.5", "--seed", "4", "--found", str(tmp_path / "found")]
    assert fuzz_readers.main([*words, "--reader", "profile"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("seed 4\nprofile: ")
    assert "no finding" in told

    def read(octets: bytes, folder: Path, draw: random.Random) -> None:
        raise KeyError("always")

    monkeypatch.setattr(fuzz_readers, "READERS", (made(read),))
    assert fuzz_readers.main(words) == 1
    kept = list((tmp_path / "found").iterdir())
    assert [path.read_bytes() for path in kept] == [b"a = 1\n"]
    assert str(kept[0]) in capsys.readouterr().out
