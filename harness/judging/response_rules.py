"""The 35 checks on every response of every case (RESP-01 to RESP-35): octets in, findings out.

Pure. A check is a requirement of its own and never changes a case's verdict. Whose answer a
response is, is certain only while every octet sent so far is part of valid requests: from the
first that is not, RESP-18, 19, 29 and 30 are not judged, and RESP-02, 13, 28 and the HEAD and
CONNECT parts of 11, 12 and 16 only where that message's request line is valid. After a 101 or a
2xx to CONNECT nothing more is judged.

What depends on the answers alone is remembered: in a suite most answers are alike.
"""

from __future__ import annotations

import base64
import binascii
import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from httpmark.harness.http import grammar, request_reader, response_reader
from httpmark.harness.http.dates import moment
from httpmark.harness.judging import failure_modes
from httpmark.harness.model.cases import Case, Facts, Level, Op
from httpmark.harness.model.exchanges import End, Exchange
from httpmark.harness.model.timeline import EventKind, events
from httpmark.harness.model.verdicts import Tally, Verdict, Word

CLOSE_US = 1_500_000
CLOSE_LATE_US = 10_000_000
SILENCE_US = 1_950_000
IDLE_US = 1_000_000
DATE_OFF_S = 5
STALE_US = 2_000_000


class Check(msgspec.Struct, frozen=True):
    """One check: what it asks, where that stands, and how strongly it binds."""

    id: str
    title: str
    clause: str
    level: Level


_MUST, _SHOULD = Level.MUST, Level.SHOULD
CHECKS: dict[str, Check] = {
    f"RESP-{number:02}": Check(f"RESP-{number:02}", title, clause, level)
    for number, (title, clause, level) in enumerate(
        (
            ("a status line: HTTP/1. DIGIT SP 3DIGIT SP reason", "RFC 9112 4", _MUST),
            ("version HTTP/1.1 to any 1.x request", "RFC 9110 6.2", _SHOULD),
            ("a status from 100 to 599", "RFC 9110 15", _MUST),
            ("a reason of HTAB, SP, VCHAR and obs-text", "RFC 9112 4", _MUST),
            ("every line ends in CRLF, no bare CR or LF", "RFC 9112 2.2", _MUST),
            ("field names are tokens, nothing before the colon, no folding", "RFC 9112 5", _MUST),
            ("field values without control octets", "RFC 9110 5.5", _MUST),
            ("singleton fields once only", "RFC 9110 5.3", _MUST),
            ("Content-Length is a number and equals the octets sent", "RFC 9110 8.6", _MUST),
            ("not both Content-Length and Transfer-Encoding", "RFC 9112 6.2", _MUST),
            ("no Transfer-Encoding on 1xx, 204, 2xx to CONNECT; no 1xx to 1.0", "RFC 9112 6.1",
             _MUST),
            ("no Content-Length on 1xx, 204 and 2xx to CONNECT", "RFC 9110 8.6", _MUST),
            ("Transfer-Encoding only to a request of HTTP/1.1 or a later minor", "RFC 9112 6.1",
             _MUST),
            ("chunked is last in Transfer-Encoding, once, or the connection closes",
             "RFC 9112 6.1", _MUST),
            ("a chunked body is well-formed to its last CRLF", "RFC 9112 7.1", _MUST),
            ("no body after 1xx, 204, 304 or to HEAD", "RFC 9112 6.3", _MUST),
            ("205 has no content", "RFC 9110 15.3.6", _MUST),
            ("no octets after the last expected answer", "RFC 9112 9.2", _MUST),
            ("one final answer to each valid request, in order", "RFC 9112 9.2", _MUST),
            ("Date on every 2xx, 3xx and 4xx", "RFC 9110 6.6.1", _MUST),
            ("Date and Last-Modified as IMF-fixdate, the weekday right", "RFC 9110 5.6.7", _MUST),
            ("405 has Allow, and Allow is a list of tokens", "RFC 9110 15.5.6", _MUST),
            ("401 has WWW-Authenticate", "RFC 9110 15.5.2", _MUST),
            ("426 and 101 have Upgrade, and Upgrade stands in Connection", "RFC 9110 7.8", _MUST),
            ("206 has Content-Range or is multipart/byteranges, not both", "RFC 9110 15.3.7",
             _MUST),
            ("304 repeats the fields of the 200", "RFC 9110 15.4.5", _MUST),
            ("content that the server makes itself has a Content-Type", "RFC 9110 8.3", _SHOULD),
            ("delimited by a length or by chunks", "RFC 9112 6.3", _SHOULD),
            ("a close soon after an answer was announced", "RFC 9112 9.6", _SHOULD),
            ("a promise to stay open is kept", "RFC 9112 9.3", _SHOULD),
            ("Location, ETag, Last-Modified, Server, Vary match their grammar", "RFC 9110 10.2",
             _MUST),
            ("error pages do not reflect the request unescaped", "RFC 9110 17", Level.SEC),
            ("an answer that says close is followed by the close", "RFC 9112 9.6", _MUST),
            ("Date is now", "RFC 9110 6.6.1", _SHOULD),
            ("Last-Modified is not later than Date", "RFC 9110 8.8.2.1", _MUST),
        ),
        start=1,
    )
}  # fmt: skip
_BIT = {name: 1 << number for number, name in enumerate(CHECKS)}


class Finding(msgspec.Struct, frozen=True):
    """A check that one response does not pass; ``word`` is FAIL, or WARN where it is tolerated."""

    check: str
    span: tuple[int, int]  # octets received
    text: str
    word: Word = Word.FAIL


class Findings(msgspec.Struct, frozen=True):
    """What the checks say of one exchange, and which of them had something to say at all."""

    found: tuple[Finding, ...] = ()
    bits: int = 0

    @property
    def judged(self) -> frozenset[str]:
        """The checks that applied to some response."""
        return _named(self.bits)


@functools.lru_cache(maxsize=1024)
def _named(bits: int) -> frozenset[str]:
    return frozenset(name for name, bit in _BIT.items() if bits & bit)


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange as the checks see it.

    :param sent: the octets that really went out, in order.
    :param timeline: the probe's event records (native/probe_frames.hpp); empty: not recorded.
    :param began_s: Unix time of the beginning of the connect; None: not known, or other clock.
    :param head_only: the exchange ended with the answer's header section.
    :param machine_dropped: the kernel lost packets meanwhile, so silence proves nothing.
    :param cut: more came than was kept.
    :param own_close: the client closed its sending side, or reset; with a timeline it is seen.
    """

    sent: bytes
    received: bytes
    end: End
    end_us: int
    timeline: bytes = b""
    began_s: float | None = None
    head_only: bool = False
    machine_dropped: bool = False
    cut: bool = False
    own_close: bool = False


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest says that bears on the checks."""

    answers_1_0_as_1_0: bool = False
    clock: bool = True  # the server has one (RFC 9110 6.6.1)
    idle_s: float | None = None  # its idle timeout; None: not known, 0: none


def of_octets(talk: Talk, declared: Declared) -> Findings:
    """What the octets of the answers alone decide: nothing of when they came, or of how many."""
    requests = request_reader.read(talk.sent)
    return _read_answers(talk, _Clock(talk), requests, declared).findings


def _read_answers(
    talk: Talk, clock: _Clock, requests: request_reader.Requests, declared: Declared
) -> _Answers:
    return _answers(
        talk.received,
        _asked(talk.sent, requests),
        talk.end is End.CLOSED and not talk.cut and not clock.own_fin,
        talk.end is not End.OPEN,
        talk.head_only,
        declared.answers_1_0_as_1_0,
        declared.clock,
    )


def check(talk: Talk, declared: Declared = Declared()) -> Findings:  # noqa: B008
    """All checks on all responses of one exchange."""
    requests = request_reader.read(talk.sent)
    clock = _Clock(talk)
    answers = _read_answers(talk, clock, requests, declared)
    notes = _Notes()
    if answers.html and b"<" in talk.sent:
        _judge_reflection(notes, talk, answers)
    if answers.dated:
        _judge_dates(notes, talk, clock, requests, answers)
    if not talk.head_only:
        if answers.closing is not None:
            _judge_said_close(notes, talk, clock, answers, answers.closing)
        if answers.not_modified:
            _judge_304(notes, requests, answers)
        if requests.requests and requests.requests[0].valid:
            _judge_order(notes, talk, clock, requests, answers, declared)
    if not notes.bits:
        return answers.findings
    return Findings((*answers.findings.found, *notes.found), answers.findings.bits | notes.bits)


_FAILURES_KEPT = 5
_LOOPBACK = re.compile(r"(?:127(?:\.[0-9]+){3}|\[::1\]|localhost)(?::[0-9]*)?")


_OWN_CLOSES = frozenset((Op.FIN, Op.RESET))
_op_of = operator.attrgetter("op")


def talk(case: Case, exchange: Exchange, *, same_clock: bool = True) -> Talk:
    """An exchange of a case as the checks see it.

    :param same_clock: the server's clock is ours.
    """
    known = same_clock and exchange.ended_s is not None
    return Talk(
        sent=_really_sent(case, exchange),
        received=exchange.received,
        end=exchange.end,
        end_us=exchange.end_us,
        timeline=exchange.timeline,
        began_s=(exchange.ended_s or 0) - exchange.end_us / 1e6 if known else None,
        head_only=exchange.head_only,
        machine_dropped=exchange.machine_dropped,
        cut=exchange.is_cut,
        own_close=not _OWN_CLOSES.isdisjoint(map(_op_of, case.steps)),
    )


def _really_sent(case: Case, exchange: Exchange) -> bytes:
    """The octets that went out: conditional steps may have been skipped, the last cut."""
    if exchange.sent_octets >= len(exchange.sent):
        return exchange.sent
    first = case.steps[0]
    if exchange.sent_octets == len(first.data) and not (first.if_open or first.if_unanswered):
        return first.data  # all that was sent, and the canary was not
    writes = [one.octets for one in events(exchange.timeline) if one.kind is EventKind.SENT]
    if not writes:
        return exchange.sent[: exchange.sent_octets]
    sent = b""
    steps = [step for step in case.steps if step.op is Op.SEND]
    for number, step in enumerate(steps):
        # A write that the kernel took in pieces has several records.
        so_far = list(itertools.accumulate(writes))
        if len(step.data) in so_far:
            took = so_far.index(len(step.data)) + 1
        elif (step.if_open or step.if_unanswered) and number + 1 < len(steps):
            continue  # skipped
        else:
            took = len(writes)  # cut short by the end
        sent += step.data[: sum(writes[:took])]
        writes = writes[took:]
    return sent


def declared(facts: Facts) -> Declared:
    """What is known of a target that bears on the checks."""
    return Declared(
        answers_1_0_as_1_0=facts.answers_1_0_as_1_0, idle_s=facts.timeouts.get("idle_s")
    )


class Collected:
    """The checks over many exchanges of one server: how often each held, and the first failures."""

    def __init__(self, facts: Facts) -> None:
        self._declared = declared(facts)
        # Another machine has another clock: what its Date is compared with is not known here.
        self._same_clock = _LOOPBACK.fullmatch(facts.host) is not None
        self._clean: Counter[int] = Counter()  # exchanges without a finding, by what was judged
        self._words: dict[str, dict[Word, int]] = {}
        self._failures: dict[str, list[Verdict]] = {}
        self._modes: dict[str, Counter[str]] = {}  # how often each fails how
        self.lingering: list[str] = []  # cases that drew "close" and, as far as seen, no close

    def add(self, case: Case, exchange: Exchange) -> None:
        """Judge one more exchange; each check counts once for it."""
        found = check(talk(case, exchange, same_clock=self._same_clock), self._declared)
        self._count(case, found)

    def add_cut(self, cut: Case, exchange: Exchange) -> None:
        """Judge what a delivery in pieces drew, by its octets: among many pieces in flight time
        says little. Its span is of octets that nobody shows, so it tells the delivery instead."""
        found = of_octets(talk(cut, exchange), self._declared)
        told = (
            Finding(one.check, (0, 0), f"{one.text}: delivery {cut.delivery}", one.word)
            for one in found.found
        )
        self._count(cut, Findings(tuple(told), found.bits))

    def _count(self, case: Case, found: Findings) -> None:
        if not found.found:
            self._clean[found.bits] += 1
            return
        if any(finding.text.startswith(_STILL_OPEN) for finding in found.found):
            self.lingering.append(case.id)
        worst: dict[str, Finding] = {}
        for finding in found.found:
            before = worst.get(finding.check)
            if before is None or (before.word is Word.WARN and finding.word is Word.FAIL):
                worst[finding.check] = finding
        for name in found.judged:
            shown = worst.get(name)
            words = self._words.setdefault(name, {})
            word = Word.PASS if shown is None else shown.word
            words[word] = words.get(word, 0) + 1
            if shown is not None and shown.word is Word.FAIL:
                # What follows a colon is the server's own value.
                self._modes.setdefault(name, Counter())[
                    failure_modes.failure_mode(shown.text.partition(": ")[0])
                ] += 1
            kept = self._failures.setdefault(name, [])
            if shown is not None and len(kept) < _FAILURES_KEPT:
                level, title = CHECKS[name].level, CHECKS[name].title
                kept.append(Verdict(case.id, word, title, shown.text, shown.span, level))

    def merge(self, other: Collected) -> None:
        """Add what was collected apart; its failures come after those that are known."""
        self._clean += other._clean
        for name, words in other._words.items():
            mine = self._words.setdefault(name, {})
            for word, number in words.items():
                mine[word] = mine.get(word, 0) + number
        for name, counts in other._modes.items():
            self._modes.setdefault(name, Counter()).update(counts)
        for name, failures in other._failures.items():
            kept = self._failures.setdefault(name, [])
            kept += failures[: _FAILURES_KEPT - len(kept)]

    def tallies(self) -> dict[str, Tally]:
        """What was found, by check; a check that applied to no answer is left out."""
        words = {name: dict(counts) for name, counts in self._words.items()}
        for bits, number in self._clean.items():
            for name in _named(bits):
                counts = words.setdefault(name, {})
                counts[Word.PASS] = counts.get(Word.PASS, 0) + number
        return {
            name: Tally(
                words={CHECKS[name].level: words[name]},
                failures=tuple(self._failures.get(name, ())),
                failure_modes=failure_modes.most_frequent(self._modes.get(name, {})),
            )
            for name in sorted(words)
        }


# --- what is asked --------------------------------------------------------------------------------


class _Asked(msgspec.Struct, frozen=True):
    """What one answer may depend on of its request; equal requests make equal answers."""

    method: bytes = b""  # HEAD, CONNECT, another as "GET", or empty where it is not known
    major: int | None = None  # None: not known
    minor: int = 1
    valid: bool = False
    line_valid: bool = False
    may_be_head: bool = False
    may_be_connect: bool = False
    may_be_no_http: bool = False  # a request line without a version, or of HTTP/2
    handled: bool = False  # the answer's content comes from a handler of the image


_HANDLED = re.compile(rb"/(?:404|get-only|redirect|304|early|slow)(?:[/?]|$)")
# A line of a method and a target, and nothing of a version.
_NO_VERSION = rb"(?![^\r\n]*HTTP/)[^\s:]+[ \t]+[^\s]*[ \t]*(?=[\r\n]|\Z)"
_WITHOUT_VERSION = re.compile(_NO_VERSION)
_LATER_WITHOUT_VERSION = re.compile(rb"[\r\n]" + _NO_VERSION)
_FIRST_LINE = re.compile(rb"[\r\n]*([^\r\n]*)")


def _asked(sent: bytes, requests: request_reader.Requests) -> tuple[_Asked, ...]:
    """One for each request whose line can be read, and a last one for what comes after them."""
    found = []
    unread = requests.certain
    for request in requests.requests:
        if not request.line_valid:
            unread = request.start
            continue
        kind = request.method if request.method in (b"HEAD", b"CONNECT") else b"GET"
        found.append(
            _Asked(
                kind,
                request.major,
                request.minor,
                request.valid,
                True,
                handled=_HANDLED.match(request.target) is not None,
            )
        )
    return (*found, _beyond(sent[unread:]))


def _beyond(uncertain: bytes) -> _Asked:
    """Nothing is known of which request is answered; but of what it may be."""
    if not uncertain:
        return _Asked(valid=True)
    upper = uncertain.upper()
    match = _FIRST_LINE.match(uncertain)
    line = match[1] if match else b""
    return _Asked(
        may_be_head=b"HEAD" in upper,
        may_be_connect=b"CONNECT" in upper,
        may_be_no_http=(
            b"HTTP/" not in line
            or line == b"PRI * HTTP/2.0"
            or _WITHOUT_VERSION.match(uncertain) is not None
            or _LATER_WITHOUT_VERSION.search(uncertain) is not None
        ),
    )


# --- what is answered -----------------------------------------------------------------------------


class _Answer(msgspec.Struct, frozen=True):
    """One response read, and which request it belongs to (-1: none that is known)."""

    reading: response_reader.Reading
    request: int

    @property
    def response(self) -> response_reader.Response:
        return self.reading.response


class _Dated(msgspec.Struct, frozen=True):
    """An answer with one readable Date."""

    answer: _Answer
    date: bytes
    now: float  # Unix time


class _Answers(msgspec.Struct, frozen=True):
    answers: tuple[_Answer, ...]
    findings: Findings
    finals: tuple[_Answer, ...] = ()
    closing: int | None = None  # the first of the finals that says close
    garbage: int | None = None  # where octets begin that are no response
    stopped: bool = False  # by a 101, a 2xx to CONNECT, or an end that cannot be told
    html: bool = False  # an error page in HTML
    dated: tuple[_Dated, ...] = ()
    not_modified: bool = False  # a 304 is among them


class _Notes:
    """Findings and judged checks as they come."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.bits = 0

    def judge(self, name: str, bad: bool, span: tuple[int, int], text: str) -> None:
        self.bits |= _BIT[name]
        if bad:
            self.found.append(Finding(name, span, text))

    def warn(self, name: str, span: tuple[int, int], text: str) -> None:
        self.bits |= _BIT[name]
        self.found.append(Finding(name, span, text, Word.WARN))

    @property
    def findings(self) -> Findings:
        return Findings(tuple(self.found), self.bits)


@functools.lru_cache(maxsize=4096)
def _answers(
    octets: bytes,
    asked: tuple[_Asked, ...],
    fin: bool,
    closed: bool,
    head_only: bool,
    as_1_0: bool,
    clock: bool,
) -> _Answers:
    """Read all responses, and judge what the octets alone decide.

    :param fin: the server ended the talk with its FIN, and the client had closed nothing.
    """
    notes = _Notes()
    answers: list[_Answer] = []
    at = finals = 0
    garbage: int | None = None
    stopped = False
    while at < len(octets):
        to = asked[min(finals, len(asked) - 1)]
        reading = _read(octets, at, to, fin=fin, head_only=head_only)
        if reading is None:
            garbage = at
            # A request line without a version may be answered in HTTP/0.9; its case judges that.
            if not (to.may_be_no_http or asked[-1].may_be_no_http):
                notes.judge("RESP-01", True, (at, len(octets)), "octets that are no response")
            break
        response = reading.response
        answers.append(_Answer(reading, finals if finals < len(asked) - 1 else -1))
        _judge_head(notes, reading, to, as_1_0=as_1_0, clock=clock)
        if not response.complete and reading.cut and response.framing == "none":
            # The head itself is cut: by the server's FIN it is no response.
            notes.judge("RESP-01", fin, response.head, "a head that does not end")
            stopped = True
            break
        if _is_last_word(response, to):
            stopped = True
            break
        if head_only:
            break
        at = _judge_content(notes, octets, reading, to, fin=fin, closed=closed)
        if not response.interim:
            finals += 1
        if reading.lost or reading.cut:
            stopped = True
            break
        if at < 0:
            stopped = True
            break
    responses = [answer.response for answer in answers]
    last_words = [answer for answer in answers if not answer.response.interim]
    closing = (n for n, answer in enumerate(last_words) if _says_close(answer.response))
    return _Answers(
        tuple(answers),
        notes.findings,
        tuple(last_words),
        next(closing, None),
        garbage,
        stopped,
        any(response.status >= 400 and _is_html(response) for response in responses),
        tuple(_dated(answers)),
        any(response.status == 304 for response in responses),
    )


def _dated(answers: list[_Answer]) -> Iterator[_Dated]:
    for answer in answers:
        dates = answer.response.values(b"date")
        if len(dates) == 1 and (now := moment(dates[0])) is not None:
            yield _Dated(answer, dates[0], now)


def _read(
    octets: bytes, at: int, to: _Asked, *, fin: bool, head_only: bool
) -> response_reader.Reading | None:
    method = b"HEAD" if head_only else to.method or b"GET"
    reading = response_reader.read_on(octets, at, method=method, ended=fin)
    if reading is None or to.method or not to.may_be_head:
        return reading
    # Perhaps it answers a HEAD: then nothing, or the next response, follows its head.
    bare = response_reader.read_on(octets, at, method=b"HEAD", ended=fin)
    if bare is not None and bare.response.complete:
        after = octets[bare.response.end : bare.response.end + 7]
        if not after or after == b"HTTP/1.":
            return bare
    return reading


def _is_last_word(response: response_reader.Response, to: _Asked) -> bool:
    if response.status == 101:
        return True
    if not 200 <= response.status < 300:
        return False
    return to.method == b"CONNECT" or (not to.method and to.may_be_connect)


def _says_close(response: response_reader.Response) -> bool:
    return b"close" in _options(response)


def _options(response: response_reader.Response) -> list[bytes]:
    return [
        option.strip(b" \t").lower()
        for value in response.values(b"connection")
        for option in value.split(b",")
    ]


def _is_html(response: response_reader.Response) -> bool:
    kinds = response.values(b"content-type")
    return bool(kinds) and kinds[0].lower().startswith((b"text/html", b"application/xhtml"))


_SINGLETONS = (
    b"date", b"content-length", b"content-type", b"location", b"etag", b"last-modified", b"server",
    b"retry-after", b"age", b"content-range", b"content-location",
)  # fmt: skip
_GRAMMAR = (
    (b"location", grammar.URI_REFERENCE),
    (b"etag", grammar.ENTITY_TAG),
    (b"last-modified", grammar.IMF_FIXDATE),
    (b"server", grammar.SERVER),
    (b"vary", re.compile(rb"(?:" + grammar.TOKEN_LIST.pattern + rb")?")),  # "*" is a token
)


def _judge_head(
    notes: _Notes, reading: response_reader.Reading, to: _Asked, *, as_1_0: bool, clock: bool
) -> None:
    """All that the header section decides."""
    response = reading.response
    status, span = response.status, response.head
    for always in ("RESP-01", "RESP-03", "RESP-04", "RESP-05", "RESP-06", "RESP-07"):
        notes.bits |= _BIT[always]
    for fault in reading.faults:
        notes.judge(fault.check, True, fault.span, fault.text)
    if reading.cut and response.framing == "none" and not response.complete:
        return
    fields: dict[bytes, list[bytes]] = {}
    for name, value in response.fields:
        fields.setdefault(name.lower(), []).append(value)
    twice = [name for name in _SINGLETONS if len(fields.get(name, ())) > 1]
    notes.judge("RESP-08", bool(twice), span, f"{b', '.join(twice).decode()} more than once")
    _judge_version(notes, response, to, as_1_0=as_1_0)
    _judge_framing_fields(notes, response, to, fields)
    if 200 <= status < 500 and clock:
        notes.judge("RESP-20", b"date" not in fields, span, f"no Date on {status}")
    for name in (b"date", b"last-modified"):
        for value in fields.get(name, ()):
            bad = moment(value) is None
            notes.judge("RESP-21", bad, span, f"{name.decode()}: {_text(value)}")
    if status == 405 or b"allow" in fields:
        allow = b", ".join(fields.get(b"allow", ()))
        missing = b"allow" not in fields
        bad = missing or (allow != b"" and grammar.TOKEN_LIST.fullmatch(allow) is None)
        notes.judge(
            "RESP-22", bad, span, "no Allow on 405" if missing else f"Allow: {_text(allow)}"
        )
    if status == 401:
        notes.judge(
            "RESP-23", b"www-authenticate" not in fields, span, "no WWW-Authenticate on 401"
        )
    if status in (101, 426) or b"upgrade" in fields:
        missing = b"upgrade" not in fields
        bad = missing or b"upgrade" not in _options(response)
        text = f"no Upgrade on {status}" if missing else "Upgrade is not in Connection"
        notes.judge("RESP-24", bad, span, text)
    if status == 206:
        kind = b"".join(fields.get(b"content-type", ())).lower()
        both = (b"content-range" in fields) + kind.startswith(b"multipart/byteranges")
        notes.judge("RESP-25", both != 1, span, "neither a range nor parts" if not both else "both")
    for name, pattern in _GRAMMAR:
        for value in fields.get(name, ()):
            bad = pattern.fullmatch(value) is None
            notes.judge("RESP-31", bad, span, f"{name.decode()}: {_text(value)}")
    if b"last-modified" in fields and b"date" in fields:
        changed, now = moment(fields[b"last-modified"][0]), moment(fields[b"date"][0])
        if changed is not None and now is not None:
            notes.judge("RESP-35", changed > now, span, "Last-Modified is later than Date")


def _judge_version(
    notes: _Notes, response: response_reader.Response, to: _Asked, *, as_1_0: bool
) -> None:
    if to.line_valid and to.major == 1:
        fine = response.minor == 1 or (response.minor == 0 and to.minor == 0 and as_1_0)
        text = f"HTTP/1.{response.minor} to a request of HTTP/1.{to.minor}"
        notes.judge("RESP-02", not fine, response.head, text)


def _judge_framing_fields(
    notes: _Notes, response: response_reader.Response, to: _Asked, fields: dict[bytes, list[bytes]]
) -> None:
    status, span = response.status, response.head
    lengths, codings = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if lengths is not None:
        bad = any(grammar.CONTENT_LENGTH.fullmatch(value) is None for value in lengths)
        notes.judge("RESP-09", bad, span, f"Content-Length: {_text(b', '.join(lengths))}")
    if lengths is not None or codings is not None:
        both = lengths is not None and codings is not None
        notes.judge("RESP-10", both, span, "Content-Length beside Transfer-Encoding")
    tunnel = to.line_valid and to.method == b"CONNECT" and 200 <= status < 300
    if status < 200 or status == 204 or tunnel:
        what = f"{status} to CONNECT" if tunnel else str(status)
        notes.judge("RESP-11", codings is not None, span, f"Transfer-Encoding on {what}")
        notes.judge("RESP-12", lengths is not None, span, f"Content-Length on {what}")
    if status < 200 and to.line_valid and to.major == 1:
        notes.judge("RESP-11", to.minor == 0, span, f"{status} to a request of HTTP/1.0")
    if codings is None:
        return
    if to.line_valid and to.major is not None:
        old = (to.major, to.minor) == (1, 0) or to.major != 1
        text = f"Transfer-Encoding to a request of HTTP/{to.major}.{to.minor}"
        notes.judge("RESP-13", old, span, text)


def _judge_content(
    notes: _Notes,
    octets: bytes,
    reading: response_reader.Reading,
    to: _Asked,
    *,
    fin: bool,
    closed: bool,
) -> int:
    """All that the content decides. Where to read on; -1: that cannot be told."""
    response = reading.response
    status, span = response.status, response.head
    codings = [
        coding.strip(b" \t").lower()
        for value in response.values(b"transfer-encoding")
        for coding in value.split(b",")
    ]
    if codings:
        chunked = codings.count(b"chunked")
        bad = chunked > 1 or (codings[-1] != b"chunked" and not closed)
        notes.judge("RESP-14", bad, span, f"Transfer-Encoding: {_text(b', '.join(codings))}")
    if response.framing == "chunked" and (fin or not reading.cut):
        broken = any(fault.check == "RESP-15" for fault in reading.faults)
        if not broken:
            notes.judge("RESP-15", reading.cut, (response.head[0], len(octets)), "cut short by FIN")
    at = response.end
    if response.framing == "length":
        at = _judge_length(notes, octets, reading, to, fin=fin)
    bodiless = status < 200 or status in (204, 304)
    if bodiless or (to.method == b"HEAD" and to.line_valid):
        at = _judge_no_body(notes, octets, reading, to, fin=fin, closed=closed)
    if status == 205:
        notes.judge("RESP-17", bool(response.content), span, "content on 205")
    if status >= 300 and response.content and not response.values(b"content-type"):
        text = f"content of {status} without Content-Type"
        if to.handled:
            notes.warn("RESP-27", span, text)
        else:
            notes.judge("RESP-27", True, span, text)
    elif status >= 300 and response.content:
        notes.bits |= _BIT["RESP-27"]
    if (
        to.line_valid
        and to.major == 1
        and to.minor >= 1
        and status >= 200
        and not bodiless
        and to.method != b"HEAD"
    ):
        notes.judge("RESP-28", response.framing == "close", span, "delimited by the close only")
    return at


def _judge_length(
    notes: _Notes, octets: bytes, reading: response_reader.Reading, to: _Asked, *, fin: bool
) -> int:
    """Whether Content-Length is what was sent; where to read on."""
    response = reading.response
    content_at = response.head[1]
    span = (response.head[0], response.end)
    if reading.lost:
        return -1
    if reading.cut:
        unseen = not to.method and to.may_be_head and response.end == content_at
        if fin and not unseen:
            notes.judge(
                "RESP-09", True, span, f"cut short by FIN after {response.end - content_at}"
            )
        return -1
    after = octets[response.end : response.end + 9]
    if after and not b"HTTP/1.".startswith(after[:7]):
        # More than was announced; or less, and the next response was read as content.
        inside = octets.find(b"HTTP/1.", content_at, response.end + 7)
        if inside > content_at and response_reader.read_on(
            octets, inside, method=b"GET", ended=fin
        ):
            notes.judge("RESP-09", True, span, f"only {inside - content_at} octets were sent")
            return inside
        notes.judge("RESP-09", True, span, "more octets were sent")
    return response.end


def _judge_no_body(
    notes: _Notes,
    octets: bytes,
    reading: response_reader.Reading,
    to: _Asked,
    *,
    fin: bool,
    closed: bool,
) -> int:
    """Nothing but another response may follow the head; where to read on."""
    response = reading.response
    at = response.end
    after = octets[at : at + 7]
    body = bool(after) and not b"HTTP/1.".startswith(after)
    if not body:
        notes.bits |= _BIT["RESP-16"]
        return at
    span = (at, len(octets))
    to_head = response.status >= 200 and response.status not in (204, 304)
    if to_head and not to.valid and response.status >= 400 and closed:
        notes.warn("RESP-16", span, "a body to a HEAD that is refused as malformed")
    else:
        what = "to HEAD" if to_head else f"after {response.status}"
        notes.judge("RESP-16", True, span, f"a body {what}")
    lengths, codings = response.values(b"content-length"), response.values(b"transfer-encoding")
    if to_head and (lengths or codings):
        skipped = response_reader.read_on(octets, response.head[0], method=b"GET", ended=fin)
        if skipped is not None and not skipped.lost and not skipped.cut:
            return skipped.response.end
    return -1


def _text(octets: bytes) -> str:
    return octets[:80].decode("latin-1")


# --- what the talk as a whole decides -------------------------------------------------------------


def _when(times: list[tuple[int, int]], octet: int) -> int | None:
    for so_far, at_us in times:
        if so_far > octet:
            return at_us
    return None


class _Clock:
    """When each octet went by, in microseconds since the beginning of the connect.

    Without a timeline only the end is known.
    """

    def __init__(self, talk: Talk) -> None:
        self.known = bool(talk.timeline)
        self.end_us = talk.end_us
        self.own_fin = talk.own_close
        self.closed_us: int | None = None if talk.end is End.OPEN else talk.end_us
        self._sent: list[tuple[int, int]] = []  # octets so far, when
        self._received: list[tuple[int, int]] = []
        sent = received = 0
        for event in events(talk.timeline):
            if event.kind is EventKind.SENT:
                sent += event.octets
                self._sent.append((sent, event.at_us))
            elif event.kind is EventKind.RECEIVED:
                received += event.octets
                self._received.append((received, event.at_us))
            elif event.kind is EventKind.OWN_FIN:
                self.own_fin = True
            elif event.kind in (EventKind.FIN, EventKind.RST):
                self.closed_us = event.at_us

    def sent(self, octet: int) -> int | None:
        """When the octet of that index was written; None: not known, or never."""
        return _when(self._sent, octet)

    def received(self, octet: int) -> int | None:
        """When the octet of that index came; None: not known, or never."""
        return _when(self._received, octet)

    @property
    def last_us(self) -> int:
        """When the last octet went by, either way."""
        return max((times[-1][1] for times in (self._sent, self._received) if times), default=0)


def _judge_reflection(notes: _Notes, talk: Talk, answers: _Answers) -> None:
    """RESP-32: a piece of the request with a "<" in it stands in an error page as it was sent."""
    pieces = {
        match[1]
        for side in (rb"(?=(<[!-~\x80-\xff]{4,8}))", rb"(?=([!-~\x80-\xff]{6}<))")
        for match in re.finditer(side, talk.sent)
    }
    for answer in answers.answers:
        response = answer.response
        if response.status < 400 or not response.content or not _is_html(response):
            continue
        piece = next((piece for piece in pieces if piece in response.content), None)
        span = (response.head[1], response.end)
        notes.judge("RESP-32", piece is not None, span, f"{_text(piece or b'')} as it was sent")


def _judge_dates(
    notes: _Notes,
    talk: Talk,
    clock: _Clock,
    requests: request_reader.Requests,
    answers: _Answers,
) -> None:
    """RESP-34: within 5 s of the arrival of the head, and not the same 2 s later."""
    earlier: list[tuple[bytes, int]] = []  # a Date, and when its head had come
    for one in answers.dated:
        answer, response = one.answer, one.answer.response
        came_us = clock.received(response.head[1] - 1)
        if talk.began_s is not None:
            soonest = talk.began_s + (came_us or 0) / 1e6
            latest = talk.began_s + (clock.end_us if came_us is None else came_us) / 1e6
            # A Date has whole seconds: it may lag by the fraction.
            off = not soonest - DATE_OFF_S - 1 < one.now < latest + DATE_OFF_S
            if off:
                notes.judge("RESP-34", True, response.head, f"Date: {_text(one.date)}")
            notes.bits |= _BIT["RESP-34"]
        if came_us is None:
            continue
        request = answer.request
        if earlier and 0 <= request < len(requests.requests) and requests.requests[request].valid:
            asked_us = clock.sent(requests.requests[request].start)
            stale = [
                date for date, us in earlier if asked_us is not None and asked_us - us >= STALE_US
            ]
            if stale:
                text = f"the same Date more than 2 s later: {_text(one.date)}"
                notes.judge("RESP-34", one.date in stale, response.head, text)
        earlier.append((one.date, came_us))


_STILL_OPEN = "says close, and is still open"


def _judge_said_close(
    notes: _Notes, talk: Talk, clock: _Clock, answers: _Answers, closing: int
) -> None:
    """RESP-33: an answer that says close is followed by the close, and by no further answer."""
    answer = answers.finals[closing]
    response = answer.response
    if closing + 1 < len(answers.finals):
        after = answers.finals[closing + 1].response
        text = f"another answer ({after.status}) after one that says close"
        notes.judge("RESP-33", True, after.head, text)
        return
    if clock.own_fin or answer.reading.cut or answer.reading.lost or answers.garbage is not None:
        return
    whole_us = clock.received(response.end - 1)
    if clock.closed_us is not None:
        late_us = clock.closed_us - (whole_us or 0)
        if whole_us is None and late_us > CLOSE_US:
            return
    elif whole_us is None:
        return
    else:
        late_us = clock.end_us - whole_us
    seconds = f"{late_us / 1e6:.1f} s"
    if late_us <= CLOSE_US:
        if clock.closed_us is not None:
            notes.bits |= _BIT["RESP-33"]
    elif late_us > CLOSE_LATE_US:
        notes.judge("RESP-33", True, response.head, f"says close, and is open after {seconds}")
    elif clock.closed_us is not None:
        notes.warn("RESP-33", response.head, f"says close, and closes after {seconds}")
    else:
        notes.warn("RESP-33", response.head, f"{_STILL_OPEN} after {seconds}")


_REPEATED = (b"date", b"etag", b"vary", b"cache-control", b"expires", b"content-location")


def _judge_304(notes: _Notes, requests: request_reader.Requests, answers: _Answers) -> None:
    """RESP-26: a 304 repeats what the 200 to the same request without its condition had."""
    plain: dict[bytes, response_reader.Response] = {}
    for answer in answers.answers:
        response = answer.response
        if response.interim or not 0 <= answer.request < len(requests.requests):
            continue
        request = requests.requests[answer.request]
        if not request.valid or request.method not in (b"GET", b"HEAD"):
            continue
        if response.status == 200 and not request.conditional:
            plain[request.target] = response
        elif response.status == 304 and request.target in plain:
            before = plain[request.target]
            missing = [
                name for name in _REPEATED if before.values(name) and not response.values(name)
            ]
            text = f"without {b', '.join(missing).decode()}"
            if not missing and before.values(b"etag") != response.values(b"etag"):
                missing, text = [b"etag"], "another ETag than the 200"
            notes.judge("RESP-26", bool(missing), response.head, text)


def _judge_order(
    notes: _Notes,
    talk: Talk,
    clock: _Clock,
    requests: request_reader.Requests,
    answers: _Answers,
    declared: Declared,
) -> None:
    """RESP-18, 19, 29 and 30, as far as all that was sent is part of valid requests."""
    certain = requests.certain >= len(talk.sent)
    until_us: int | None = None
    if not certain:
        until_us = clock.sent(requests.certain)
        if until_us is None:
            return
    whole = [request for request in requests.requests if request.valid and request.whole]
    begun = len(requests.requests) > len(whole) and requests.requests[-1].valid
    finals = [
        answer
        for answer in answers.finals
        if until_us is None or _came_before(clock, answer, until_us)
    ]
    # Nobody need answer what was sent after a request, or an answer, that ends the connection.
    wanted = len(whole)
    for number, request in enumerate(whole):
        ended = number < len(finals) and _ends(finals[number])
        if request.says_close or ended:
            wanted = number + 1
            begun = False
            break
    _judge_surplus(notes, talk, clock, answers, finals, wanted + begun, until_us, whole)
    _judge_mirrored_order(notes, whole, finals)
    if not certain or clock.own_fin or talk.cut or answers.garbage is not None:
        return
    if answers.stopped and not (finals and finals[-1].response.framing == "close"):
        return
    if finals and (finals[-1].reading.cut or finals[-1].reading.lost):
        return
    _judge_silence(notes, talk, clock, whole, finals, wanted)
    _judge_close(notes, talk, clock, whole, finals, wanted, begun, declared)


def _came_before(clock: _Clock, answer: _Answer, until_us: int) -> bool:
    came_us = clock.received(max(answer.response.end - 1, 0))
    return came_us is not None and came_us < until_us


def _ends(answer: _Answer) -> bool:
    return answer.response.announces_close or answer.response.framing == "close"


def _judge_surplus(
    notes: _Notes,
    talk: Talk,
    clock: _Clock,
    answers: _Answers,
    finals: list[_Answer],
    wanted: int,
    until_us: int | None,
    whole: list[request_reader.Request],
) -> None:
    """RESP-18 and the "exactly one" of RESP-19."""
    if not finals or len(finals) < wanted:
        return
    last = finals[wanted - 1] if wanted else None
    end = last.response.end if last is not None else 0
    if answers.stopped and last is finals[-1]:
        return
    surplus = finals[wanted:]
    if surplus:
        first = surplus[0].response
        if len(surplus) == 1 and _ends_idle(talk, clock, whole, last, first):
            return
        span = (first.head[0], first.end)
        text = f"a {first.status} after the last expected answer"
        notes.judge("RESP-18", True, span, text)
        ended = last is not None and last.response.announces_close
        if not ended and not surplus[0].reading.cut:
            notes.judge("RESP-19", True, span, f"a {first.status} that no request asked for")
        return
    if until_us is not None:
        return
    if answers.garbage is not None:
        notes.judge("RESP-18", True, (answers.garbage, len(talk.received)), "surplus octets")
    elif len(talk.received) > end and last is finals[-1]:
        notes.judge("RESP-18", True, (end, len(talk.received)), "surplus octets")
    else:
        notes.bits |= _BIT["RESP-18"] | _BIT["RESP-19"]


def _ends_idle(
    talk: Talk,
    clock: _Clock,
    whole: list[request_reader.Request],
    last: _Answer | None,
    surplus: response_reader.Response,
) -> bool:
    """A 408, or a 400 after a while, that ends an idle or unfinished connection."""
    if surplus.status not in (400, 408) or not (
        talk.end is not End.OPEN or surplus.announces_close
    ):
        return False
    sent_to = whole[-1].end if whole else 0
    if surplus.status == 408 or sent_to < len(talk.sent):
        return True
    came_us = clock.received(surplus.head[0])
    before_us = clock.received(last.response.end - 1) if last is not None else None
    sent_us = clock.sent(len(talk.sent) - 1)
    if came_us is None or sent_us is None:
        return False
    return came_us - max(before_us or 0, sent_us) >= IDLE_US


def _judge_mirrored_order(
    notes: _Notes, whole: list[request_reader.Request], finals: list[_Answer]
) -> None:
    """RESP-19, in order: a mirror that shows another request's target was sent out of turn."""
    targets = {request.target for request in whole}
    if len(targets) < 2 or not all(target[:1] == b"/" for target in targets):
        return
    for request, answer in zip(whole, finals, strict=False):
        shown = _mirrored_target(answer.response)
        if shown is None or shown == request.target:
            continue
        if shown in targets:
            text = f"an answer to {_text(shown)} where {_text(request.target)} is next"
            notes.judge("RESP-19", True, (answer.response.head[0], answer.response.end), text)
            return


def _mirrored_target(response: response_reader.Response) -> bytes | None:
    if response.status != 200 or response.content[:1] != b"{":
        return None
    try:
        found = msgspec.json.decode(response.content, type=dict[str, object]).get("target")
        return base64.b64decode(found, validate=True) if isinstance(found, str) else None
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error, ValueError):
        return None


def _judge_silence(
    notes: _Notes,
    talk: Talk,
    clock: _Clock,
    whole: list[request_reader.Request],
    finals: list[_Answer],
    wanted: int,
) -> None:
    """RESP-19: a valid request that is neither answered nor ended by a close."""
    if talk.end is not End.OPEN or talk.machine_dropped or len(finals) >= wanted:
        return
    asked_us = clock.sent(whole[len(finals)].end - 1)
    if asked_us is None or clock.end_us - max(asked_us, clock.last_us) < SILENCE_US:
        return
    at = finals[-1].response.end if finals else 0
    text = f"no answer to request {len(finals) + 1} in {(clock.end_us - asked_us) / 1e6:.1f} s"
    notes.judge("RESP-19", True, (at, at), text)
    if finals:
        span = finals[-1].response.head
        notes.judge("RESP-30", True, span, "the next request met silence")


def _judge_close(
    notes: _Notes,
    talk: Talk,
    clock: _Clock,
    whole: list[request_reader.Request],
    finals: list[_Answer],
    wanted: int,
    begun: bool,
    declared: Declared,
) -> None:
    """RESP-29: an early close was announced. RESP-30: a promise to stay open is kept."""
    if not finals or len(finals) > len(whole) + begun:
        return
    last = finals[-1]
    response = last.response
    if len(finals) > 1 and not _ends(finals[0]):
        notes.bits |= _BIT["RESP-30"]
    if talk.end is End.OPEN:
        return
    whole_us = clock.received(response.end - 1)
    if response.framing == "close":
        return
    if len(finals) < wanted:
        if response.announces_close or whole[len(finals) - 1].says_close:
            return
        following = whole[len(finals)]
        asked_us = clock.sent(following.start)
        if whole_us is None or asked_us is None or asked_us - whole_us > CLOSE_US:
            return  # the server may have tired of waiting
        notes.judge("RESP-30", True, response.head, "closed after the next request was sent")
        return
    if begun and len(finals) == len(whole):
        return  # what was begun may have been given up
    if len(finals) <= len(whole) and _is_1_0(whole[len(finals) - 1]):
        return
    assert clock.closed_us is not None
    late_us = clock.closed_us - (whole_us or 0)
    if late_us > CLOSE_US:
        return
    if declared.idle_s and late_us >= declared.idle_s * 0.9e6:
        return
    announced = response.announces_close
    notes.judge("RESP-29", not announced, response.head, "closed, and did not say so")


def _is_1_0(request: request_reader.Request) -> bool:
    return request.minor == 0 and request.says_close
