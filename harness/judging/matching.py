"""Sight against expectation: does what came back fit what may come back (cases.md, 1.1).

Pure. Each word of the language is one small function; silence fits nothing but ``WAIT``, octets
that are no HTTP response fit nothing, and a close without an octet is never an answer.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

import msgspec

from httpmark.harness.catalogue.expectation import Alternative, Answer, Demand, Expectation
from httpmark.harness.http import response_reader
from httpmark.harness.judging import single_case_rules
from httpmark.harness.judging.observation import Final, Mirror, Sight
from httpmark.harness.model.cases import Case
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Word

REJECTED = frozenset((*range(400, 500), 501, 505))
PARSED = frozenset(
    (*range(200, 400), *range(401, 407), *range(409, 414), 415, 416, 417, 421, 422, 426, 428, 429,
     451, 501)
)  # fmt: skip

_REQUEST_LINE = re.compile(rb"(?:\r\n)*([!-~]+) (\S+) HTTP/1\.([0-9])\r?\n")
_ID = re.compile(rb"[?&]id=([0-9]+)")
_ID_LINE = re.compile(rb"(?:\A|\n)[!-~]+ [^ \r\n]*[?&]id=([0-9]+)[^ \r\n]* HTTP/1\.")
_AT_MIRROR = re.compile(rb"(?i)(?:https?://[^/?#]*)?/mirror(?:[?#]|\Z)")
_FRAMED = re.compile(rb"(?i)\n(?:content-length|transfer-encoding)[ \t]*:")
_KEEP_ALIVE = re.compile(rb"(?i)\nconnection:[^\r\n]*keep-alive")


_TAKEN_IN = 12  # so many octets of the canary show that it was taken for the message's own


class Fit(enum.IntEnum):
    """How well an alternative fits; a larger number is better."""

    NO = 0
    UNPROVEN = 1  # fits, but what would prove it cannot be seen on this server
    LENIENT = 2  # fits, but for a close that was not announced (RFC 9112 9.5)
    YES = 3


class Judgement(msgspec.Struct, frozen=True):
    """What is said of one exchange, and the octets that decided."""

    word: Word
    actual: str
    span: tuple[int, int] | None = None
    closed_unanswered: bool = False
    why: str = ""
    late: bool = False  # a failure that is only of time: an answer had not begun when it was due


class Canary(enum.Enum):
    """What became of the canary."""

    ITSELF = "answered"
    OTHERWISE = "answered as another request"
    UNANSWERED = "unanswered"
    CLOSED = "closed"
    UNSENT = "not sent"
    NONE = "none"


def judge(
    case: Case,
    exchange: Exchange,
    sight: Sight,
    expectation: Expectation,
    *,
    hardened: bool = False,
) -> Judgement:
    """The judgement of one exchange.

    :param hardened: judge by what the ruleset ``hardened`` asks for.
    """
    actual = describe(case, sight)
    span = _span(sight)
    if sight.outcome is Outcome.REFUSED or (
        sight.outcome is Outcome.HUNG and sight.machine_dropped
    ):
        return Judgement(Word.VOID, actual, span)
    passes = expectation.passes
    permitted = (*expectation.allows, *expectation.noteds)
    if hardened and expectation.hardened is not None:
        passes, permitted = expectation.hardened, ()
    look = _Look(case, exchange, sight)
    fits = [look.fit(alternative) for alternative in passes]
    if Fit.YES in fits:
        return Judgement(Word.PASS, actual, span)
    others = [look.fit(alternative) for alternative in permitted]
    if Fit.YES in others or Fit.LENIENT in (*fits, *others):
        why = "" if Fit.YES in others else "the close was not announced (RFC 9112 9.5)"
        return Judgement(Word.WARN, actual, span, why=why)
    if Fit.UNPROVEN in (*fits, *others):
        return Judgement(Word.NOT_APPLICABLE, actual, span, why=look.unproven)
    if look.answered_unread():
        why = "the place answers before it reads the content"
        return Judgement(Word.NOT_APPLICABLE, actual, span, why=why)
    bare = sight.outcome in (Outcome.CLOSED, Outcome.RESET)
    return Judgement(Word.FAIL, actual, span, closed_unanswered=bare, why=look.why, late=look.late)


def describe(case: Case, sight: Sight) -> str:
    """What came back, in a few words."""
    if sight.outcome is not Outcome.ANSWERED:
        return sight.outcome.said
    finals = (*sight.answers, *sight.after)
    said = [str(final.response.status) for final in finals[:4]]
    if len(finals) > 4:
        said.append(f"{len(finals) - 4} more")
    if sight.fault is not None:
        said.append(f"octets that are no HTTP response ({sight.fault})")
    if sight.cut:
        said.append("an answer cut short" if sight.closed else "an answer not ended")
    text = ", ".join(said) or "interim answers only"
    own = max(len(sight.answers) - 1, 0) if case.joined else len(sight.answers)
    canary = _canary(case, sight, own)
    ends = {End.OPEN: "left open", End.CLOSED: "closed", End.RESET: "reset"}[sight.end]
    told = {
        Canary.ITSELF: "the next request is answered",
        Canary.OTHERWISE: "the next request is answered wrongly",
        Canary.UNANSWERED: "the next request is not answered",
    }.get(canary, ends)
    return f"{text}; {told}"


def _span(sight: Sight) -> tuple[int, int] | None:
    if sight.fault_at is not None:
        return sight.fault_at, sight.fault_at + 1
    return sight.answers[0].response.head if sight.answers else None


def _canary(case: Case, sight: Sight, own: int | None) -> Canary:
    """The canary's fate, once ``own`` answers are the case's own (None: not known)."""
    if not case.canary:
        return Canary.NONE
    finals = sight.answers[own:] if case.joined and own is not None else sight.after
    if case.joined and own is None:
        finals = tuple(f for f in sight.answers if _names(f, case))
    if finals:
        return Canary.ITSELF if len(finals) == 1 and _names(finals[0], case) else Canary.OTHERWISE
    if sight.fault is not None or (sight.cut and (case.joined or sight.cut_after_canary)):
        return Canary.OTHERWISE
    if sight.closed:
        return Canary.CLOSED
    return Canary.UNANSWERED if case.joined or sight.canary_sent else Canary.UNSENT


def _names(final: Final, case: Case) -> bool:
    """Whether an answer is the canary's own: the mirror names it, else a 2xx has to do."""
    if not 200 <= final.response.status < 300:
        return False
    shown = final.mirror
    if shown is None or shown.target is None:
        return True
    named = b"canary-" + case.id.encode("latin-1") in shown.target
    # Octets of the case itself before its method make another request of it.
    return named and shown.method in (None, b"GET") and not _leaked(shown, case)


def _leaked(shown: Mirror, case: Case) -> bool:
    """Whether the canary was understood with content, or with fields that only the case sent."""
    if shown.content:
        return True
    sent, own = case.sent.lower(), case.canary.lower() + b"\nconnection:"
    lines = (b"\n" + name.lower() + b":" for name, _ in shown.fields or ())
    return any(line in sent and line not in own for line in lines)


class _Look:
    """One exchange, asked about alternative after alternative; remembers why none fits."""

    def __init__(self, case: Case, exchange: Exchange, sight: Sight) -> None:
        self.case = case
        self.exchange = exchange
        self.sent = exchange.sent
        self.ids = _ID_LINE.findall(exchange.sent) if b"id=" in exchange.sent else []
        self.sight = sight
        self.why = ""
        self.late = False
        self.unproven = "needs the mirror to be proven"

    def no(self, why: str) -> Fit:
        self.why = self.why or why
        return Fit.NO

    def fit(self, alternative: Alternative) -> Fit:
        """How well one alternative fits."""
        answers = alternative.answers
        first = answers[0].word
        if "." in first:
            return self._own(first)
        if first == "WAIT":
            return self._waited(alternative)
        sight = self.sight
        if sight.fault is not None:
            return self.no(f"no HTTP response: {sight.fault}")
        if sight.outcome is Outcome.HUNG:
            return self.no("silence")
        finals = sight.answers
        wanted = len(answers)
        if self.case.joined:
            finals = self._own_part(answers)
        if len(finals) == wanted - 1 and answers[-1].word in _CLOSING and self._closed_bare():
            return min(
                (self._answer(answer, finals, i) for i, answer in enumerate(answers[:-1])),
                default=Fit.YES,
            )
        if alternative.end == "fewer" and 0 < len(finals) < wanted:
            return self._ended_early(answers, finals)
        if len(finals) != wanted:
            return self.no(f"{len(finals)} answers instead of {wanted}")
        if sight.cut and not sight.cut_after_canary:
            return self.no("an answer begun and not ended")
        worst = min(self._answer(answer, finals, i) for i, answer in enumerate(answers))
        if worst is Fit.NO:
            return worst
        return self._ended(alternative, finals[-1], worst)

    def _ended_early(self, answers: tuple[Answer, ...], finals: tuple[Final, ...]) -> Fit:
        """Fewer answers than requests: the last one announces close, and the close comes."""
        sight = self.sight
        if not (finals[-1].response.announces_close or self._is_1_0()):
            return self.no(f"{len(finals)} answers, and the last one did not announce a close")
        if sight.cut or not sight.closed:
            return self.no("the connection was not closed as announced")
        return min(self._answer(answers[i], finals, i) for i in range(len(finals)))

    def prompt(self) -> bool | None:
        """Before each write but the canary's, as many answers had begun as writes went before it.

        A 100 counts: what has begun is not held back until more octets come. Another interim answer
        makes the client go on, too, but asks for nothing: None where only that had come.
        """
        sight = self.sight
        writes = sight.received_at_writes[: -1 if sight.canary_sent else None]

        def is_prompt(counted: Callable[[response_reader.Response], bool]) -> bool:
            starts = [
                response.head[0]
                for final in sight.answers
                for response in (*final.interims, final.response)
                if counted(response)
            ]
            return all(
                sum(start < received for start in starts) >= number
                for number, received in enumerate(writes)
            )

        if is_prompt(lambda response: not response.interim or response.status == 100):
            return True
        if is_prompt(lambda response: True):
            self.unproven = "an interim answer that is no 100 came where one was waited for"
            return None
        return False

    def _own(self, word: str) -> Fit:
        found, why = single_case_rules.TALKS[word.partition(".")[2]](
            self.case, self.exchange, self.sight
        )
        if found is None:
            self.unproven = why
            return Fit.UNPROVEN
        return Fit.YES if found else self.no(why)

    def _own_part(self, answers: tuple[Answer, ...]) -> tuple[Final, ...]:
        """Where the canary is joined: the answers before its own."""
        finals = self.sight.answers
        if finals and _names(finals[-1], self.case) and self._is_canary(finals[-1]):
            return finals[:-1]
        return finals[: len(answers)]

    def _is_canary(self, final: Final) -> bool:
        shown = final.mirror
        return shown is not None and shown.target is not None and _names(final, self.case)

    def _closed_bare(self) -> bool:
        """A close in the place of an answer; a streamed 2xx that was cut off counts as one."""
        sight = self.sight
        if not sight.closed or sight.after:
            return False
        if sight.cut:
            return sight.cut_status is not None and 200 <= sight.cut_status < 300
        return True

    def _waited(self, alternative: Alternative) -> Fit:
        """No final answer before the message was complete."""
        sight = self.sight
        first, *rest = alternative.answers
        if any(demand.kind == "beyond" and not demand.name for demand in first.demands):
            return self.no("more than the server takes, and no answer")
        if sight.fault is not None:
            return self.no(f"no HTTP response: {sight.fault}")
        if sight.completed:
            if sight.answers_before_completion:
                return self.no("an answer before the message was complete")
            later = (*sight.answers, *sight.after)
            if not rest and not later:
                return Fit.YES if sight.closed else self.no("no answer to the complete message")
            if not rest:
                status = later[0].response.status
                fine = 200 <= status < 300 or status in REJECTED
                return Fit.YES if fine and len(later) <= 2 else self.no("not ACC or REJ at the end")
            return min(self._answer(answer, later, i) for i, answer in enumerate(rest))
        if sight.answers:
            return self.no("an answer before the message was complete")
        if not sight.canary_sent and sight.closed:
            return self.no("closed before the message was complete")
        if rest:
            if len(sight.after) < len(rest):
                closing = rest[-1].word in _CLOSING and sight.closed
                return Fit.YES if closing and len(rest) == 1 else self.no("no answer at the end")
            return min(self._answer(answer, sight.after, i) for i, answer in enumerate(rest))
        if len(sight.after) > 1:
            return self.no("more than one answer to an incomplete message and a request")
        if sight.after and self._is_canary(sight.after[0]):
            return self.no("the next request was answered as one of its own")
        if sight.after and sight.after[0].response.status < 300:
            return self._took_in(sight.after[0].mirror)
        return Fit.YES

    def _took_in(self, shown: Mirror | None) -> Fit:
        """Whether an incomplete message that was answered was completed by the canary's octets: one
        that was not had its answer already, only late."""
        if shown is None or (shown.content is None and shown.fields is None):
            return Fit.UNPROVEN
        lines = (*(shown.fields or ()), *(shown.trailers or ()))
        told = (
            shown.target or b"",
            shown.content or b"",
            *(part for line in lines for part in line),
        )
        begins = self.case.canary[:_TAKEN_IN]
        if any(begins in part or part.endswith(begins[:4]) for part in told):
            return Fit.YES
        return self.no("an answer to the incomplete message, late")

    def _answer(self, answer: Answer, finals: tuple[Final, ...], index: int) -> Fit:
        """One answer against its word and demands."""
        if index >= len(finals):
            return self.no("an answer is missing")
        final = finals[index]
        status = final.response.status
        word = answer.word
        if word in _WORDS:
            if not _WORDS[word](self, final):
                return self.no(f"{status} is not {word}")
        elif not _status_in(word, status):
            return self.no(f"{status} is not {word}")
        proof = Fit.YES
        if word in ("ACC", "EITHER") and 200 <= status < 300:
            proof = self._understood(answer, final, index)
            if proof is Fit.NO:
                return proof
        for demand in answer.demands:
            found = self._demand(demand, final)
            if found is False:
                self.late = self.late or (demand.kind == "prompt" and not self.why)
                return self.no(f"{demand.kind} {demand.name}".strip() + " is otherwise")
            if found is None:
                proof = min(proof, Fit.UNPROVEN)
        return proof

    def _understood(self, answer: Answer, final: Final, index: int) -> Fit:
        """With the mirror: method, target and content as sent, without being asked (ACC)."""
        if self.case.place != "mirror" or final.response.status == 204:
            return Fit.YES
        shown = final.mirror
        method = self.case.methods[min(index, len(self.case.methods) - 1)]
        line = _REQUEST_LINE.match(self.sent)
        if method == b"HEAD" or (index == 0 and line and not _AT_MIRROR.match(line[2])):
            return Fit.YES
        if shown is None:
            if index > 0:
                return Fit.YES
            return self.no("the place itself did not answer: no mirror in a 2xx")
        kinds = {demand.kind.removesuffix("?") for demand in answer.demands}
        ids = self.ids
        if ids and index < len(ids) and shown.target is not None:
            found = _ID.search(shown.target)
            if found is None or found[1] != ids[index]:
                return self.no("an answer out of order")
        if index == 0:
            if line is None:
                return Fit.YES
            if not kinds & {"method", "any method"} and shown.method not in (None, line[1]):
                return self.no("another method was understood")
            if not kinds & {"target", "any target"} and not _same_target(shown, line[2]):
                return self.no("another target was understood")
            framed = _FRAMED.search(self.sent)
            if not kinds & {"content", "content?"} and shown.content and not framed:
                return self.no("content where none was sent")
        return Fit.YES

    def _demand(self, demand: Demand, final: Final) -> bool | None:
        """Whether a demand holds; None where it cannot be seen here."""
        check = _DEMANDS[demand.kind]
        return check(self, demand, final)

    def _ended(self, alternative: Alternative, last: Final, fit: Fit) -> Fit:
        """How the connection went on after the last answer."""
        case, sight = self.case, self.sight
        word = alternative.answers[-1].word
        end = alternative.end or ("close" if word == "R400C" else "")
        canary = _canary(case, sight, len(alternative.answers))
        announced = last.response.announces_close or self._is_1_0()
        if end == "loose" or last.response.status == 101 or self._tunnel(last):
            return fit
        if end in ("close", "fin"):
            if not (sight.closed_in_time and canary in (Canary.CLOSED, Canary.NONE)):
                return self.no("the connection was not closed")
            if end == "fin" and sight.end is not End.CLOSED:
                return self.no("reset instead of FIN")
            return fit
        if end == "spoiled":
            refused = [final.response.status for final in sight.after] == [400]
            spoiled = refused or canary is Canary.CLOSED
            return fit if spoiled else self.no("neither 400 nor a close for what is left over")
        if canary is Canary.OTHERWISE:
            return self.no("out of sync: the next request is not answered as itself")
        if end == "open":
            return fit if canary is Canary.ITSELF else self.no("the connection is not usable")
        if canary is Canary.UNANSWERED:
            if fit is Fit.YES and self.answered_unread():
                return Fit.UNPROVEN
            return self.no("the next request is not answered")
        if canary is Canary.CLOSED and not announced and end != "sync":
            is_success = word == "ACC" or (word == "EITHER" and last.response.status < 300)
            return min(fit, Fit.LENIENT) if is_success else fit
        return fit

    def _is_1_0(self) -> bool:
        line = _REQUEST_LINE.match(self.sent)
        return line is not None and line[3] == b"0" and not _KEEP_ALIVE.search(self.sent)

    def _tunnel(self, last: Final) -> bool:
        is_connect = bool(self.case.methods) and self.case.methods[-1] == b"CONNECT"
        return is_connect and 200 <= last.response.status < 300

    def answered_unread(self) -> bool:
        """A place that answers before it reads the content: what it made of it is not seen."""
        sight = self.sight
        return (
            self.case.place == "hello"
            and _FRAMED.search(self.sent) is not None
            and sight.fault is None
            and len(sight.answers) == 1
            and 200 <= sight.answers[0].response.status < 300
            and not sight.after
        )

    def content(self, final: Final) -> bytes | None:
        """The content the server understood, where it shows it."""
        if self.case.place == "mirror":
            shown = final.mirror
            return shown.content if shown is not None else None
        if self.case.place == "body" and 200 <= final.response.status < 300:
            return final.response.content
        return None


_CLOSING = frozenset({"REJ", "REJ301", "EITHER", "NO101", "CLOSE"})


def _redirected(look: _Look, final: Final) -> bool:
    """301 or 308 to the correctly encoded target (RFC 9112 3)."""
    if final.response.status not in (301, 308):
        return False
    places = final.response.values(b"location")
    line = re.match(rb"(?:\r\n)*[!-~]+[ \t]+(.*?)[ \t]+HTTP/", look.sent, re.DOTALL)
    if len(places) != 1 or line is None:
        return False
    if re.search(rb"%(?![0-9A-Fa-f]{2})|[^!#-;=?-Z_a-z~%\[\]]", places[0]):
        return False
    path = re.sub(rb"^[a-z]+://[^/?#]*", b"", places[0])
    return unquote_to_bytes(path) == unquote_to_bytes(line[1])


_WORDS: dict[str, Callable[[_Look, Final], bool]] = {
    "ACC": lambda look, final: 200 <= final.response.status < 300,
    "PARSED": lambda look, final: final.response.status in PARSED,
    "R400": lambda look, final: final.response.status == 400,
    "R400C": lambda look, final: final.response.status == 400,
    "REJ": lambda look, final: final.response.status in REJECTED,
    "REJ301": lambda look, final: final.response.status in REJECTED or _redirected(look, final),
    "EITHER": lambda look, final: (
        200 <= final.response.status < 300 or final.response.status in REJECTED
    ),
    "CLOSE": lambda look, final: False,
    "ONE": lambda look, final: True,
    "NO101": lambda look, final: final.response.status != 101,
}


def _status_in(words: str, status: int) -> bool:
    return any(
        int(word[0]) == status // 100 if word.endswith("xx") else int(word) == status
        for word in words.split(",")
    )


def _same_target(shown: Mirror, sent: bytes) -> bool:
    if shown.target is None or shown.target == sent:
        return True
    path = re.sub(rb"(?i)^https?://[^/?#]*", b"", sent) or b"/"
    return shown.target == path


def _list(values: list[bytes]) -> bytes:
    """Field lines as one comma list, whitespace around commas apart (RFC 9110 5.3)."""
    return b",".join(piece.strip(b" \t") for value in values for piece in value.split(b","))


def _values(pairs: tuple[tuple[bytes, bytes], ...], name: str) -> list[bytes]:
    wanted = name.encode("latin-1")
    return [value for key, value in pairs if key.lower() == wanted]


def _held(demand: Demand, found: list[bytes]) -> bool:
    if not found:
        return False
    if demand.how == "=":
        return _list(found) == _list([demand.text])
    if demand.how == "~":
        return re.fullmatch(demand.text, b", ".join(found), re.DOTALL) is not None
    return True


def _mirrored(look: _Look, demand: Demand, final: Final) -> bool | None:
    shown = final.mirror if look.case.place == "mirror" else None
    pairs = None
    if shown is not None:
        pairs = shown.trailers if "trailer" in demand.kind else shown.fields
    if pairs is None:
        return True if demand.kind == "field?" else None
    found = _values(pairs, demand.name)
    if demand.kind.startswith("no "):
        return not (_held(demand, found) if demand.how else found)
    return _held(demand, found)


def _shown(look: _Look, demand: Demand, final: Final) -> bool | None:
    shown = final.mirror if look.case.place == "mirror" else None
    name = demand.kind.removeprefix("no ").removesuffix("?")
    value: bytes | None = getattr(shown, name) if shown is not None else None
    if demand.kind.endswith("?") and value is None:
        return True
    if demand.kind.startswith("no "):
        # What another place answered, or is not said, is not the value that may not be.
        return value != demand.text
    return None if value is None else value == demand.text


def _content(look: _Look, demand: Demand, final: Final) -> bool | None:
    found = look.content(final)
    if found is not None:
        return found == demand.text
    # Framing is proven by the next request's answer, even where the content is not shown.
    return True if _canary(look.case, look.sight, 1) is Canary.ITSELF else None


def _continued(final: Final) -> int:
    """How many 100 came before it: other interim answers may come at any time (RFC 9110 15.2)."""
    return sum(interim.status == 100 for interim in final.interims)


def _has(look: _Look, demand: Demand, final: Final) -> bool:
    return _held(demand, final.response.values(demand.name.encode("latin-1")))


_DEMANDS: dict[str, Callable[[_Look, Demand, Final], bool | None]] = {
    "content": _content,
    "content?": lambda look, demand, final: _content(look, demand, final) is not False,
    "field": _mirrored,
    "field?": _mirrored,
    "no field": _mirrored,
    "trailer": _mirrored,
    "no trailer": _mirrored,
    "method": _shown,
    "target": _shown,
    "authority": _shown,
    "version": _shown,
    "method?": _shown,
    "target?": _shown,
    "authority?": _shown,
    "no content": _shown,
    "no method": _shown,
    "no target": _shown,
    "no authority": _shown,
    "no version": _shown,
    "any target": lambda look, demand, final: True,
    "any method": lambda look, demand, final: True,
    "beyond": lambda look, demand, final: bool(demand.name),
    "status": lambda look, demand, final: _status_in(demand.name, final.response.status),
    "has": _has,
    "lacks": lambda look, demand, final: not final.response.values(demand.name.encode("latin-1")),
    "body": lambda look, demand, final: (
        re.search(demand.text, final.response.content, re.DOTALL) is not None
    ),
    "body lacks": lambda look, demand, final: demand.text not in final.response.content,
    "nobody": lambda look, demand, final: not final.response.content,
    "says close": lambda look, demand, final: final.response.announces_close,
    "keeps": lambda look, demand, final: not final.response.announces_close,
    "with 100": lambda look, demand, final: _continued(final) > 0,
    "with one 100": lambda look, demand, final: _continued(final) == 1,
    "prompt": lambda look, demand, final: look.prompt(),
    "before fin": lambda look, demand, final: (
        look.sight.received_at_fin is not None
        and final.response.head[1] <= look.sight.received_at_fin
    ),
    "no 100": lambda look, demand, final: _continued(final) == 0,
}
