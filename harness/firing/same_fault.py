"""Whether fewer bytes still show the same fault.

Fewer bytes may get the same answer for another reason: ``Content-Length: +5`` without that line is
a request that every server accepts. :func:`alike` says what still shows the same fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from httpmark.harness.catalogue import expectation
from httpmark.harness.catalogue.expectation import Expectation
from httpmark.harness.http import request_reader, tolerances
from httpmark.harness.http.request_reader import Broken

# --- the same fault -------------------------------------------------------------------------------

Sort = tuple[Broken | None, bool]  # what is broken; whether the texts tolerate it


def sort(octets: bytes) -> Sort | None:
    """What the grammar says of a message; None if it is not one whole message."""
    requests = request_reader.read(octets).requests
    if len(requests) != 1:
        return None
    broken = tolerances.broken(octets)
    if broken is None:
        return (None, True) if requests[0].valid and requests[0].whole else None
    return broken, tolerances.tolerance(octets) is not None


def asks(octets: bytes) -> Expectation:
    """What the grammar alone asks of a server: to accept a valid message as what it is, to refuse
    another, or to read it as the RFCs tolerate."""
    rule = tolerances.rule(octets)
    if rule is None:
        return expectation.expectation(("PARSED",), values={})
    allowed = tolerances.tolerance(octets)
    passes = (rule.word, "ACC") if allowed is not None and not allowed.allows else (rule.word,)
    return expectation.expectation(passes, allowed.allows if allowed else (), values={})


def alike(octets: bytes) -> Callable[[bytes], bool]:
    """A test for fewer bytes: do they show the same fault?

    Whole lines may go, and values may get shorter; what the grammar says stays the same. The method
    stays, and so does a request line that is not at fault. Lines that frame the message stay as
    they are or go.
    """
    (first, *lines), kept, wanted = octets.split(b"\n"), _kept(octets), sort(octets)
    broken = wanted[0] if wanted else None
    is_at_fault = broken is None or tolerances.part(broken) == "request line"
    outlines = [_RUN.sub(_short, first), *map(_outline, lines)]

    def is_alike(fewer: bytes) -> bool:
        own, *others = fewer.split(b"\n")
        if not (own == first or is_at_fault) or _kept(fewer) != kept:
            return False
        rest = iter(outlines)
        shown = (_RUN.sub(_short, own), *map(_outline, others))
        return all(any(line == other for other in rest) for line in shown) and sort(fewer) == wanted

    return is_alike


# A percent sign with what follows it is a pair, or fails to be one.
_RUN = re.compile(rb"%[A-Za-z0-9]{0,2}|[A-Za-z]+|[0-9]+")
_NAMED = re.compile(rb"[^:]*:")
_FRAMES = re.compile(
    rb"(?i)(?:host|content-length|transfer-encoding|connection|te|trailer|expect|upgrade)"
    rb"(?![A-Za-z0-9-])"
)
_HOST = re.compile(rb"(?i)\nhost[ \t]*:")


def _outline(line: bytes) -> bytes:
    """A line with each run of letters or digits as one letter or digit, except for names."""
    if _FRAMES.match(line) or b" HTTP/" in line:  # a request inside content matters as it is
        return line
    name = _NAMED.match(line)
    at = name.end() if name else 0
    return line[:at] + _RUN.sub(_short, line[at:])


def _short(run: re.Match[bytes]) -> bytes:
    text = run[0]
    return text if text[:1] == b"%" else b"0" if text.isdigit() else b"a"


def _kept(octets: bytes) -> tuple[bytes, int]:
    """The method, and the number of Host lines: none, one, or two for more."""
    return octets.split(b" ", 1)[0], min(len(_HOST.findall(octets)), 2)
