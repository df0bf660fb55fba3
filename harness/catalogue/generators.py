"""Rules to cases: what a scenario entry varies, and the steps its octets go out in.

The order inside a family is that of the published benchmark: octets as signed char (0x80 to 0xFF,
then 0x00 to 0x7F), pairs first those with a bad first octet, then good first and bad second.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import msgspec

from httpmark.harness.catalogue import generators, notation
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import (
    PLANTED,
    Await,
    Case,
    Facts,
    Level,
    Op,
    Step,
)
from httpmark.harness.model.servers import LIMITS

ORDER = (*range(0x80, 0x100), *range(0x80))

SURPLUS_MS = 80  # how long a surplus answer is waited for before the canary (cases.md 1.1)
LOOK_MS = 50  # between two writes, when no answer comes
CLOSE_MS = 1500  # a close counts when it is seen within this
ANSWER_MS = 2000
WAIT_MS = 1200
# Of a slow server's plain answer, how many times as long is waited: calibrated up, never down.
_PATIENCE = 4

_CONTENT = re.compile(r"(?is)\bPOST\b.*(?:content.?length|transfer.?encoding|expect)")
_FIRST_METHOD = re.compile(rb"(?:\r?\n)*([!-~]+)[ \t]")
_MARK = b"\x00\xff{what varies}\xff\x00"
_NAME = "the-name-of-a-case"


class Class(msgspec.Struct, frozen=True, kw_only=True):
    """An exception inside a family: which variations, and what holds for them instead."""

    octets: frozenset[int] | None = None
    decoded: frozenset[int] | None = None
    when: dict[str, bytes | int] = {}
    level: Level | None = None
    passes: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    noteds: tuple[str, ...] = ()
    canary: str | None = None
    answers: int = 1  # as in Rule


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """How an entry's octets are made and sent, as its scenario file states it."""

    sends: tuple[str, ...] = ()  # one write each
    steps: tuple[str, ...] = ()  # the whole talk instead
    let: tuple[tuple[str, str], ...] = ()
    octets: frozenset[int] | None = None
    pairs_outside: frozenset[int] | None = None  # pairs with at least one octet outside
    pairs_within: frozenset[int] | None = None  # pairs with both octets inside
    decoded: frozenset[int] | None = None  # keep pairs whose hex value lies in here
    vary: tuple[tuple[str, tuple[bytes | int, ...]], ...] = ()
    classes: tuple[Class, ...] = ()
    place: str = "auto"
    canary: str = "none"  # "after", "joined" or "none"
    turns: int = 1  # how often the writes go out, each time after the answer
    complete: str | None = None
    methods: tuple[str, ...] = ()
    answers: int = 1  # how many final answers are waited for
    answer_ms: int = ANSWER_MS
    close_ms: int = CLOSE_MS
    head_only: bool = False
    deadline_ms: int = 0  # 0: what the steps add up to
    timeline: bool = False
    passes: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    noteds: tuple[str, ...] = ()
    hardened: tuple[str, ...] | None = None

    @property
    def varies(self) -> tuple[str, ...]:
        """The names of the placeholders that vary."""
        if self.octets is not None:
            return ("octet",)
        if self.pairs_outside is not None or self.pairs_within is not None:
            return ("pair",)
        return tuple(name for name, _ in self.vary)


class Variation(msgspec.Struct, frozen=True):
    """One case of a family: the tail of its slug, and what its placeholders stand for."""

    slug: str
    values: dict[str, notation.Value]


def patience_ms(least_ms: int, facts: Facts) -> int:
    """How long a wait is on a target: at least so long, and several times its plain answer."""
    return max(least_ms, _PATIENCE * facts.slowest_ms)


def _calibrated(rule: Rule, facts: Facts) -> Rule:
    """A rule with the patience that a slow target needs."""
    if patience_ms(0, facts) <= min(rule.answer_ms, rule.close_ms):
        return rule
    return msgspec.structs.replace(
        rule,
        answer_ms=patience_ms(rule.answer_ms, facts),
        close_ms=patience_ms(rule.close_ms, facts),
        deadline_ms=rule.deadline_ms and patience_ms(rule.deadline_ms, facts),
    )


def variations(rule: Rule, step: int = 1) -> Iterator[Variation]:
    """Each variation of a rule, in the family's order; with ``step`` every so manieth."""
    if rule.octets is not None:
        for a in itertools.islice((a for a in ORDER if a in rule.octets), 0, None, step):
            yield Variation(f"-{a:02x}", {"octet": bytes((a,))})
    elif rule.pairs_outside is not None or rule.pairs_within is not None:
        for a, b in itertools.islice(_pairs(rule), 0, None, step):
            yield Variation(f"-{a:02x}-{b:02x}", {"pair": bytes((a, b))})
    elif rule.vary:
        names = [name for name, _ in rule.vary]
        combinations = itertools.product(*(values for _, values in rule.vary))
        for combination in itertools.islice(combinations, 0, None, step):
            tail = "".join(
                f"-{value}" if isinstance(value, int) else f"-{value.hex()}"
                for value in combination
            )
            yield Variation(tail, dict(zip(names, combination, strict=True)))
    else:
        yield Variation("", {})


def _pairs(rule: Rule) -> Iterator[tuple[int, int]]:
    within = grammar.ANY if rule.pairs_within is None else rule.pairs_within
    order = [octet for octet in ORDER if octet in within]
    if rule.pairs_outside is not None:
        good = rule.pairs_outside
        yield from ((a, b) for a in order if a not in good for b in order)
        yield from ((a, b) for a in order if a in good for b in order if b not in good)
    else:
        for a in order:
            for b in order:
                if rule.decoded is None or int(bytes((a, b)), 16) in rule.decoded:
                    yield a, b


def count(rule: Rule) -> int:
    """How many cases a rule makes."""
    if rule.octets is not None:
        return len(rule.octets)
    if rule.pairs_outside is not None or rule.pairs_within is not None:
        return sum(1 for _ in _pairs(rule))
    total = 1
    for _, values in rule.vary:
        total *= len(values)
    return total


def variant(rule: Rule, values: dict[str, notation.Value]) -> int:
    """The class a variation falls into: its place in ``rule.classes``, or -1."""
    for number, exception in enumerate(rule.classes):
        if exception.octets is not None:
            octet = values.get("octet", values.get("item", b""))
            if isinstance(octet, bytes) and len(octet) == 1 and octet[0] in exception.octets:
                return number
        elif exception.decoded is not None:
            pair = values.get("pair", b"")
            if isinstance(pair, bytes) and int(pair, 16) in exception.decoded:
                return number
        elif all(values.get(name) == value for name, value in exception.when.items()):
            return number
    return -1


def place(rule: Rule, facts: Facts) -> str:
    """The capability that ``{p}`` stands for on a target (cases.md 1.1)."""
    if rule.place != "auto":
        return rule.place
    if "mirror" in facts.capabilities:
        return "mirror"
    texts = "".join((*rule.sends, *rule.steps, *(text for _, text in rule.let)))
    if "body" in facts.capabilities and _CONTENT.search(texts):
        return "body"
    return "hello"


def values(rule: Rule, facts: Facts, case: str) -> dict[str, notation.Value | None]:
    """What placeholders stand for, apart from what varies.

    :raises notation.Unknown: a ``let`` needs what the target does not declare.
    """
    where = place(rule, facts)
    known: dict[str, notation.Value | None] = {
        "p": (facts.path if where == "hello" else f"/{where}").encode("latin-1"),
        "hello": facts.path.encode("latin-1"),
        "big": (
            "/big"
            if "behave" in facts.capabilities
            else facts.path
            if where == "hello"
            else f"/{where}"
        ).encode("latin-1"),
        "h": facts.host.encode("latin-1"),
        _HEADER: "".join(f"{line}\r\n" for line in facts.header).encode("latin-1"),
        "host": _host(facts.host).encode("latin-1"),
        "port": b"%d" % facts.port,
        "scheme": facts.scheme.encode("latin-1"),
        "id": case.encode("latin-1"),
        "canary": canary(facts, case),
    }
    known["websocket"] = b"/websocket" if "websocket" in facts.capabilities else known["p"]
    known["file"] = b"/static/ok.html" if "static" in facts.capabilities else known["p"]
    known |= {f"limit.{name}": facts.limits.get(name) for name in LIMITS}
    known |= dict.fromkeys(PLANTED)
    known |= {name: text.encode("latin-1") for name, text in facts.values.items()}
    return known


_HEADER = "header"
_HOST_LINE = r"Host: {h}\r\n"


def _octets(text: str, known: dict[str, notation.Value | None]) -> bytes:
    """What a text stands for, with the field lines of the target behind every Host line.

    They are put into the text, so that lengths computed from it count them.

    :raises notation.Unknown: the text asks for a value that is not known.
    """
    if known.get(_HEADER):
        text = text.replace(_HOST_LINE, f"{_HOST_LINE}{{{_HEADER}}}")
    return notation.expand(text, known)


def _host(host: str) -> str:
    """A Host value without its port."""
    return re.sub(r":[0-9]*$", "", host) if not host.endswith("]") else host


def canary(facts: Facts, case: str) -> bytes:
    """The valid request that names a case; answered as itself, it shows that both ends agree."""
    where = "/mirror" if "mirror" in facts.capabilities else facts.path
    mark = "&" if "?" in where else "?"
    return f"GET {where}{mark}canary-{case} HTTP/1.1\r\n{facts.host_lines}\r\n".encode("latin-1")


def inapplicable(rule: Rule, facts: Facts) -> str | None:
    """Why a rule cannot be played against a target; None where it can."""
    if not rule.sends and not rule.steps:
        return None
    try:
        next(cases("x", rule, facts))
    except notation.Unknown as error:
        return f"the target declares no {error.name.replace('.', ' ')}"
    except ValueError as error:
        return str(error)
    except StopIteration:
        return "nothing to send"
    return None


def cases(family: str, rule: Rule, facts: Facts, *, step: int = 1) -> Iterator[Case]:
    """The cases of an entry, addressed to a target.

    :param step: only every so manieth.
    :raises notation.Unknown: the octets need what the target does not declare.
    """
    return (case for case, _ in varied(family, rule, facts, step=step))


def varied(
    family: str, rule: Rule, facts: Facts, *, step: int = 1
) -> Iterator[tuple[Case, Variation]]:
    """The same, each with the variation it comes from."""
    rule = _calibrated(rule, facts)
    varies = rule.varies
    if varies in (("octet",), ("pair",)) and len(rule.sends) == 1 and not rule.let:
        yield from _quick(family, rule, facts, varies[0], step)
        return
    for variation in variations(rule, step):
        yield _case(family, rule, facts, variation), variation


def _quick(
    family: str, rule: Rule, facts: Facts, name: str, step: int
) -> Iterator[tuple[Case, Variation]]:
    """The same for the large families: one text, one place where it varies."""
    known = values(rule, facts, "")
    text = _octets(rule.sends[0], {**known, name: _MARK})
    before, _, after = text.partition(_MARK)
    where = place(rule, facts)
    asking_before, _, asking_after = canary(facts, _NAME).partition(_NAME.encode())
    asks = _methods(rule, before) if _FIRST_METHOD.match(before) else None
    made: dict[tuple[int, tuple[bytes, ...]], Case] = {}
    for variation in variations(rule, step):
        id = family + variation.slug
        value = variation.values[name]
        assert isinstance(value, bytes)
        octets = before + value + after
        number = variant(rule, variation.values) if rule.classes else -1
        methods = asks or _methods(rule, octets)
        like = made.get((number, methods))
        if like is None:
            like = _built(_NAME, family, rule, facts, where, [_MARK], methods, number)
            made[number, methods] = like
        mine = asking_before + id.encode("latin-1") + asking_after if like.canary else b""
        steps = tuple(_filled(step, octets, mine) if step.data else step for step in like.steps)
        yield msgspec.structs.replace(like, id=id, steps=steps, canary=mine), variation


def _filled(step: Step, octets: bytes, mine: bytes) -> Step:
    """A write of a case made to be copied, with its own octets."""
    if step.data == _MARK:
        return Step(Op.SEND, octets, if_open=step.if_open)
    return Step(Op.SEND, mine, if_open=step.if_open)


def _case(family: str, rule: Rule, facts: Facts, variation: Variation) -> Case:
    id = family + variation.slug
    known = case_values(rule, facts, id, variation.values)
    where = place(rule, facts)
    number = variant(rule, variation.values) if rule.classes else -1
    if rule.steps:
        return _scripted(id, family, rule, facts, where, known, number)
    octets = [_octets(text, known) for text in rule.sends]
    methods = _methods(rule, octets[0])
    return _built(id, family, rule, facts, where, octets, methods, number, known)


def case_values(
    rule: Rule, facts: Facts, case: str, varied: dict[str, notation.Value]
) -> dict[str, notation.Value | None]:
    """All that placeholders of one case stand for.

    :raises notation.Unknown: a ``let`` needs what the target does not declare.
    """
    known = {**values(rule, facts, case), **varied}
    for name, text in rule.let:
        known[name] = _octets(text, known)
    return known


def _built(
    id: str,
    family: str,
    rule: Rule,
    facts: Facts,
    where: str,
    octets: list[bytes],
    methods: tuple[bytes, ...],
    number: int,
    known: dict[str, notation.Value | None] | None = None,
) -> Case:
    """Writes, then as many answers as are expected, then the canary."""
    canary_mode = rule.canary
    if number >= 0 and (given := rule.classes[number].canary) is not None:
        canary_mode = given
    steps = [Step(Op.SEND, octets[0])]
    for piece in octets[1:]:
        steps.append(Step(Op.AWAIT, wait_ms=LOOK_MS, kind=Await.LOOK_FINAL))
        steps.append(Step(Op.SEND, piece, if_open=True))
    if rule.turns > 1:
        turn = [Step(Op.SEND, octets[0], if_open=True), _await(rule, methods, 0)]
        steps = turn * rule.turns
    else:
        answers = rule.answers if number < 0 else max(rule.answers, rule.classes[number].answers)
        steps += [_await(rule, methods, index) for index in range(answers)]
    if rule.complete is not None:
        steps.append(Step(Op.SEND, _octets(rule.complete, known or {}), if_unanswered=True))
        steps.append(Step(Op.AWAIT, wait_ms=rule.answer_ms, kind=0, if_unanswered=True))
    mine = b""
    if canary_mode == "after":
        mine = canary(facts, id)
        steps += _canary_steps(mine, rule.answer_ms)
    elif canary_mode == "joined":
        mine = canary(facts, id)
        steps.append(Step(Op.AWAIT, wait_ms=rule.answer_ms, if_open=True))
    return _finished(id, family, rule, where, steps, number, methods, mine, canary_mode)


def _await(rule: Rule, methods: tuple[bytes, ...], index: int) -> Step:
    method = methods[min(index, len(methods) - 1)] if methods else b"GET"
    kind = {b"HEAD": Await.HEAD, b"CONNECT": Await.CONNECT}.get(method, Await.FINAL)
    return Step(Op.AWAIT, wait_ms=rule.answer_ms, kind=kind)


def _canary_steps(octets: bytes, answer_ms: int) -> list[Step]:
    return [
        Step(Op.WATCH, wait_ms=SURPLUS_MS, if_open=True),
        Step(Op.SEND, octets, if_open=True),
        Step(Op.AWAIT, wait_ms=answer_ms, if_open=True),
    ]


def _finished(
    id: str,
    family: str,
    rule: Rule,
    where: str,
    steps: list[Step],
    number: int,
    methods: tuple[bytes, ...],
    mine: bytes,
    canary_mode: str,
) -> Case:
    needed = sum(step.wait_ms for step in steps) + 1000
    return Case(
        id,
        family,
        tuple(steps),
        head_only=rule.head_only,
        deadline_ms=rule.deadline_ms or needed,
        close_ms=rule.close_ms,
        timeline=rule.timeline,
        variant=number,
        place=where,
        methods=methods,
        canary=mine,
        joined=canary_mode == "joined",
    )


def _methods(rule: Rule, octets: bytes) -> tuple[bytes, ...]:
    """Stated, or that of the first line."""
    if rule.methods:
        return tuple(method.encode("latin-1") for method in rule.methods)
    match = _FIRST_METHOD.match(octets)
    return (match[1],) if match else (b"GET",)


def _scripted(
    id: str,
    family: str,
    rule: Rule,
    facts: Facts,
    where: str,
    known: dict[str, notation.Value | None],
    number: int,
) -> Case:
    """The steps a scenario states one by one (scenarios/README.md)."""
    first = next((text for text in rule.steps if "send " in text), "")
    octets = _octets(first.partition("send ")[2], known)
    methods = _methods(rule, octets)
    steps: list[Step] = []
    awaited = 0
    mine = b""
    for text in rule.steps:
        opened = unanswered = False
        while (word := text.partition(" ")[0]) in ("open", "unanswered"):
            opened, unanswered = opened or word == "open", unanswered or word != "open"
            text = text.partition(" ")[2]
        op, _, argument = text.partition(" ")
        if op == "send":
            steps.append(
                Step(
                    Op.SEND,
                    _octets(argument, known),
                    if_open=opened,
                    if_unanswered=unanswered,
                )
            )
        elif op == "drip":
            match = _DRIP.fullmatch(argument)
            assert match is not None, text
            drop = Step(Op.SEND, _octets(match[1], known), if_open=True)
            every = max(milliseconds(match[2], facts), 1)
            times = milliseconds(match[3], facts) // every
            steps += [drop, Step(Op.WATCH, wait_ms=every, if_open=True)] * times
        elif op == "canary":
            mine = canary(facts, id)
            steps += _canary_steps(mine, rule.answer_ms)
        elif op == "await" and argument.startswith("any"):
            wait = milliseconds(argument[3:].strip(), facts) or rule.answer_ms
            steps.append(
                Step(
                    Op.AWAIT, wait_ms=wait, kind=Await.ANY, if_open=opened, if_unanswered=unanswered
                )
            )
        elif op == "await":
            step = _await(rule, methods, awaited)
            wait = milliseconds(argument, facts) or rule.answer_ms
            steps.append(
                Step(
                    Op.AWAIT, wait_ms=wait, kind=step.kind, if_open=opened, if_unanswered=unanswered
                )
            )
            awaited += 1
        elif op == "look":
            kind = Await.LOOK_ANY if argument.startswith("any") else Await.LOOK_FINAL
            wait = milliseconds(argument.removeprefix("any").strip(), facts)
            steps.append(
                Step(Op.AWAIT, wait_ms=wait, kind=kind, if_open=opened, if_unanswered=unanswered)
            )
        else:
            known_op = {"pause": Op.PAUSE, "watch": Op.WATCH, "fin": Op.FIN, "reset": Op.RESET}[op]
            steps.append(
                Step(
                    known_op,
                    wait_ms=milliseconds(argument, facts),
                    if_open=opened,
                    if_unanswered=unanswered,
                )
            )
    mode = "after" if mine else rule.canary
    if mode == "joined":
        mine = canary(facts, id)
    return _finished(id, family, rule, where, steps, number, methods, mine, mode)


_MS = r"(?:\d+|(?:\d+(?:\.\d+)?\*|past )timeout\.[a-z_]+(?:\|[a-z_]+)*)"
_STEP = re.compile(
    rf"(?:(?:open|unanswered) )*(?:send .+|look(?: any)? {_MS}|await(?: any)?(?: {_MS})?"
    rf"|pause {_MS}|watch {_MS}|drip .+ every {_MS} for {_MS}|fin|reset|canary)",
    re.DOTALL,
)
_DRIP = re.compile(rf"(.+) every ({_MS}) for ({_MS})", re.DOTALL)
_PAST_SHARE = 1.2  # in time is the declared timeout and 20 %, at least 2 s more (cases.md, TIME)
_PAST_MS = 2000


def milliseconds(text: str, facts: Facts) -> int:
    """A written wait: a number, ``1.5*timeout.NAME`` or ``past timeout.NAME``; none is 0.

    Of several timeouts, ``timeout.NAME|NAME``, the longest counts.

    :raises notation.Unknown: the target does not declare that timeout.
    """
    factor, _, name = text.rpartition("timeout.")
    if not name or name.isdigit():
        return int(text or 0)
    waits: list[float] = []
    for one in name.split("|"):
        if (wait := facts.timeouts.get(one)) is None:
            raise notation.Unknown(f"timeout.{one}")
        waits.append(wait)
    seconds = max(waits)
    if factor.strip() == "past":
        return max(round(1000 * seconds * _PAST_SHARE), round(1000 * seconds) + _PAST_MS)
    return round(1000 * seconds * float(factor.rstrip("*")))


def complaint(step: str) -> str | None:
    """What is wrong with a written step; None where nothing is."""
    return None if _STEP.fullmatch(step) else f"no step {step!r}; scenarios/README.md lists them"


assert frozenset(ORDER) == grammar.ANY


def expectation_texts(rule: generators.Rule, variant: int) -> tuple[str, ...]:
    given = rule.classes[variant] if variant >= 0 else None
    if given is not None and (given.passes or given.allows or given.noteds):
        return (*given.passes, *given.allows, *given.noteds)
    return (*rule.passes, *rule.allows, *rule.noteds, *(rule.hardened or ()))
