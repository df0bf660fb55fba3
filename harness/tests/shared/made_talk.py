"""A made exchange of one rule: the writes, the answers in turn, the canary's fate, the end."""

from __future__ import annotations

from httpmark.harness.catalogue import case_builder, catalogue, expectation, placeholder_values
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.judging import judge
from httpmark.harness.model.cases import Case, Facts, Level, Op
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Verdict, Word
from httpmark.harness.tests.shared.made_answers import answer, shown

GET = r"GET {p} HTTP/1.1\r\nHost: {h}\r\n\r\n"
POST = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nContent-Length: 5\r\n\r\nhello"
CAPITALS = r"GET HTTP://{h}{p} HTTP/1.1\r\nHost: {h}\r\n\r\n"
FOLDED = r"POST {p} HTTP/1.1\r\nHost: {h}\r\nTransfer_Encoding: chunked\r\n\r\n"
MIRROR = Facts(host="a:1", capabilities=("hello", "body", "mirror"))
BODY = Facts(host="a:1", capabilities=("hello", "body"))
HELLO = Facts(host="a:1")

FIN, RST = End.CLOSED, End.RESET


CANARY = b"GET /mirror?canary-c HTTP/1.1"  # its first line
OWN = b"<canary>"  # where the canary is answered as itself
OTHER = answer(400)


class Talk:
    """A made exchange: the case's writes, answers in turn, the canary's fate, the end."""

    def __init__(
        self,
        *answers: bytes,
        canary: bytes | None = None,
        end: End = End.OPEN,
        late_us: int = 0,
        facts: Facts = MIRROR,
        send: str = GET,
        unsent: tuple[str, ...] = (),  # writes that the end of the connection prevented
        **rule: object,
    ) -> None:
        given = {"canary": "after", "timeline": True, **rule}
        self.rule = Rule(sends=(send, *unsent), **given)  # type: ignore[arg-type]
        self.case: Case = next(case_builder.cases("c", self.rule, facts))
        self.facts = facts
        self.answers, self.canary, self.end, self.late_us = answers, canary, end, late_us

    def exchange(self) -> Exchange:
        own = shown("/mirror?canary-c") if "mirror" in self.facts.capabilities else answer(200)
        sent = [self.case.steps[0].data]
        records = [EVENT_RECORD.pack(1, 10, len(sent[0]))]
        received = b"".join(self.answers).replace(OWN, own)
        if received:
            records.append(EVENT_RECORD.pack(2, 20, len(received)))
        if self.canary is not None and not self.case.joined:
            sent.append(self.case.canary)
            records.append(EVENT_RECORD.pack(1, 100_000, len(self.case.canary)))
            fate = self.canary.replace(OWN, own)
            received += fate
            if fate:
                records.append(EVENT_RECORD.pack(2, 100_100, len(fate)))
        if self.end is not End.OPEN:
            kind = 3 if self.end is FIN else 4
            records.append(EVENT_RECORD.pack(kind, 200_000 + self.late_us, 0))
        outcome = Outcome.ANSWERED
        if not received:
            outcome = {
                End.OPEN: Outcome.HUNG, FIN: Outcome.CLOSED, RST: Outcome.RESET
            }[self.end]  # fmt: skip
        planned = b"".join(step.data for step in self.case.steps if step.op is Op.SEND)
        unsent = planned.removesuffix(self.case.canary).removeprefix(sent[0])
        return Exchange(
            "c", "c", b"".join(sent) + unsent, received, outcome, self.end, 20, 300_000,
            len(b"".join(sent)), timeline=b"".join(records),
        )  # fmt: skip

    def word(self, *passes: str, allow: tuple[str, ...] = ()) -> Word:
        return self.verdict(*passes, allow=allow).word

    def verdict(self, *passes: str, allow: tuple[str, ...] = ()) -> Verdict:
        expected = expectation.expectation(
            passes, allow, values=placeholder_values.case_values(self.rule, self.facts, "c", {})
        )
        planned = catalogue.Planned(self.case, expected, Level.MUST)
        exchange = self.exchange()
        first = judge.Judge().judge(planned, exchange)
        assert judge.Judge().judge(planned, exchange) == first
        return first
