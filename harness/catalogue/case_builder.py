"""Rules to cases: the steps that each variation of an entry sends and waits for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import msgspec

from httpmark.harness.catalogue import notation, step_notation, undeclared
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.catalogue.placeholder_values import (
    canary_request,
    case_values,
    filled,
    place,
    values,
)
from httpmark.harness.catalogue.variations import Variation, variant, variations
from httpmark.harness.model.cases import Await, Case, Facts, Op, Step

SURPLUS_MS = 80  # before the canary: how long an answer too many is waited for
LOOK_MS = 50  # between two writes: how long an early answer is waited for
SPARE_MS = 1000  # what a case may take beyond all its waits
# A wait is at least so many times as long as the server's slowest plain answer.
_PATIENCE = 4
_FIRST_METHOD = re.compile(rb"(?:\r?\n)*([!-~]+)[ \t]")
# A field that some reader takes for the length of content or for its coding.
_ANNOUNCES_CONTENT = re.compile(rb"(?i)\n[ \t]*(?:content[-_]length|transfer[-_]encoding)")
_MARK = b"\x00\xff{what varies}\xff\x00"
_NAME = "the-name-of-a-case"


def patience_ms(least_ms: int, facts: Facts) -> int:
    """How long a wait is on a target: ``least_ms``, or longer where its plain answers are slow."""
    return max(least_ms, _PATIENCE * facts.slowest_ms)


def _calibrated(rule: Rule, facts: Facts) -> Rule:
    """The rule with waits that are long enough for a slow target."""
    if patience_ms(0, facts) <= min(rule.answer_ms, rule.close_ms):
        return rule
    return msgspec.structs.replace(
        rule,
        answer_ms=patience_ms(rule.answer_ms, facts),
        close_ms=patience_ms(rule.close_ms, facts),
        deadline_ms=rule.deadline_ms and patience_ms(rule.deadline_ms, facts),
    )


def inapplicable(rule: Rule, facts: Facts) -> str | None:
    """Why a rule has no case for a target; None where it has."""
    if not rule.sends and not rule.steps:
        return None
    try:
        next(cases("x", rule, facts))
    except notation.Unknown as error:
        return undeclared.value(error.name)
    except ValueError as error:
        return str(error)
    except StopIteration:
        return "nothing to send"
    return None


def cases(
    family: str, rule: Rule, facts: Facts, *, step: int = 1, only: Collection[str] | None = None
) -> Iterator[Case]:
    """The cases of an entry, addressed to a target.

    :param step: only every nth.
    :param only: the ids of the cases that are wanted; None for all.
    :raises notation.Unknown: its texts need what the target does not declare.
    """
    return (case for case, _ in varied(family, rule, facts, step=step, only=only))


def varied(
    family: str, rule: Rule, facts: Facts, *, step: int = 1, only: Collection[str] | None = None
) -> Iterator[tuple[Case, Variation]]:
    """The same, each with the variation it comes from."""
    rule = _calibrated(rule, facts)
    varies = rule.varies
    wanted = (one for one in variations(rule, step) if only is None or family + one.slug in only)
    if varies in (("octet",), ("pair",)) and len(rule.sends) == 1 and not rule.let:
        yield from _quick(family, rule, facts, varies[0], wanted)
        return
    for variation in wanted:
        yield _case(family, rule, facts, variation), variation


def _quick(
    family: str, rule: Rule, facts: Facts, name: str, wanted: Iterable[Variation]
) -> Iterator[tuple[Case, Variation]]:
    """The same for the large families: one text, one place where it varies.

    One case for each class and method is built, with marks in place of the bytes and of the id; the
    others are copies of it.
    """
    known = values(rule, facts, "")
    text = filled(rule.sends[0], {**known, name: _MARK})
    before, _, after = text.partition(_MARK)
    asking_before, _, asking_after = canary_request(facts, _NAME).partition(_NAME.encode())
    asks = _methods(rule, before) if _FIRST_METHOD.match(before) else None
    made: dict[tuple[int, tuple[bytes, ...]], Case] = {}
    for variation in wanted:
        id = family + variation.slug
        value = variation.values[name]
        assert isinstance(value, bytes)
        octets = before + value + after
        number = variant(rule, variation.values) if rule.classes else -1
        methods = asks or _methods(rule, octets)
        like = made.get((number, methods))
        if like is None:
            like = _of_writes(_Plan(_NAME, family, rule, facts, number), [_MARK], methods)
            made[number, methods] = like
        mine = asking_before + id.encode("latin-1") + asking_after if like.canary else b""
        steps = tuple(_filled(step, octets, mine) if step.data else step for step in like.steps)
        yield msgspec.structs.replace(like, id=id, steps=steps, canary=mine), variation


def _filled(step: Step, octets: bytes, mine: bytes) -> Step:
    """A write of a case made to be copied, with its own bytes."""
    if step.data == _MARK:
        return Step(Op.SEND, octets, if_open=step.if_open)
    return Step(Op.SEND, mine, if_open=step.if_open)


class _Plan(msgspec.Struct, frozen=True):
    """What one case is built from."""

    id: str
    family: str
    rule: Rule
    facts: Facts
    variant: int  # the class of its family that it is in; -1 is none
    known: dict[str, notation.Value | None] = {}  # what placeholders stand for


def _case(family: str, rule: Rule, facts: Facts, variation: Variation) -> Case:
    id = family + variation.slug
    known = case_values(rule, facts, id, variation.values)
    number = variant(rule, variation.values) if rule.classes else -1
    plan = _Plan(id, family, rule, facts, number, known)
    if rule.steps:
        return _of_steps(plan)
    octets = [filled(text, known) for text in rule.sends]
    return _of_writes(plan, octets, _methods(rule, octets[0]))


def _of_writes(plan: _Plan, octets: list[bytes], methods: tuple[bytes, ...]) -> Case:
    """Writes, then as many answers as are expected, then the canary."""
    rule, number = plan.rule, plan.variant
    canary = rule.canary
    if number >= 0 and (given := rule.classes[number].canary) is not None:
        canary = given
    steps = [Step(Op.SEND, octets[0])]
    for piece in octets[1:]:
        steps.append(Step(Op.AWAIT, wait_ms=LOOK_MS, kind=Await.LOOK_FINAL))
        # What the message announced goes out although an answer announced a close: a server may
        # read it before it closes (RFC 9112 9.6).
        is_content = _ANNOUNCES_CONTENT.search(octets[0]) is not None
        steps.append(Step(Op.SEND, piece, if_open=not is_content, if_connected=is_content))
    if rule.turns > 1:
        turn = [Step(Op.SEND, octets[0], if_open=True), _await(rule, methods, 0)]
        steps = turn * rule.turns
    else:
        answers = rule.answers if number < 0 else max(rule.answers, rule.classes[number].answers)
        steps += [_await(rule, methods, index, follows=index > 0) for index in range(answers)]
    if rule.complete is not None:
        steps.append(Step(Op.SEND, filled(rule.complete, plan.known), if_unanswered=True))
        steps.append(Step(Op.AWAIT, wait_ms=rule.answer_ms, kind=0, if_unanswered=True))
    if canary == "after":
        steps += _canary_steps(canary_request(plan.facts, plan.id), rule.answer_ms)
    elif canary == "joined":
        steps.append(Step(Op.AWAIT, wait_ms=rule.answer_ms, if_open=True))
    return _finished(plan, steps, methods, canary)


def _await(rule: Rule, methods: tuple[bytes, ...], index: int, *, follows: bool = False) -> Step:
    """The wait for the final answer to one of the requests.

    :param follows: another wait goes before. After an answer that announces a close no other one
        comes (RFC 9112 9.6), and where one was waited for in vain, a thousand more are not.
    """
    method = methods[min(index, len(methods) - 1)] if methods else b"GET"
    kind = {b"HEAD": Await.HEAD, b"CONNECT": Await.CONNECT}.get(method, Await.FINAL)
    return Step(Op.AWAIT, wait_ms=rule.answer_ms, kind=kind, if_open=follows, if_prompt=follows)


def _canary_steps(octets: bytes, answer_ms: int) -> list[Step]:
    return [
        Step(Op.WATCH, wait_ms=SURPLUS_MS, if_open=True),
        Step(Op.SEND, octets, if_open=True),
        Step(Op.AWAIT, wait_ms=answer_ms, if_open=True),
    ]


def _finished(plan: _Plan, steps: list[Step], methods: tuple[bytes, ...], canary: str) -> Case:
    rule = plan.rule
    has_canary = canary in ("after", "joined")
    return Case(
        plan.id,
        plan.family,
        tuple(steps),
        head_only=rule.head_only,
        deadline_ms=rule.deadline_ms or sum(step.wait_ms for step in steps) + SPARE_MS,
        close_ms=rule.close_ms,
        timeline=rule.timeline,
        variant=plan.variant,
        place=place(rule, plan.facts),
        methods=methods,
        canary=canary_request(plan.facts, plan.id) if has_canary else b"",
        joined=canary == "joined",
    )


def _methods(rule: Rule, octets: bytes) -> tuple[bytes, ...]:
    """The methods that the rule states, else that of the first line."""
    if rule.methods:
        return tuple(method.encode("latin-1") for method in rule.methods)
    match = _FIRST_METHOD.match(octets)
    return (match[1],) if match else (b"GET",)


def _of_steps(plan: _Plan) -> Case:
    """The steps that a scenario states one by one (``step_notation``)."""
    rule = plan.rule
    first = next((text for text in rule.steps if "send " in text), "")
    methods = _methods(rule, filled(first.partition("send ")[2], plan.known))
    written = [step_notation.read(text) for text in rule.steps]
    steps: list[Step] = []
    awaited = 0
    for one in written:
        steps += _step(one, plan, _await(rule, methods, awaited).kind)
        awaited += one.word == "await" and not one.is_any
    # Where the steps do not send a canary, none comes after them.
    is_sent = any(one.word == "canary" for one in written)
    canary = "after" if is_sent else "joined" if rule.canary == "joined" else "none"
    return _finished(plan, steps, methods, canary)


_WORD_OPS = {
    "send": Op.SEND, "await": Op.AWAIT, "look": Op.AWAIT, "pause": Op.PAUSE, "watch": Op.WATCH,
    "fin": Op.FIN, "reset": Op.RESET,
}  # fmt: skip


def _step(written: step_notation.WrittenStep, plan: _Plan, awaited: int) -> list[Step]:
    """What one written step stands for.

    :param awaited: what an AWAIT waits for here where the step does not say.
    """
    rule, facts = plan.rule, plan.facts
    if written.word == "canary":
        return _canary_steps(canary_request(facts, plan.id), rule.answer_ms)
    if written.word == "drip":
        drip = step_notation.drip(written.argument, facts)
        drop = Step(Op.SEND, filled(drip.text, plan.known), if_open=True)
        return [drop, Step(Op.WATCH, wait_ms=drip.every_ms, if_open=True)] * drip.times
    is_send = written.word == "send"
    wait_ms = 0 if is_send else step_notation.milliseconds(written.argument, facts)
    kind = 0
    if written.word == "await":
        wait_ms = wait_ms or rule.answer_ms
        kind = Await.ANY if written.is_any else awaited
    elif written.word == "look":
        kind = Await.LOOK_ANY if written.is_any else Await.LOOK_FINAL
    return [
        Step(
            _WORD_OPS[written.word],
            filled(written.argument, plan.known) if is_send else b"",
            wait_ms,
            kind,
            if_open=written.if_open,
            if_unanswered=written.if_unanswered,
        )
    ]
