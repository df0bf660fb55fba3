"""``[[family]]`` of a scenario file to a family of many cases and its rule."""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.catalogue import (
    expectation,
    grammar_table,
    notation,
    variations,
)
from httpmark.harness.catalogue.entry_checks import (
    CANARIES,
    PLACES,
    build_one,
    check_gates,
    check_shared_keys,
    check_steps,
    check_suite,
    listed,
    one_of,
)
from httpmark.harness.catalogue.expectation import AnyValue
from httpmark.harness.catalogue.family_rules import (
    ANSWER_MS,
    WAIT_MS,
    FamilyClass,
    Rule,
    expectation_texts,
)
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.scenario_keys import ClassEntry, FamilyEntry, FamilyFile
from httpmark.harness.catalogue.vocabulary import PUBLISHED_WORDS
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import Family
from httpmark.harness.model.errors import HarnessError

_PUBLISHED_DEADLINE_MS = 2000  # of the published benchmark, where an entry states no other


def generated_family(
    file: FamilyFile, text: FamilyEntry, where: str, name: str
) -> tuple[Family, Rule]:
    """A generated family, or a published control.

    :param where: how complaints about the entry begin.
    :param name: the file's name in complaints.
    :raises Mistakes: the entry is wrong; all mistakes are in it.
    """
    told = Collected()
    check_shared_keys(text, where, told)
    with told.noting():
        check_gates(text.gates, text.level, where)
    with told.noting():
        check_suite(file.suite, where)
    words = listed(text.judged_by)
    is_published = words[:1] in [(word,) for word in PUBLISHED_WORDS]
    rule = Rule()
    with told.noting():
        if not words:
            raise HarnessError(f"{where} 'pass': is empty")
        rule = _published_rule(text, where) if is_published else _rule(text, words, where)
        made = variations.count(rule)
        if made != text.count:
            raise HarnessError(f"{where} 'count': says {text.count}, the rule makes {made}")
        build_one(rule, where)
    told.done()
    family = Family(
        id=text.id,
        ref=text.ref,
        suite=file.suite,
        title=text.title,
        level=text.level.unless_contested(text.contested),
        clause=text.clause,
        why=text.why,
        judged_by=words[0] if is_published else "expectation",
        count=text.count,
        generated=text.count > 1,
        needs=tuple(text.needs if text.needs is not None else ("hello",)),
        gates=text.gates,
        source=name,
        refs=(text.ref,),
        group=text.ref,
        framing=text.framing,
        contested=text.contested,
        advisories=text.advisories,
        realistic=text.realistic,
        deliver=text.deliver,
    )
    return family, rule


class _Varied(msgspec.Struct, frozen=True, kw_only=True):
    """The sets of bytes that a family varies over; the names are those of :class:`Rule`."""

    octets: frozenset[int] | None
    pairs_outside: frozenset[int] | None
    pairs_within: frozenset[int] | None
    decoded: frozenset[int] | None


def _varied(text: FamilyEntry, where: str) -> _Varied:
    """What a family varies over; its texts hold the placeholder for it.

    :raises HarnessError: it varies over several things, or a text lacks the placeholder.
    """
    sets = _Varied(
        octets=_set(text.octets, where, "octets"),
        pairs_outside=_set(text.pairs_outside, where, "pairs_outside"),
        pairs_within=_set(text.pairs_within, where, "pairs_within"),
        decoded=_set(text.decoded, where, "decoded"),
    )
    varied = [
        key for key in ("octets", "pairs_outside", "pairs_within") if getattr(sets, key) is not None
    ]
    if varied == ["pairs_outside", "pairs_within"]:
        varied = ["pairs_within"]  # pairs within one set that are not all within the other
    if len(varied) + bool(text.vary or text.deviations) > 1:
        raise HarnessError(
            f"{where} {(*varied, 'deviations' if text.deviations else 'vary')[1]!r}: "
            f"a family varies one thing, and {varied[0]!r} is there"
        )
    if sets.decoded is not None and sets.pairs_within is None:
        raise HarnessError(f"{where} 'decoded': goes with 'pairs_within'")
    if sets.decoded is not None and not (sets.pairs_within or set()) <= grammar.HEXDIG:
        raise HarnessError(f"{where} 'decoded': the pairs must be hexadecimal digits")
    placeholder = "{octet}" if varied == ["octets"] else "{pair}"
    written = "".join((*listed(text.send), *text.steps))
    if not text.vary and text.deviations is None and written.count(placeholder) != len(varied):
        raise HarnessError(f"{where} 'send': must hold {placeholder} exactly {len(varied)} time(s)")
    return sets


def _set(expression: str | None, where: str, key: str) -> frozenset[int] | None:
    try:
        return None if expression is None else grammar.octet_set(expression)
    except ValueError as error:
        raise HarnessError(f"{where} {key!r}: {error}") from None


def _sending(text: FamilyEntry, where: str) -> Rule:
    """How the bytes of a family are made and sent, whoever judges them."""
    if bool(text.send) == bool(text.steps):
        raise HarnessError(f"{where} 'send': state one of send and steps")
    check_steps(text.steps, where)
    varied = _varied(text, where)
    if text.deadline_ms < 0:
        raise HarnessError(f"{where} 'deadline_ms': must be positive")
    return Rule(
        sends=listed(text.send),
        steps=tuple(text.steps),
        let=tuple(text.let.items()),
        vary=(
            *((name, _values(value, where)) for name, value in text.vary.items()),
            *_deviations(text, where),
        ),
        methods=tuple(text.methods),
        answer_ms=text.answer_ms or text.deadline_ms or ANSWER_MS,
        head_only=text.head_only,
        deadline_ms=text.deadline_ms,
        allows=listed(text.allow),
        noteds=listed(text.noted),
        hardened=None if text.hardened is None else listed(text.hardened),
        classes=tuple(_class(entry, where) for entry in text.classes),
        octets=varied.octets,
        pairs_outside=varied.pairs_outside,
        pairs_within=varied.pairs_within,
        decoded=varied.decoded,
    )


def _published_rule(text: FamilyEntry, where: str) -> Rule:
    """The rule of a family that is fired and judged as the published benchmark does."""
    deadline_ms = text.deadline_ms or _PUBLISHED_DEADLINE_MS
    return msgspec.structs.replace(
        _sending(text, where),
        place="hello",
        canary="none",
        answer_ms=text.answer_ms or deadline_ms,
        deadline_ms=deadline_ms,
        timeline=False,
    )


def _rule(text: FamilyEntry, passes: tuple[str, ...], where: str) -> Rule:
    """The rule of a family that is judged by expectations; as many answers are waited for as they
    name."""
    rule = msgspec.structs.replace(
        _sending(text, where),
        place=one_of(text.place, PLACES, where, "place"),
        canary=one_of(text.canary, CANARIES, where, "canary"),
        timeline=True,
        passes=passes,
    )
    try:
        read = [
            expectation.alternative(one, AnyValue())
            for number in range(-1, len(rule.classes))
            for one in expectation_texts(rule, number)
        ]
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    waits = any(answer.word == "WAIT" for one in read for answer in one.answers)
    if waits and text.answer_ms is None:
        rule = msgspec.structs.replace(rule, answer_ms=WAIT_MS)
    return msgspec.structs.replace(
        rule,
        answers=max(_answers(passes), len(text.methods)),
        classes=tuple(
            msgspec.structs.replace(one, answers=_answers(one.passes)) if one.passes else one
            for one in rule.classes
        ),
    )


def _answers(passes: tuple[str, ...]) -> int:
    return expectation.expectation(passes, values=AnyValue()).answers


def _class(text: ClassEntry, where: str) -> FamilyClass:
    if sum((text.octets is not None, text.decoded is not None, bool(text.when))) != 1:
        raise HarnessError(f"{where} 'classes': state one of octets, decoded and when")
    return FamilyClass(
        octets=_set(text.octets, where, "classes"),
        decoded=_set(text.decoded, where, "classes"),
        when={
            name: value if isinstance(value, int) else notation.unescape(value)
            for name, value in text.when.items()
        },
        level=text.level,
        passes=listed(text.judged_by),
        allows=listed(text.allow),
        noteds=listed(text.noted),
        canary=text.canary,
    )


def _deviations(text: FamilyEntry, where: str) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The deviations of a rule as what ``{item}`` varies over."""
    if text.deviations is None:
        return ()
    if unknown := set(text.deviations.but) - grammar_table.KINDS:
        raise HarnessError(f"{where} 'deviations': no kind {min(unknown)!r}")
    if "{item}" not in "".join((*listed(text.send), *text.steps)):
        raise HarnessError(f"{where} 'send': must hold {{item}} where 'deviations' is stated")
    try:
        values = grammar_table.deviating_values(
            text.deviations.rule, frozenset(text.deviations.but)
        )
    except KeyError:
        raise HarnessError(
            f"{where} 'deviations': no rule {text.deviations.rule!r}; "
            "`httpmark list coverage` shows all"
        ) from None
    return (("item", values),)


_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def _values(given: str | list[str | int], where: str) -> tuple[bytes | int, ...]:
    """What a name varies over: a range of numbers, or a list of texts and numbers."""
    if isinstance(given, str):
        if not (match := _RANGE.fullmatch(given)):
            raise HarnessError(f"{where} 'vary': {given!r} is no range as '0..128'")
        return tuple(range(int(match[1]), int(match[2]) + 1))
    return tuple(v if isinstance(v, int) else notation.unescape(v) for v in given)
