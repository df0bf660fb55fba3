"""The harness's readers of bytes that others wrote, as fuzzing sees them, and the laws of each.

Each input gives a value, or the error that the reader documents, in one line. What else is raised
is a finding.
"""

from __future__ import annotations

import functools
import random
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue import load_profiles, scenario_files, toml_files
from httpmark.harness.catalogue.mistakes import Collected, Mistakes
from httpmark.harness.command import configuration
from httpmark.harness.gate import baseline
from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model import run_folder
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Verdict, Word
from httpmark.harness.servers import manifests
from httpmark.harness.tests.shared import made_exchanges, made_run
from httpmark.harness.tests.shared.repository import ROOT

FOUND = ROOT / "harness" / "tests" / "golden" / "fuzz"
"""A folder for each reader, with the inputs that once were findings."""
NATIVE_CORPUS = ROOT / "harness" / "native" / "tests" / "corpus" / "probe_response_framing"
INPUT_BYTES_MAX = 60_000


class Unlawful(Exception):
    """A reader gave what it must not give."""


def must(condition: object, what: str) -> None:
    if not condition:
        raise Unlawful(what)


@dataclass(frozen=True)
class Reader:
    """One reader."""

    name: str
    samples: Callable[[], list[bytes]]
    """What it reads without a mistake; or what others mutate into that."""
    read: Callable[[bytes, Path, random.Random], object]
    """Reads bytes, with an empty folder at hand, and holds the laws.

    :raises HarnessError: where it documents it.
    """
    words: tuple[bytes, ...] = ()
    """What its inputs are made of."""
    mutate: Callable[[bytes, Path, random.Random], bytes] | None = None
    """A mutation of its own kind of file, taken half of the time."""


def held(reader: Reader, octets: bytes, folder: Path, draw: random.Random) -> str:
    """Let a reader read, and give what it complained of; empty: nothing.

    :raises Exception: whatever is a finding.
    """
    try:
        reader.read(octets, folder, draw)
    except Mistakes as error:
        lines = tuple(error.lines)
    except HarnessError as error:
        lines = (str(error),)
    else:
        return ""
    for line in lines:
        must(line.strip() and "\n" not in line, f"a complaint that is not one line: {line!r:.200}")
    return str(lines[0])


# --- mutations


_TOKEN = re.compile(rb'"[^"\n]*"|-?[0-9][0-9.eE+-]*|true|false|null|[A-Za-z][A-Za-z-]*')


def mutated(reader: Reader, octets: bytes, folder: Path, draw: random.Random) -> bytes:
    """The same with one to five changes."""
    if reader.mutate is not None and draw.random() < 0.5:
        return reader.mutate(octets, folder, draw)
    for _ in range(draw.randrange(1, 6)):
        octets = _changed(octets, reader.words, draw)[:INPUT_BYTES_MAX]
    return octets


def _changed(octets: bytes, words: tuple[bytes, ...], draw: random.Random) -> bytes:
    at = draw.randrange(len(octets) + 1)
    size = draw.choice((1, 1, 4, 16, 200))
    kind = draw.randrange(7)
    if kind == 0:
        return octets[:at] + draw.randbytes(1) + octets[at + 1 :]
    if kind == 1:
        return octets[:at] + octets[at + size :]
    if kind == 2:
        return octets[:at] + octets[at : at + size] * draw.choice((2, 2, 50)) + octets[at:]
    if kind == 3:
        return octets[:at]
    if kind == 4 and words:
        count = draw.choice((1, 1, 1, 3, 1500, 20_000))
        return octets[:at] + draw.choice(words) * count + octets[at:]
    tokens = list(_TOKEN.finditer(octets))
    if not tokens:
        return octets
    gone = draw.choice(tokens)
    new = draw.choice(words) if words and draw.random() < 0.6 else draw.choice(tokens)[0]
    return octets[: gone.start()] + new + octets[gone.end() :]


# --- the readers of messages


def _responses() -> list[bytes]:
    stored = [path.read_bytes()[2:] for path in sorted(NATIVE_CORPUS.iterdir())]
    return [one for one in stored if len(one) < 4000] + [
        made_exchanges.ok(),
        made_exchanges.REFUSED,
    ]


Said = tuple[str, object]


def _strictly(octets: bytes, method: bytes, *, ended: bool) -> Said:
    try:
        return "response", response_reader.read(octets, method=method, ended=ended)
    except response_reader.Malformed as error:
        return "malformed", (error.why, error.at)
    except response_reader.Incomplete:
        return "incomplete", None


def _read_response(octets: bytes, _folder: Path, draw: random.Random) -> None:
    method = draw.choice((b"GET", b"GET", b"HEAD", b"CONNECT"))
    _, value = said = _strictly(octets, method, ended=True)
    loose = response_reader.read_on(octets, 0, method=method, ended=True)
    if isinstance(value, response_reader.Response):
        must(value.end <= len(octets), f"it ends at {value.end} of {len(octets)} bytes")
        must(len(value.content) <= len(octets), "more content than bytes")
        must(loose is not None and loose.response == value, f"read_on() says {loose}")
        must(loose is not None and not loose.faults, f"read_on() names faults: {loose}")
    elif isinstance(value, tuple):
        must(value[1] <= len(octets), f"a fault at {value[1]} of {len(octets)} bytes")
    for cut in {draw.randrange(len(octets) + 1) for _ in range(4)}:
        early = _strictly(octets[:cut], method, ended=False)
        # What only the close ends is longer when more comes.
        is_open = isinstance(early[1], response_reader.Response) and not early[1].complete
        is_same = early[0] == "incomplete" or is_open or early == said
        must(is_same, f"{cut} bytes are {early}, all are {said}")
    response_reader.final_status(octets)
    response_reader.second_opinion(octets, ended=draw.random() < 0.5)


def _read_requests(octets: bytes, _: Path, draw: random.Random) -> None:
    read = request_reader.read(octets)
    must(read.certain <= len(octets), f"certain up to {read.certain} of {len(octets)}")
    for one in read.requests:
        must(0 <= one.start <= one.end <= len(octets), f"out of bounds: {one}")
        must(len(one.content(octets)) <= len(octets), "more content than bytes")
    whole = [one for one in read.requests if one.whole and one.valid]
    for cut in {draw.randrange(len(octets) + 1) for _ in range(4)}:
        early = request_reader.read(octets[:cut]).requests
        done = [one for one in early if one.whole and one.valid]
        must(done == whole[: len(done)], f"{cut} bytes have requests that all have not")


def _requests() -> list[bytes]:
    return [
        made_exchanges.GET * 2, made_exchanges.HEAD, made_exchanges.CONNECT, made_exchanges.OLD,
        made_exchanges.POST + made_exchanges.GET, made_exchanges.BROKEN,
        b"POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n" + made_exchanges.GET,
    ]  # fmt: skip


_HTTP_WORDS = (
    b"\r\n", b"\r\n\r\n", b"\n", b"\r", b":", b" ", b"\t", b",", b";", b"HTTP/1.1 ", b"HTTP/1.0 ",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"0",
    b"f", b"9", b"100", b"204", b"304", b"101", b"99999999999999999999", b"0\r\n\r\n", b"\x00",
    b"\xff", b"X: y\r\n", b"1\r\na\r\n",
)  # fmt: skip


# --- the readers of TOML and JSON


_TOML_WORDS = (
    b"[", b"]", b"[[", b"{", b"}", b".a", b'"a\\nb"', b"=", b"\n", b'"', b'"""', b"'", b"'''",
    b"1", b"-1", b"0", b"1e999", b"inf", b"nan", b"true", b"99999999999999999999999", b"1979-05-27",
    b"07:32:00", b'""', b"[]", b"{}", b"[{}]", b"\\u0000", b"\\", b"#", b"\xff", b"\x00", b"a=1\n",
    b"\n[a.b]\n", b"\n[[a]]\n", b'"\\u001b[2J"',
)  # fmt: skip
_JSON_WORDS = (
    b"[", b"]", b"{", b"}", b"null", b"true", b"-1", b"0", b"1e999", b"9", b'""', b"[]", b"{}",
    b'"a\\nb"', b"99999999999999999999999", b'{"a":', b"[[", b",", b":", b"\\ud800", b"\xff",
    b"1.5",
)  # fmt: skip


def _files(pattern: str, most: int = 12) -> list[bytes]:
    paths = sorted(ROOT.glob(pattern), key=lambda path: path.stat().st_size)
    return [path.read_bytes() for path in paths[:most]]


def _placed(octets: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(octets)
    return path


def _read_manifest(octets: bytes, folder: Path, draw: random.Random) -> object:
    path = _placed(octets, folder, "server.toml")
    return manifests.declared(path) if draw.random() < 0.3 else manifests.read(path)


def _read_scenarios(octets: bytes, folder: Path, _: random.Random) -> object:
    told = Collected()
    found = list(scenario_files.entries(_placed(octets, folder, "one.toml"), "one.toml", told))
    told.done()
    return found


def _read_profile(octets: bytes, folder: Path, _: random.Random) -> object:
    return load_profiles.load_profile(_placed(octets, folder, "one.toml"), "one.toml")


def _read_tables(octets: bytes, folder: Path, _: random.Random) -> object:
    return toml_files.parsed_toml(_placed(octets, folder, "one.toml"), "one.toml")


def _baselines() -> list[bytes]:
    return [
        (ROOT / "known.toml").read_bytes(),
        b'[[expected]]\nid = "a"\nserver = "x"\nat_most = 3\nreason = "known"\n'
        b"until = 2027-01-01\n",
        b'{"expected": [{"id": "a", "reason": "known", "outcome": "200"}]}',
    ]


def _read_baseline(octets: bytes, folder: Path, _: random.Random) -> object:
    name = "known.json" if octets.lstrip()[:1] == b"{" else "known.toml"
    return baseline.read(_placed(octets, folder, name), known={"a": "CHK-01", "fold-space": "F-1"})


def _configurations() -> list[bytes]:
    return [
        b'[check]\nsuite = ["rfc"]\njobs = 2\nquick = true\nbaseline = "known.toml"\n'
        b'[server]\nmine = "docker:a"\n[server.other]\nfrom = "x"\ncapabilities = ["body"]\n',
        b'[tool.httpmark.check]\nfail-under = 90\n[tool.other]\na = 1\n',
    ]  # fmt: skip


@functools.cache
def _commands() -> dict[str, Any]:
    from httpmark.harness.command.cli import httpmark

    return dict(httpmark.commands)


def _read_configuration(octets: bytes, folder: Path, draw: random.Random) -> object:
    name = draw.choice((configuration.NAME, configuration.PYPROJECT))
    source = configuration.read(_placed(octets, folder, name))
    return source and configuration.defaults(source, "check", _commands())


# --- the readers of a run folder


@functools.cache
def _result() -> list[bytes]:
    replace = msgspec.structs.replace
    run = made_run.small_run()
    one = run.servers[0]
    load = tuple(replace(it, samples=it.samples[:1], histogram=None) for it in one.load[:1])
    run = replace(run, servers=(replace(one, load=load), run.servers[-1]))
    return [msgspec.json.encode(run)]


def _read_result(octets: bytes, folder: Path, _: random.Random) -> object:
    _placed(octets, folder, run_folder.RESULT)
    return run_folder.read(folder)


def _stored(folder: Path) -> bytes:
    path = folder / "made.sqlite"
    with Evidence(path, create=True) as evidence:
        for number in range(12):
            made = Exchange(
                f"case-{number}", "family", b"GET %d" % number, made_exchanges.ok(),
                tuple(Outcome)[number % len(Outcome)], tuple(End)[number % len(End)], 12, 34, 5,
                timeline=EVENT_RECORD.pack(1, 5, 9), ended_s=1.5,
            )  # fmt: skip
            evidence.add("one", [made])
        evidence.set_facts("one", Facts(host="127.0.0.1", port=80, path="/"))
        evidence.observe("one", Verdict("case-1", Word.FAIL, "why", "what came"))
        evidence.agree("one", {("case-1", "octets"): 3})
    octets = path.read_bytes()
    for one in folder.iterdir():
        one.unlink()
    return octets


@functools.cache
def _evidence() -> list[bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return [_stored(Path(folder))]


_COLUMNS = {
    "exchange": (
        "server", "item", "delivery", "attempt", "outcome", "ending", "flags", "head_only",
        "first_us", "end_us", "sent_octets", "sent", "received", "machine_dropped", "timeline",
        "ended_s",
    ),
    "item": ("slug", "family"), "octets": ("value",), "server": ("name",),
    "facts": ("value", "server"), "observed": ("slug", "value"), "agreed": ("slug", "mode", "cuts"),
}  # fmt: skip
_VALUES = (
    "NULL", "-1", "99", "9223372036854775807", "1.5", "9e999", "'text'", "x''", "x'ff'", "x'7b7d'",
    "CAST(x'ff' AS TEXT)", "''", "0", "1", "x'5b5b5b'",
)  # fmt: skip


def _mutated_evidence(octets: bytes, folder: Path, draw: random.Random) -> bytes:
    """Another value in a table, or another table."""
    path = _placed(octets, folder, "mutated.sqlite")
    base = sqlite3.connect(path, isolation_level=None)
    try:
        for _ in range(draw.randrange(1, 3)):
            table = draw.choice(tuple(_COLUMNS))
            column, value = draw.choice(_COLUMNS[table]), draw.choice(_VALUES)
            change = f"UPDATE {table} SET {column} = {value} WHERE rowid % 3 = 1"
            if table in ("exchange", "agreed"):  # they have no rowid
                change = change.replace("rowid % 3 = 1", f"{draw.randrange(2)} = 1 OR 1")
            if draw.random() < 0.15:
                change = draw.choice(
                    (f"DROP TABLE {table}", f"DELETE FROM {table}", "DROP INDEX item_family",
                     f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
                )  # fmt: skip
            try:
                base.execute(change)
            except sqlite3.Error:
                continue  # the file is broken already, or its rules forbid it
    finally:
        base.close()
    return path.read_bytes()


def _read_evidence(octets: bytes, folder: Path, _draw: random.Random) -> object:
    path = _placed(octets, folder, run_folder.EVIDENCE)
    with Evidence(path, masked=True) as evidence:
        for server in evidence.servers():
            for family in evidence.families(server):
                evidence.planned(family)
            evidence.facts(server)
            evidence.observed(server)
            evidence.agreed(server, "case-1")
            evidence.holds(server, "whole")
            list(evidence.doubtful(server))
            for one in evidence.exchanges(server, delivery=None):
                must(isinstance(one.received, bytes), "an answer that is no bytes")
                must(isinstance(one.end_us, int), "a time that is no number")
                _ = one.doubt, one.among_many
        list(evidence.answers())
    return None


READERS = (
    Reader("responses", _responses, _read_response, _HTTP_WORDS),
    Reader("requests", _requests, _read_requests, _HTTP_WORDS),
    Reader(
        "tables",
        lambda: _files("requirements/*.toml") + _baselines()[:2],
        _read_tables,
        _TOML_WORDS,
    ),
    Reader("manifest", lambda: _files("images/*/server.toml"), _read_manifest, _TOML_WORDS),
    Reader("scenarios", lambda: _files("scenarios/rfc*/*.toml", 6), _read_scenarios, _TOML_WORDS),
    Reader("profile", lambda: _files("scenarios/load/*.toml"), _read_profile, _TOML_WORDS),
    Reader("baseline", _baselines, _read_baseline, _TOML_WORDS + _JSON_WORDS),
    Reader("configuration", _configurations, _read_configuration, _TOML_WORDS),
    Reader("result", _result, _read_result, _JSON_WORDS),
    Reader("evidence", _evidence, _read_evidence, (b"\x00", b"\xff"), _mutated_evidence),
)
