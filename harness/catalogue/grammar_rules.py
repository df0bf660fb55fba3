"""What a rule of the grammar is, with its alternatives and samples, and how samples are written.

An alternative is a valid form; some case must have it accepted. From a sample, one byte deviates;
some case must have that refused. The patterns are those of ``http.grammar``.
"""

from __future__ import annotations

import enum
import re

import msgspec

from httpmark.harness.catalogue.byte_deviations import Part
from httpmark.harness.http import grammar


class Where(enum.StrEnum):
    """Where in a request the line of a rule begins."""

    REQUEST_LINE = "request line"
    FIELD_LINE = "field line"
    CHUNK_LINE = "chunk line"
    CHUNK_END = "end of a chunk's data"
    TRAILER_LINE = "trailer line"


class GrammarRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. ``valid`` is the line as the grammar has it; alternatives match from the start of
    the line, up to and with its end. ``refused``: no case accepts it, a 501 shows that it was read.
    ``ignored``: a server ignores a field that breaks the rule, and answers as without it.
    """

    name: str
    clause: str
    where: Where
    valid: re.Pattern[bytes]
    alternatives: dict[str, re.Pattern[bytes]]
    samples: dict[str, tuple[Part, ...]]
    refused: bool = False
    ignored: bool = False


def given(octets: bytes, pattern: bytes | None = None) -> Part:
    """A part that is not deviated from; ``pattern`` is what may stand in its place."""
    return Part("", octets, around=re.escape(octets) if pattern is None else pattern)


def fixed(name: str, octets: bytes, *, any_case: bool = False) -> Part:
    """A part that always has these bytes."""
    return Part(name, octets, any_case=any_case)


def many(name: str, octets: bytes, of: frozenset[int]) -> Part:
    """A part that repeats bytes of a set."""
    return Part(name, octets, of=of)


HOST_BYTES = grammar.UNRESERVED | grammar.SUB_DELIMS
TEXT = grammar.VCHAR | grammar.OBS_TEXT
TOKEN = b"[!#$%&'*+.^_`|~0-9A-Za-z-]+"

LINE_END = given(b"\r\n", rb"[ \t]*\r\n")
# A field line, as it stands in a header section and in a trailer section.
FIELD = (
    many("name", b"X-Abc", grammar.TCHAR),
    fixed("colon", b":"),
    given(b" ", b"[ \t]*"),
    many("value", b"xyz", TEXT | frozenset(b" ")),
    fixed("line end", b"\r\n"),
)


def field_line(name: bytes, value: bytes) -> re.Pattern[bytes]:
    """A field line with whitespace around its value and the line end."""
    return re.compile(b"(?i:" + name + rb"):[ \t]*(?:" + value + rb")[ \t]*\r\n", re.DOTALL)


def field_name(name: bytes) -> Part:
    """The name of a field with the colon and whitespace, as a part that is given."""
    return given(name + b": ", b"(?i:" + name + rb"):[ \t]*")


def forms(name: bytes, **values: bytes) -> dict[str, re.Pattern[bytes]]:
    """Alternatives of a field's value, by pattern."""
    return {form.replace("_", " "): field_line(name, value) for form, value in values.items()}
