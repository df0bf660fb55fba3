"""What reached the origin of one message, judged: remarks by rule. No network.

Witnesses are the bytes, read strictly, and what the strict reference answered to them. Where they
differ, nothing is held against the proxy. Refusing a message is always right here.
"""

from __future__ import annotations

from collections.abc import Iterator

from httpmark.harness.http import request_reader, response_reader
from httpmark.harness.http.printable import escaped
from httpmark.harness.http.request_reader import Broken, Request, Requests
from httpmark.harness.judging.forwarded_requests import (
    Reached,
    answers,
    authority,
    by_chunks,
    is_same,
    most,
    must_be_refused,
    options,
    pairs,
    reached,
    relative,
    values,
)
from httpmark.harness.judging.forwarding_rules import BY_ID, OF_BROKEN
from httpmark.harness.model.cases import Level
from httpmark.harness.model.forwarding import Passage, Remark

_SHOWN_BYTES_MAX = 4096
# Known to be meant for one connection, be they named by Connection or not (RFC 9110 7.6.1).
_HOP_BY_HOP = (b"keep-alive", b"proxy-connection", b"te", b"upgrade")
# Options that a proxy has of its own: what it says to the origin is not the client's word.
_OWN_OPTIONS = frozenset((b"close", b"keep-alive", b"te", b"upgrade"))
# Nobody may name these in Connection, as they are meant for all. What a proxy does then is safe.
_FOR_ALL = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"connection", b"content-type", b"via",
     b"cache-control", b"authorization", b"cookie", b"date", b"expect", b"trailer")
)  # fmt: skip
_BROKEN_CONTENT = (Broken.SIZE, Broken.CHUNK_CR, Broken.DATA_END, Broken.TRAILER)
_CONTROLS = bytes((*range(1, 9), 11, 12, *range(14, 32), 127))
_WITHOUT_CONTENT = (b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT")
_COUNTED_METHODS = (b"TRACE", b"OPTIONS")


def remarks(passage: Passage, *, own_minor: int = 1) -> list[Remark]:
    """What is to be said of one passage, each rule once.

    :param own_minor: the minor version in which the proxy forwards a plain HTTP/1.1 request.
    """
    client = request_reader.read(passage.sent)
    forwarded = reached(passage.upstreams)
    said: dict[str, Remark] = {}
    for remark in _all(passage, client, forwarded, own_minor):
        said.setdefault(remark.rule, remark)
    return [said[name] for name in BY_ID if name in said]


def is_binding(remark: Remark) -> bool:
    """Whether it tells of something that is broken or not followed; else it is a note."""
    return BY_ID[remark.rule].level is not Level.INFO


def _all(
    passage: Passage, client: Requests, forwarded: list[Reached], own_minor: int
) -> Iterator[Remark]:
    broken = [remark for one in forwarded for remark in _malformed(one)]
    yield from broken
    octets, by_rfc = by_chunks(passage.sent)
    yield from _hidden(octets, by_rfc, forwarded)
    yield from _too_many(passage, client, forwarded)
    for sent, one in pairs(by_rfc, forwarded):
        yield from _of_connection(sent, one)
        yield from _of_content(octets, sent, one, refused=_is_refused(passage, forwarded))
        if sent.minor == 0 and one.request.minor == 0 and own_minor != 0:
            yield _remark("follows-version", "HTTP/1.0 was forwarded as HTTP/1.0", one)
        yield from _of_target(sent, one)
        yield from _of_fields(sent, one)
        yield from _of_hops(sent, one)
    for one in forwarded:
        if one.request.fields and not one.values(b"via"):
            yield _remark("via", "no Via", one)
        if one.request.line_valid and one.request.minor > 1:
            yield _remark("own-version", f"HTTP/1.{one.request.minor}", one)
    if client.requests and not broken:
        yield from _of_last(client, forwarded, refused=_is_refused(passage, forwarded))


def _of_last(client: Requests, forwarded: list[Reached], *, refused: bool) -> Iterator[Remark]:
    """What became of a last message that is not whole, or not valid, and still was forwarded."""
    last = client.requests[-1]
    came = [one for one in forwarded if is_same(last, one) and one.request.whole]
    if not came:
        return
    if must_be_refused(client):
        yield _remark("repaired", f"{last.broken} was wrong", came[0])
    elif last.broken in _BROKEN_CONTENT and refused:
        yield _remark("completed", f"{last.broken} was wrong", came[0])
    elif last.broken is None and not last.whole:
        yield _remark("completed", "its content did not end", came[0])


def _remark(rule: str, what: str, one: Reached) -> Remark:
    return Remark(rule, what, one.raw[:_SHOWN_BYTES_MAX])


def _malformed(one: Reached) -> Iterator[Remark]:
    """What is wrong with the grammar of a request that reached the origin."""
    broken = one.request.broken
    if broken is None:
        return
    what = str(broken)
    if broken is Broken.CODINGS:
        if options(one.request, b"transfer-encoding").count(b"chunked") > 1:
            yield _remark("transfer-coding", "chunked stands twice", one)
        return
    rule = _of_trailer(one) if broken is Broken.TRAILER else OF_BROKEN.get(broken)
    if rule is None:
        return
    if 200 <= one.status < 300 and BY_ID[rule].level is not Level.INFO:
        yield _remark("tolerated", f"{what}; the reference answered {one.status}", one)
    else:
        yield _remark(rule, what, one)


def _of_trailer(one: Reached) -> str:
    """The rule for what is wrong with a trailer line: a value is judged as that of any field."""
    for octets, rule in ((_CONTROLS, "control-in-value"), (_CONTROLS + b"\x00", "nul")):
        mended = one.raw.translate(bytes.maketrans(octets, b"x" * len(octets)))
        if request_reader.read(mended).requests[0].broken is None:
            return rule
    return OF_BROKEN[Broken.TRAILER]


def _hidden(octets: bytes, by_rfc: Requests, forwarded: list[Reached]) -> Iterator[Remark]:
    """A request that the origin answered, and that was content of another one for the client."""
    contents = [one.content(octets) for one in by_rfc.requests if one.whole]
    for one in forwarded:
        line = one.request.method + b" " + one.request.target
        is_answered = bool(one.status) and one.request.line_valid
        is_sent = any(is_same(sent, one) for sent in by_rfc.requests)
        if is_answered and not is_sent and any(line in content for content in contents):
            yield _remark("smuggled", "content reached the origin as a request", one)


def _too_many(passage: Passage, client: Requests, forwarded: list[Reached]) -> Iterator[Remark]:
    """More requests than the client's bytes hold, by what was forwarded and by the answers."""
    allowed = most(client)
    if allowed is None or len(forwarded) <= allowed:
        return
    if answers(passage.upstreams) <= allowed:
        return
    what = f"{len(forwarded)} requests reached the origin, of {allowed}"
    is_framed = not client.requests or client.requests[-1].broken is None
    yield _remark("smuggled" if is_framed else "read-on", what, forwarded[allowed])


def _of_connection(sent: Request, one: Reached) -> Iterator[Remark]:
    """Connection, the fields that it names, and those that are known to be hop by hop."""
    named = set(options(sent)) - _FOR_ALL - {b"close"}
    own = set(options(one.request))
    names = {name for name, _ in one.request.fields}
    kept = {word for word in named & names if not (word in _OWN_OPTIONS and word in own)}
    if kept:
        yield _remark("connection-options", f"kept {_listed(kept)}, which Connection names", one)
    elif left := (named & own) - _OWN_OPTIONS:
        yield _remark("connection-options", f"kept Connection: {_listed(left)}", one)
    stayed = {
        name
        for name in _HOP_BY_HOP
        if (given := values(sent, name)) and given == one.values(name) and name not in own
    }
    if stayed - kept:
        yield _remark("hop-by-hop", f"kept {_listed(stayed - kept)}", one)


def _listed(words: set[bytes]) -> str:
    return ", ".join(escaped(word) for word in sorted(words))


def _is_refused(passage: Passage, forwarded: list[Reached]) -> bool:
    """Whether the proxy told the client of an error that is its own, and not the origin's."""
    status = response_reader.final_status(passage.received)
    return status >= 400 and all(one.status != status for one in forwarded)


def _of_content(octets: bytes, sent: Request, one: Reached, *, refused: bool) -> Iterator[Remark]:
    """Content that changed, and trailers that became fields."""
    if not sent.whole or not one.request.whole:
        return
    before, after = sent.content(octets), one.request.content(one.octets)
    # What content of such a request means is not defined: a proxy may leave all of it out.
    is_left_out = not after and sent.method in _WITHOUT_CONTENT
    if before != after and not is_left_out:
        what = f"{len(before)} bytes were sent, {len(after)} came"
        yield _remark("completed" if refused else "content", what, one)
    known = {name for name, _ in sent.fields}
    merged = [
        name
        for name, value in sent.trailers
        if name not in known | _FOR_ALL and (name, value) in one.request.fields
    ]
    if merged:
        yield _remark("trailers", f"the trailer {escaped(merged[0])} became a header field", one)


def _of_target(sent: Request, one: Reached) -> Iterator[Remark]:
    """The authority of an absolute target, and the spelling of path and query."""
    wanted = authority(sent.target)
    hosts = one.values(b"host")
    if wanted is not None and authority(one.request.target) is None and len(hosts) == 1:
        received = [value.lower() for value in values(sent, b"host")]
        if received != [wanted] and [hosts[0].lower()] == received:
            yield _remark("host-of-target", "the Host that was to be ignored was forwarded", one)
    if relative(sent.target) != relative(one.request.target):
        yield _remark(
            "target-changed",
            f"{escaped(sent.target[:80])} became {escaped(one.request.target[:80])}",
            one,
        )


def _of_fields(sent: Request, one: Reached) -> Iterator[Remark]:
    """The order of field lines of one name, and fields that nobody knows."""
    named = set(options(sent))
    for name in dict.fromkeys(name for name, _ in sent.fields):
        if not name.startswith(b"x-") or name in named or name.startswith(b"x-forwarded"):
            continue
        before, after = _elements(values(sent, name)), _elements(one.values(name))
        if not after:
            yield _remark("unknown-field", f"{escaped(name)} was not forwarded", one)
        elif len(before) > 1 and sorted(before) == sorted(after) and before != after:
            yield _remark("order", f"the values of {escaped(name)}", one)


def _elements(lines: list[bytes]) -> list[bytes]:
    return [part.strip(b" \t") for line in lines for part in line.split(b",")]


def _of_hops(sent: Request, one: Reached) -> Iterator[Remark]:
    """Max-Forwards, of the two methods that it is counted for."""
    limits = values(sent, b"max-forwards")
    if sent.method not in _COUNTED_METHODS or len(limits) != 1 or not limits[0].isdigit():
        return
    limit = int(limits[0])
    if limit == 0:
        yield _remark("max-forwards", "it was 0, and the request was forwarded", one)
        return
    after = one.values(b"max-forwards")
    if len(after) != 1 or not after[0].isdigit() or int(after[0]) >= limit:
        came = escaped(after[0]) if after else "none"
        yield _remark("max-forwards", f"{limit} was sent, {came} came", one)
