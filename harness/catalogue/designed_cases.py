"""``[[case]]`` of a scenario file to a family of one case and its rule."""

from __future__ import annotations

import difflib
import re

from httpmark.harness.catalogue import expectation
from httpmark.harness.catalogue.entry_checks import (
    CANARIES,
    PLACES,
    build_one,
    check_clause,
    check_declared,
    check_gates,
    check_needs,
    check_shared_keys,
    check_steps,
    check_suite,
    listed,
    one_of,
)
from httpmark.harness.catalogue.expectation import AnyValue
from httpmark.harness.catalogue.family_rules import ANSWER_MS, WAIT_MS, Rule
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.scenario_keys import CaseEntry, CaseFile
from httpmark.harness.catalogue.vocabulary import PROGRAMS, SINGLE_CASE_RULES
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.errors import HarnessError

_NUMBER = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z]+)*-[0-9]+")


def designed_case(file: CaseFile, text: CaseEntry, where: str, name: str) -> tuple[Family, Rule]:
    """A designed case: a family of one. What the entry does not state, its file does.

    :param where: how complaints about the entry begin.
    :param name: the file's name in complaints.
    :raises Mistakes: the entry is wrong; all mistakes are in it.
    """
    told = Collected()
    check_shared_keys(text, where, told)
    _check_own_keys(file, text, where, told)
    with told.noting():
        check_clause(file.clause, f"{name}: key")
    with told.noting():
        check_needs(file.needs, f"{name}: key")
    rule = Rule()
    with told.noting():
        rule = _rule(text, file, where)
        build_one(rule, where)
    told.done()
    refs = listed(text.ref)
    family = Family(
        id=text.id,
        ref=refs[0],
        suite=text.suite or file.suite,
        title=text.title or file.title,
        level=(text.level or file.level or Level.INFO).unless_contested(text.contested),
        clause=text.clause or file.clause or "",
        why=text.why or file.why or "",
        judged_by="expectation",
        count=1,
        generated=False,
        needs=tuple(text.needs if text.needs is not None else file.needs),
        source=name,
        refs=refs,
        group=file.family,
        framing=file.framing if text.framing is None else text.framing,
        contested=text.contested,
        advisories=text.advisories,
        realistic=text.realistic,
        deliver=text.deliver,
        transport=text.transport,
        runner=text.runner,
        gates=text.gates,
    )
    return family, rule


def _check_own_keys(file: CaseFile, text: CaseEntry, where: str, told: Collected) -> None:
    """Note what is wrong with keys that only a designed case has, or that its file may state."""
    refs = listed(text.ref)
    if not refs:
        told.lines.append(f"{where} 'ref': is empty; write a number as CL-12")
    for ref in refs:
        if not _NUMBER.fullmatch(ref):
            told.lines.append(f"{where} 'ref': {ref!r} is no number; write it as CL-12")
    stated = {
        "level": text.level or file.level,
        "clause": text.clause or file.clause,
        "why": text.why or file.why,
    }
    for key, value in stated.items():
        if not value:
            told.lines.append(f"{where} {key!r}: state it in the case or in the file")
    with told.noting():
        check_gates(text.gates, text.level or file.level, where)
    if text.runner is not None and text.runner not in PROGRAMS:
        near = difflib.get_close_matches(text.runner, list(PROGRAMS), 1)
        hint = f"did you mean {near[0]}?" if near else "harness/catalogue/vocabulary.py lists them"
        told.lines.append(f"{where} 'runner': no program {text.runner!r}; {hint}")
    with told.noting():
        check_suite(text.suite or file.suite, where)
    with told.noting():
        check_declared((text.x or "", text.complete or ""), where, "x")
    if text.transport is not None:
        with told.noting():
            one_of(text.transport, ("tls", "tcp"), where, "transport")


def _check_message(file: CaseFile, text: CaseEntry, passes: tuple[str, ...], where: str) -> None:
    """What is sent is stated, and only once.

    :raises HarnessError: it is not.
    """
    given = [key for key in ("x", "send", "steps") if getattr(text, key) is not None]
    is_view = all(word.startswith("views.") for word in passes)
    if len(given) != 1 and not ((text.runner or is_view) and not given):
        raise HarnessError(f"{where} 'send': state one of x, send and steps")
    if text.turns != 1 and (text.turns < 1 or not isinstance(text.send, str)):
        raise HarnessError(
            f"{where} 'turns': must be at least 1, and goes with a message of one write"
        )
    if text.x is not None and file.template is None:
        raise HarnessError(f"{where} 'x': the file has no template")
    check_steps(text.steps or (), where)


def _rule(text: CaseEntry, file: CaseFile, where: str) -> Rule:
    passes = listed(text.judged_by if text.judged_by is not None else file.judged_by)
    if not passes:
        raise HarnessError(f"{where} 'pass': state it in the case or in the file")
    _check_message(file, text, passes, where)
    let = tuple(text.let.items())
    sends = listed(text.send)
    if text.x is not None:
        sends, let = (file.template or "",), (*let, ("x", text.x))
    allows = listed(text.allow if text.allow is not None else file.allow)
    noteds = listed(text.noted if text.noted is not None else file.noted)
    hardened = text.hardened if text.hardened is not None else file.hardened
    try:
        read = expectation.expectation(passes, allows, noteds, values=AnyValue())
        if hardened is not None:
            expectation.expectation(listed(hardened), values=AnyValue())
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    for word in (*passes, *allows, *noteds):
        if word.startswith("talk.") and word[5:] not in SINGLE_CASE_RULES:
            raise HarnessError(
                f"{where} 'pass': no {word}; harness/catalogue/vocabulary.py lists them"
            )
    canary = text.canary or file.canary
    methods = text.methods if text.methods is not None else file.methods
    return Rule(
        sends=sends,
        steps=tuple(text.steps or ()),
        let=let,
        place=one_of(text.place or file.place, PLACES, where, "place"),
        canary=one_of(canary, CANARIES, where, "canary"),
        turns=text.turns,
        complete=text.complete,
        methods=tuple(methods),
        answers=max(read.answers, len(methods) - (canary == "joined")),
        answer_ms=text.answer_ms or (WAIT_MS if read.waits else ANSWER_MS),
        timeline=True,
        passes=passes,
        allows=allows,
        noteds=noteds,
        hardened=None if hardened is None else listed(hardened),
    )
