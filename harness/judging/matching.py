"""Judges one exchange: does what came back fit what may come back (docs/catalogue.md)?

Pure. An expectation is a choice of alternatives. Each alternative lists answers in order, and how
the connection goes on. Silence fits only ``WAIT``. Bytes that are not an HTTP response fit nothing,
and a close without a byte is never an answer.
"""

from __future__ import annotations

import enum
import re

import msgspec

from httpmark.harness.catalogue import undeclared
from httpmark.harness.catalogue.expectation import Alternative, Answer, Demand, Expectation
from httpmark.harness.judging import answer_demands, canary, own_answers, single_case_rules
from httpmark.harness.judging.answer_words import REJECTED, fits_word
from httpmark.harness.judging.canary import Canary
from httpmark.harness.judging.observation import Final, Mirror, Played, Sight
from httpmark.harness.model.cases import Case, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.verdicts import Word

_REQUEST_LINE = re.compile(rb"(?:\r\n)*([!-~]+) (\S+) HTTP/1\.([0-9])\r?\n")
_ABSOLUTE_FORM = re.compile(rb"(?i)[!-~]+ https?://")
_ID = re.compile(rb"[?&]id=([0-9]+)")
_ID_LINE = re.compile(rb"(?:\A|\n)[!-~]+ [^ \r\n]*[?&]id=([0-9]+)[^ \r\n]* HTTP/1\.")
_SCHEME = re.compile(rb"(?i)\Ahttps?:")  # its letter case has no meaning (RFC 3986 3.1)
_AT_MIRROR = re.compile(rb"(?i)(?:https?://[^/?#]*)?/mirror(?:[?#]|\Z)")
_FRAMED = re.compile(rb"(?i)\n(?:content-length|transfer-encoding)[ \t]*:")
_KEEP_ALIVE = re.compile(rb"(?i)\nconnection:[^\r\n]*keep-alive")
# If this many bytes of the canary were understood, it was read as part of the message. Fewer may
# be chance.
_TAKEN_IN = 12
_TAKEN_IN_AT_END = 4  # the same, if they are the last bytes that the server understood
_ANSWERS_TOLD = 4
# A request line that begins with left-over bytes is invalid, or names an unknown method.
_SPOILED = frozenset({400, 501})
# Words that a close without an answer fits, too.
_CLOSING = frozenset({"REJ", "REJ301", "EITHER", "NO101", "CLOSE"})


class Fit(enum.IntEnum):
    """How well an alternative fits; a larger number is better."""

    NO = 0
    UNPROVEN = 1  # fits, but this server does not show what would prove it
    LENIENT = 2  # fits, but for a close that was not announced (RFC 9112 9.5)
    YES = 3


class Judgement(msgspec.Struct, frozen=True):
    """What is said of one exchange, and the bytes that decided."""

    word: Word
    actual: str
    span: tuple[int, int] | None = None
    closed_unanswered: bool = False
    why: str = ""
    late: bool = False  # fails only because an answer began later than it should


def judge(
    case: Case,
    exchange: Exchange,
    sight: Sight,
    expectation: Expectation,
    *,
    hardened: bool = False,
    own: own_answers.Own = (),
) -> Judgement:
    """The judgement of one exchange.

    :param hardened: judge by what the ruleset ``hardened`` asks for.
    :param own: what the application itself answers to good requests at the same places.
    """
    passes = expectation.passes
    permitted = (*expectation.allows, *expectation.noteds)
    if hardened and expectation.hardened is not None:
        passes, permitted = expectation.hardened, ()
    matcher = _Matcher(case, exchange, sight, own)
    actual = describe(case, sight, matcher.own_answers((*passes, *permitted)))
    span = _span(sight)
    if sight.outcome is Outcome.REFUSED or (
        sight.outcome is Outcome.HUNG and sight.machine_dropped
    ):
        return Judgement(Word.VOID, actual, span)
    fits = [matcher.fit(alternative) for alternative in passes]
    if Fit.YES in fits:
        return Judgement(Word.PASS, actual, span)
    others = [matcher.fit(alternative) for alternative in permitted]
    if Fit.YES in others or Fit.LENIENT in (*fits, *others):
        why = "" if Fit.YES in others else "the close was not announced (RFC 9112 9.5)"
        return Judgement(Word.WARN, actual, span, why=why)
    if Fit.UNPROVEN in (*fits, *others):
        return Judgement(Word.NOT_APPLICABLE, actual, span, why=matcher.unproven)
    if matcher.answered_unread():
        why = "the place answers before it reads the content"
        return Judgement(Word.NOT_APPLICABLE, actual, span, why=why)
    if matcher.failed_closed(passes):
        why = "refused, but with 500: as a failure of its own"
        return Judgement(Word.WARN, actual, span, why=why)
    bare = sight.outcome in (Outcome.CLOSED, Outcome.RESET)
    return Judgement(
        Word.FAIL, actual, span, closed_unanswered=bare, why=matcher.why, late=matcher.late
    )


def describe(case: Case, sight: Sight, own: int) -> str:
    """What came back, in a few words.

    :param own: how many of ``sight.answers`` are the case's own. Where the canary is a part of what
        the case sent, one of them may be the canary's.
    """
    if sight.outcome is not Outcome.ANSWERED:
        return sight.outcome.said
    said = _statuses(sight.answers[:own])
    others = (*sight.answers[own:], *sight.after)
    if sight.fault is not None:
        said.append(f"bytes that are no HTTP response ({sight.fault})")
    if sight.cut:
        said.append("an answer cut short" if sight.closed else "an answer not ended")
    text = ", ".join(said) or ("interim answers only" if sight.interims else "no answer")
    ends = {End.OPEN: "left open", End.CLOSED: "closed", End.RESET: "reset"}[sight.end]
    told = {
        Canary.ITSELF: f"the next request gets {', '.join(_statuses(others))}",
        Canary.OTHERWISE: (
            f"the next request wrongly gets {', '.join(_statuses(others))}"
            if others
            else "the next request is answered wrongly"
        ),
        Canary.UNANSWERED: "the next request is not answered",
    }.get(canary.fate(case, sight, own), ends)
    return f"{text}; {told}"


def _statuses(finals: tuple[Final, ...]) -> list[str]:
    """The statuses of answers, the first few of many."""
    said = [str(final.response.status) for final in finals[:_ANSWERS_TOLD]]
    if len(finals) > _ANSWERS_TOLD:
        said.append(f"{len(finals) - _ANSWERS_TOLD} more")
    return said


def _span(sight: Sight) -> tuple[int, int] | None:
    if sight.fault_at is not None:
        return sight.fault_at, sight.fault_at + 1
    return sight.answers[0].response.head if sight.answers else None


class _Matcher:
    """One exchange, asked about alternative after alternative; remembers why none fits."""

    def __init__(
        self, case: Case, exchange: Exchange, sight: Sight, own: own_answers.Own = ()
    ) -> None:
        self.case = case
        self.own = own
        self.sight = sight
        self.sent = exchange.sent
        self.played = Played(case, exchange, sight)
        self.ids = _ID_LINE.findall(exchange.sent) if b"id=" in exchange.sent else []
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
        if sight.completed and not sight.answers_before_completion:
            return self.no("silence until more bytes completed the message")
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
        if 0 < len(finals) < wanted and self._closed_before_all_was_sent(finals[-1]):
            return self._given(answers, finals)
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

    def _closed_before_all_was_sent(self, last: Final) -> bool:
        """Whether the server closed, as it had announced, before the last request went out."""
        sight, exchange = self.sight, self.played.exchange
        whole = sum(len(step.data) for step in self.case.steps if step.op is Op.SEND)
        canary_length = 0 if self.case.joined else len(self.case.canary)
        return (
            (last.response.announces_close or self._is_1_0())
            and sight.closed
            and not sight.cut
            and exchange.sent_octets < whole - canary_length
        )

    def _given(self, answers: tuple[Answer, ...], finals: tuple[Final, ...]) -> Fit:
        """The answers that were given fit; what was never sent stays unproven."""
        fit = min(self._answer(answers[i], finals, i) for i in range(len(finals)))
        if fit is not Fit.NO:
            self.unproven = "the server closes, as it announces, before the next request is sent"
        return min(fit, Fit.UNPROVEN)

    def own_answers(self, alternatives: tuple[Alternative, ...]) -> int:
        """How many answers are the case's own: where the canary is joined, those that the
        alternative wants that fits best, or all but the one that the mirror shows to be the
        canary's."""
        answers = self.sight.answers
        if not self.case.joined or not answers:
            return len(answers)
        if self._is_canary(answers[-1]):
            return len(answers) - 1
        best = max(
            alternatives, key=_Matcher(self.case, self.played.exchange, self.sight, self.own).fit
        )
        wanted = [one for one in best.answers if one.word != "WAIT" and "." not in one.word]
        return min(len(wanted), len(answers)) if wanted else len(answers)

    def _own(self, word: str) -> Fit:
        rule = single_case_rules.RULES[word.partition(".")[2]]
        found, why = rule(self.played)
        if found is None:
            self.unproven = why
            return Fit.UNPROVEN
        return Fit.YES if found else self.no(why)

    def _own_part(self, answers: tuple[Answer, ...]) -> tuple[Final, ...]:
        """Where the canary is joined: the answers before its own."""
        finals = self.sight.answers
        if (
            finals
            and canary.answered_as_itself(finals[-1], self.case)
            and self._is_canary(finals[-1])
        ):
            return finals[:-1]
        return finals[: len(answers)]

    def _is_canary(self, final: Final) -> bool:
        shown = final.mirror
        return (
            shown is not None
            and shown.target is not None
            and canary.answered_as_itself(final, self.case)
        )

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
        excused = [demand for demand in first.demands if demand.kind == "undeclared"]
        if excused and not excused[0].name:
            return self.no("silence past the declared timeout")
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
        if excused:
            self.unproven = undeclared.value(excused[0].name)
            return Fit.UNPROVEN
        return Fit.YES

    def _took_in(self, shown: Mirror | None) -> Fit:
        """Whether an incomplete message that was answered was completed by the canary's bytes. One
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
        if any(begins in part or part.endswith(begins[:_TAKEN_IN_AT_END]) for part in told):
            return Fit.YES
        return self.no("an answer to the incomplete message, late")

    def _answer(self, answer: Answer, finals: tuple[Final, ...], index: int) -> Fit:
        """One answer against its word and demands."""
        if index >= len(finals):
            return self.no("an answer is missing")
        final = finals[index]
        status = final.response.status
        word = answer.word
        own = own_answers.at(self.own, index)
        if not fits_word(word, self.sent, final, own):
            told = ": it is what a good request gets here" if status in own else ""
            return self.no(f"{status} is not {word}{told}")
        fit = Fit.YES
        if word in ("ACC", "EITHER") and 200 <= status < 300:
            fit = self._understood(answer, final, index)
            if fit is Fit.NO:
                return fit
        for demand in answer.demands:
            found = self._demand(demand, final)
            if found is False:
                self.late = self.late or (demand.kind == "prompt" and not self.why)
                return self.no(f"{demand.kind} {demand.name}".strip() + " is otherwise")
            if found is None:
                fit = min(fit, Fit.UNPROVEN)
        return fit

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
            if _ABSOLUTE_FORM.match(self.sent):
                # Accepted; a library may leave it to its application to find the path in it.
                self.unproven = "needs an application that finds its places by absolute-form"
                return Fit.UNPROVEN
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
        found = answer_demands.holds(self.played, demand, final)
        if found is None:
            self.unproven = answer_demands.why_unseen(demand) or self.unproven
        return found

    def _ended(self, alternative: Alternative, last: Final, fit: Fit) -> Fit:
        """How the connection went on after the last answer."""
        case, sight = self.case, self.sight
        word = alternative.answers[-1].word
        end = alternative.end or ("close" if word == "R400C" else "")
        became = canary.fate(case, sight, len(alternative.answers))
        announced = last.response.announces_close or self._is_1_0()
        if end == "loose" or last.response.status == 101 or self._tunnel(last):
            return fit
        if end in ("close", "fin"):
            if not (sight.closed_in_time and became in (Canary.CLOSED, Canary.NONE)):
                return self.no("the connection was not closed")
            if end == "fin" and sight.end is not End.CLOSED:
                return self.no("reset instead of FIN")
            return fit
        if end == "spoiled":
            refused = len(sight.after) == 1 and sight.after[0].response.status in _SPOILED
            spoiled = refused or became is Canary.CLOSED
            return fit if spoiled else self.no("neither 400, 501 nor a close for what is left")
        if became is Canary.OTHERWISE:
            return self.no("out of sync: the next request is not answered as itself")
        if end == "open":
            return fit if became is Canary.ITSELF else self.no("the connection is not usable")
        if became is Canary.UNANSWERED:
            if end == "quiet":
                return fit
            if fit is Fit.YES and self.answered_unread():
                return Fit.UNPROVEN
            return self.no("the next request is not answered")
        if became is Canary.CLOSED and not announced and end != "sync":
            is_success = word == "ACC" or (word == "EITHER" and last.response.status < 300)
            return min(fit, Fit.LENIENT) if is_success else fit
        return fit

    def _is_1_0(self) -> bool:
        line = _REQUEST_LINE.match(self.sent)
        return line is not None and line[3] == b"0" and not _KEEP_ALIVE.search(self.sent)

    def _tunnel(self, last: Final) -> bool:
        is_connect = bool(self.case.methods) and self.case.methods[-1] == b"CONNECT"
        return is_connect and 200 <= last.response.status < 300

    def failed_closed(self, passes: tuple[Alternative, ...]) -> bool:
        """500 and a close where a refusal of any kind is asked: nothing was acted on. Where the
        clause names the status, as 400, it is no such refusal."""
        sight = self.sight
        return (
            any(len(one.answers) == 1 and one.answers[0].word in _CLOSING for one in passes)
            and [final.response.status for final in sight.answers] == [500]
            and sight.fault is None
            and not sight.cut
            and not sight.after
            and sight.closed
        )

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


def _same_target(shown: Mirror, sent: bytes) -> bool:
    if shown.target is None or shown.target == sent:
        return True
    path = re.sub(rb"(?i)^https?://[^/?#]*", b"", sent) or b"/"
    return shown.target in (path, _SCHEME.sub(lambda match: match[0].lower(), sent))
