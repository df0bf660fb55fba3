"""Scenario files to families and rules; every mistake names file, entry and key."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from httpmark.harness.catalogue import expectation, generators, notation, vocabulary
from httpmark.harness.catalogue.expectation import AnyValue
from httpmark.harness.catalogue.generators import expectation_texts
from httpmark.harness.catalogue.mistakes import Collected
from httpmark.harness.catalogue.toml_files import _Text, decoded_as, parsed_toml
from httpmark.harness.catalogue.vocabulary import (
    CAPABILITIES,
    DECLARED,
    EVERYTHING,
    PROGRAMS,
    SUITES,
)
from httpmark.harness.http import grammar
from httpmark.harness.model.cases import Family, Level
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import LIMITS, TIMEOUTS

_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_REF = re.compile(r"([A-Z][A-Z0-9]*(?:-[A-Z]+)*)(?:-([0-9]+))?")
_CLAUSE = re.compile(
    r"RFC [0-9]{4} [0-9A-Z][0-9A-Z.]*(?:, (?:RFC [0-9]{4} )?[0-9A-Z][0-9A-Z.]*|, erratum [0-9]+)*"
)
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CANARIES = ("after", "joined", "none")
_PLACES = ("auto", "mirror", "body", "hello")
_Texts = str | list[str]


class _ClassText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An entry of ``classes`` as written."""

    octets: str | None = None
    decoded: str | None = None
    when: dict[str, str | int] = {}
    level: Level | None = None
    judged_by: _Texts = msgspec.field(name="pass", default_factory=list)
    allow: _Texts = []
    noted: _Texts = []
    canary: str | None = None


class _FamilyText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ``[[family]]`` as written."""

    id: str
    ref: str
    title: str
    level: Level
    clause: str
    why: str
    count: int
    send: _Texts = []
    steps: list[str] = []
    judged_by: _Texts = msgspec.field(name="pass")
    octets: str | None = None
    pairs_outside: str | None = None
    pairs_within: str | None = None
    decoded: str | None = None
    vary: dict[str, str | list[str | int]] = {}
    classes: list[_ClassText] = []
    let: dict[str, str] = {}
    allow: _Texts = []
    noted: _Texts = []
    hardened: _Texts | None = None
    place: str = "auto"
    canary: str = "after"
    methods: list[str] = []
    answer_ms: int | None = None
    needs: tuple[str, ...] | None = None
    gates: tuple[str, ...] = ()
    advisories: tuple[str, ...] = ()
    contested: str | None = None
    framing: bool = False
    realistic: bool = False
    deliver: bool = False
    head_only: bool = False
    deadline_ms: int = 0


class _FileText(msgspec.Struct, forbid_unknown_fields=True):
    suite: str
    family: list[dict[str, Any]]  # each a _FamilyText


class _CaseText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ``[[case]]`` as written; what is None holds as the file says."""

    id: str
    ref: str | list[str]
    title: str = ""
    level: Level | None = None
    framing: bool = False
    clause: str | None = None
    why: str | None = None
    x: str | None = None
    send: _Texts | None = None
    steps: list[str] | None = None
    let: dict[str, str] = {}
    judged_by: _Texts | None = msgspec.field(name="pass", default=None)
    allow: _Texts | None = None
    noted: _Texts | None = None
    hardened: _Texts | None = None
    needs: list[str] | None = None
    place: str | None = None
    canary: str | None = None
    turns: int = 1
    complete: str | None = None
    methods: list[str] | None = None
    answer_ms: int | None = None
    transport: str | None = None
    suite: str | None = None
    contested: str | None = None
    advisories: tuple[str, ...] = ()
    realistic: bool = False
    deliver: bool = False
    runner: str | None = None
    gates: tuple[str, ...] = ()


class _CasesText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A file of cases as written."""

    suite: str
    family: str
    title: str
    case: list[dict[str, Any]]  # each a _CaseText
    template: str | None = None
    level: Level | None = None
    clause: str | None = None
    why: str | None = None
    judged_by: _Texts | None = msgspec.field(name="pass", default=None)
    allow: _Texts = []
    noted: _Texts = []
    hardened: _Texts | None = None
    needs: list[str] = []
    place: str = "auto"
    canary: str = "after"
    methods: list[str] = []


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The keys of a kind; a thousand entries ask, and reading annotations is slow."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _entry(text: dict[str, Any], where: str, kind: type[_Text]) -> _Text:
    """An entry as its kind; every key that is unknown, lacking or of a wrong type is told.

    :raises Mistakes: there are some.
    """
    told = Collected()
    known = _fields(kind)
    for key, value in text.items():
        if key not in known:
            near = difflib.get_close_matches(key, list(known), 1)
            hint = f"did you mean {near[0]}?" if near else "scenarios/README.md lists the keys"
            told.lines.append(f"{where} {key!r}: there is no such key; {hint}")
            continue
        try:
            msgspec.convert(value, known[key].type)
        except msgspec.ValidationError as error:
            told.lines.append(f"{where} {key!r}: {error}")
    for key, field in known.items():
        if field.required and key not in text:
            told.lines.append(f"{where} {key!r}: is lacking")
    told.done()
    return msgspec.convert(text, kind)


def _named(texts: list[dict[str, Any]], kind: str, name: str) -> Iterator[tuple[str, Any]]:
    """Entries with how complaints call them: by their id, where they have one."""
    for number, text in enumerate(texts):
        id = text.get("id")
        called = repr(id) if isinstance(id, str) else f"number {number + 1}"
        yield f"{name}: {kind} {called}: key", text


def entries(path: Path, name: str, told: Collected) -> Iterator[tuple[Family, generators.Rule]]:
    text = parsed_toml(path, name)
    if "case" in text:
        cases = decoded_as(text, name, _CasesText)
        for where, one in _named(cases.case, "case", name):
            with told.noting():
                yield _case(cases, _entry(one, where, _CaseText), where, name)
    else:
        file = decoded_as(text, name, _FileText)
        for where, one in _named(file.family, "family", name):
            with told.noting():
                yield _family(file, _entry(one, where, _FamilyText), where, name)


def _suite(suite: str, where: str) -> str:
    if suite not in SUITES:
        raise HarnessError(f"{where} 'suite': no suite {suite!r}; known are {', '.join(SUITES)}")
    return suite


def _slug(id: str, where: str) -> str:
    if not _SLUG.fullmatch(id):
        raise HarnessError(f"{where} 'id': lower-case words joined by _ or -")
    return id


def _needs(needs: Iterable[str], where: str) -> tuple[str, ...]:
    for need in needs:
        if need.startswith("timeout."):
            if need[8:] not in TIMEOUTS:
                known = ", ".join(TIMEOUTS)
                raise HarnessError(f"{where} 'needs': no timeout {need[8:]!r}; known are {known}")
        elif not CAPABILITIES.issuperset(need.split("|")):
            known = ", ".join(sorted(CAPABILITIES))
            raise HarnessError(f"{where} 'needs': no capability {need!r}; known are {known}")
    return tuple(needs)


def _listed(texts: _Texts | None) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts or ())


def _one_of(value: str, known: tuple[str, ...], where: str, key: str) -> str:
    if value not in known:
        raise HarnessError(f"{where} {key!r}: {value!r} is none of {', '.join(known)}")
    return value


def _declared(texts: Iterable[str], where: str, key: str) -> None:
    """Limits and timeouts that a text names must be among those a server can declare."""
    for text in texts:
        for match in DECLARED.finditer(text):
            kind, name = (match[1], match[2]) if match[1] else (match[3], match[4])
            known = LIMITS if kind == "limit" else TIMEOUTS
            if name not in known:
                raise HarnessError(
                    f"{where} {key!r}: no {kind} {name!r}; known are {', '.join(known)}"
                )


def _checked(text: _CaseText | _FamilyText, where: str, told: Collected) -> None:
    """What is wrong with single keys that cases and families share."""
    with told.noting():
        _slug(text.id, where)
    with told.noting():
        _clause(text.clause, where)
    with told.noting():
        _needs(text.needs or (), where)
    if text.answer_ms is not None and text.answer_ms <= 0:
        told.lines.append(f"{where} 'answer_ms': {text.answer_ms} is no time to wait")
    for method in text.methods or ():
        if not _METHOD.fullmatch(method):
            told.lines.append(f"{where} 'methods': {method!r} is no method")
    for key in ("send", "steps", "allow", "noted", "hardened"):
        with told.noting():
            _declared(_listed(getattr(text, key)), where, key)
    with told.noting():
        _declared(_listed(text.judged_by), where, "pass")
    with told.noting():
        _declared(text.let.values(), where, "let")


def _clause(clause: str | None, where: str) -> None:
    if clause is not None and not _CLAUSE.fullmatch(clause):
        raise HarnessError(
            f"{where} 'clause': {clause!r} is no place in an RFC as 'RFC 9112 6.3, RFC 9110 8.6'"
        )


def _case(
    file: _CasesText, text: _CaseText, where: str, name: str
) -> tuple[Family, generators.Rule]:
    """A designed case: a family of one."""
    told = Collected()
    _checked(text, where, told)
    refs = _listed(text.ref)
    for ref in refs:
        if not (match := _REF.fullmatch(ref)) or not match[2]:
            told.lines.append(f"{where} 'ref': {ref!r} is no number as CL-12")
    stated = {
        "level": text.level or file.level,
        "clause": text.clause or file.clause,
        "why": text.why or file.why,
    }
    for key, value in stated.items():
        if not value:
            told.lines.append(f"{where} {key!r}: neither the case nor the file states it")
    if text.gates and stated["level"] is not Level.CTRL:
        told.lines.append(f"{where} 'gates': only a positive control (CTRL) gates")
    if text.runner is not None and text.runner not in PROGRAMS:
        near = difflib.get_close_matches(text.runner, list(PROGRAMS), 1)
        hint = f"did you mean {near[0]}?" if near else "harness/catalogue/vocabulary.py lists them"
        told.lines.append(f"{where} 'runner': no program {text.runner!r}; {hint}")
    with told.noting():
        _suite(text.suite or file.suite, where)
    with told.noting():
        _declared((text.x or "", text.complete or ""), where, "x")
    with told.noting():
        _clause(file.clause, f"{name}: key")
    with told.noting():
        _needs(file.needs, f"{name}: key")
    passes = _listed(text.judged_by if text.judged_by is not None else file.judged_by)
    rule = generators.Rule()
    if not passes:
        told.lines.append(f"{where} 'pass': neither the case nor the file states it")
    else:
        with told.noting():
            rule = _case_rule(text, file, passes, where)
            _try(rule, where, name)
    if text.transport is not None:
        with told.noting():
            _one_of(text.transport, ("tls", "tcp"), where, "transport")
    told.done()
    family = Family(
        id=text.id,
        ref=refs[0],
        suite=text.suite or file.suite,
        title=text.title or file.title,
        level=text.level or file.level or Level.INFO,
        clause=text.clause or file.clause or "",
        why=text.why or file.why or "",
        judged_by="expectation",
        count=1,
        generated=False,
        needs=tuple(text.needs if text.needs is not None else file.needs),
        source=name,
        refs=refs,
        group=file.family,
        framing=text.framing,
        contested=text.contested,
        advisories=text.advisories,
        realistic=text.realistic,
        deliver=text.deliver,
        transport=text.transport,
        runner=text.runner,
        gates=text.gates,
    )
    return family, rule


def _case_rule(
    text: _CaseText, file: _CasesText, passes: tuple[str, ...], where: str
) -> generators.Rule:
    given = [key for key in ("x", "send", "steps") if getattr(text, key) is not None]
    is_view = all(word.startswith("views.") for word in passes)
    if len(given) != 1 and not ((text.runner or is_view) and not given):
        raise HarnessError(f"{where} 'send': state one of x, send and steps")
    if text.turns != 1 and (text.turns < 1 or not isinstance(text.send, str)):
        raise HarnessError(f"{where} 'turns': at least 1, and for a message of one write")
    if text.x is not None and file.template is None:
        raise HarnessError(f"{where} 'x': the file has no template")
    for step in text.steps or ():
        if complaint := generators.complaint(step):
            raise HarnessError(f"{where} 'steps': {complaint}")
    let = tuple(text.let.items())
    sends = _listed(text.send)
    if text.x is not None:
        sends, let = (file.template or "",), (*let, ("x", text.x))
    allows = _listed(text.allow if text.allow is not None else file.allow)
    noteds = _listed(text.noted if text.noted is not None else file.noted)
    hardened = text.hardened if text.hardened is not None else file.hardened
    try:
        read = expectation.expectation(passes, allows, noteds, values=AnyValue())
        if hardened is not None:
            expectation.expectation(_listed(hardened), values=AnyValue())
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    for word in (*passes, *allows, *noteds):
        if word.startswith("talk.") and word[5:] not in vocabulary.SINGLE_CASE_RULES:
            raise HarnessError(
                f"{where} 'pass': no {word}; harness/catalogue/vocabulary.py lists them"
            )
    canary = text.canary or file.canary
    methods = text.methods if text.methods is not None else file.methods
    return generators.Rule(
        sends=sends,
        steps=tuple(text.steps or ()),
        let=let,
        place=_one_of(text.place or file.place, _PLACES, where, "place"),
        canary=_one_of(canary, _CANARIES, where, "canary"),
        turns=text.turns,
        complete=text.complete,
        methods=tuple(methods),
        answers=max(read.answers, len(methods) - (canary == "joined")),
        answer_ms=text.answer_ms or (generators.WAIT_MS if read.waits else generators.ANSWER_MS),
        timeline=True,
        passes=passes,
        allows=allows,
        noteds=noteds,
        hardened=None if hardened is None else _listed(hardened),
    )


def _try(rule: generators.Rule, where: str, name: str) -> None:
    """Address a rule to a target that can do everything: mistakes show at once."""
    if not rule.sends and not rule.steps:
        return
    try:
        next(generators.cases("x", rule, EVERYTHING))
    except notation.Unknown:
        pass  # a limit that not every target declares
    except UnicodeEncodeError:
        raise HarnessError(f"{where} 'send': write octets above 0x7F as \\xNN") from None
    except ValueError as error:
        raise HarnessError(f"{where} 'send': {error}") from None


def _family(
    file: _FileText, text: _FamilyText, where: str, name: str
) -> tuple[Family, generators.Rule]:
    """A generated family, or a published control."""
    told = Collected()
    _checked(text, where, told)
    if text.gates and text.level is not Level.CTRL:
        told.lines.append(f"{where} 'gates': only a positive control (CTRL) gates")
    with told.noting():
        _suite(file.suite, where)
    words = _listed(text.judged_by)
    rule = generators.Rule()
    with told.noting():
        rule = _rule(text, words, where)
        made = generators.count(rule)
        if made != text.count:
            raise HarnessError(f"{where} 'count': says {text.count}, the rule makes {made}")
        _try(rule, where, name)
    told.done()
    family = Family(
        id=text.id,
        ref=text.ref,
        suite=file.suite,
        title=text.title,
        level=text.level,
        clause=text.clause,
        why=text.why,
        judged_by=words[0] if words[0] in vocabulary.PUBLISHED_WORDS else "expectation",
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


def _set(expression: str | None, where: str, key: str) -> frozenset[int] | None:
    try:
        return None if expression is None else grammar.octet_set(expression)
    except ValueError as error:
        raise HarnessError(f"{where} {key!r}: {error}") from None


def _rule(text: _FamilyText, words: tuple[str, ...], where: str) -> generators.Rule:
    sets = {
        key: _set(getattr(text, key), where, key)
        for key in ("octets", "pairs_outside", "pairs_within", "decoded")
    }
    varied = [key for key in ("octets", "pairs_outside", "pairs_within") if sets[key] is not None]
    if varied == ["pairs_outside", "pairs_within"]:
        varied = ["pairs_within"]  # pairs within one set that are not all within the other
    if len(varied) + bool(text.vary) > 1:
        raise HarnessError(
            f"{where} {(*varied, 'vary')[1]!r}: "
            f"a family varies one thing, and {varied[0]!r} is there"
        )
    if sets["decoded"] is not None and sets["pairs_within"] is None:
        raise HarnessError(f"{where} 'decoded': goes with 'pairs_within'")
    if sets["decoded"] is not None and not (sets["pairs_within"] or set()) <= grammar.HEXDIG:
        raise HarnessError(f"{where} 'decoded': the pairs must be hexadecimal digits")
    placeholder = "{octet}" if varied == ["octets"] else "{pair}"
    sends = _listed(text.send)
    if bool(sends) == bool(text.steps):
        raise HarnessError(f"{where} 'send': state one of send and steps")
    for step in text.steps:
        if complaint := generators.complaint(step):
            raise HarnessError(f"{where} 'steps': {complaint}")
    written = "".join((*sends, *text.steps))
    if not text.vary and written.count(placeholder) != len(varied):
        raise HarnessError(f"{where} 'send': must hold {placeholder} exactly {len(varied)} time(s)")
    if text.deadline_ms < 0:
        raise HarnessError(f"{where} 'deadline_ms': must be positive")
    published = words[0] in vocabulary.PUBLISHED_WORDS
    deadline_ms = text.deadline_ms or (2000 if published else 0)
    rule = generators.Rule(
        sends=sends,
        steps=tuple(text.steps),
        let=tuple(text.let.items()),
        vary=tuple((name, _values(value, where)) for name, value in text.vary.items()),
        place=_one_of(text.place, _PLACES, where, "place") if not published else "hello",
        canary=_one_of(text.canary, _CANARIES, where, "canary") if not published else "none",
        methods=tuple(text.methods),
        answer_ms=text.answer_ms or deadline_ms or generators.ANSWER_MS,
        head_only=text.head_only,
        deadline_ms=deadline_ms,
        timeline=not published,
        passes=() if published else words,
        allows=_listed(text.allow),
        noteds=_listed(text.noted),
        hardened=None if text.hardened is None else _listed(text.hardened),
        classes=tuple(_class(entry, where) for entry in text.classes),
        octets=sets["octets"],
        pairs_outside=sets["pairs_outside"],
        pairs_within=sets["pairs_within"],
        decoded=sets["decoded"],
    )
    if published:
        return rule
    read: list[expectation.Alternative] = []
    try:
        for number in range(-1, len(rule.classes)):
            read += [
                expectation.alternative(t, AnyValue()) for t in expectation_texts(rule, number)
            ]
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    waits = any(answer.word == "WAIT" for one in read for answer in one.answers)
    if waits and text.answer_ms is None:
        rule = msgspec.structs.replace(rule, answer_ms=generators.WAIT_MS)
    answers = expectation.expectation(rule.passes, values=AnyValue()).answers
    return msgspec.structs.replace(
        rule,
        answers=max(answers, len(text.methods)),
        classes=tuple(
            msgspec.structs.replace(
                entry, answers=expectation.expectation(entry.passes, values=AnyValue()).answers
            )
            if entry.passes
            else entry
            for entry in rule.classes
        ),
    )


def _class(text: _ClassText, where: str) -> generators.Class:
    if sum((text.octets is not None, text.decoded is not None, bool(text.when))) != 1:
        raise HarnessError(f"{where} 'classes': state one of octets, decoded and when")
    return generators.Class(
        octets=_set(text.octets, where, "classes"),
        decoded=_set(text.decoded, where, "classes"),
        when={
            name: value if isinstance(value, int) else notation.unescape(value)
            for name, value in text.when.items()
        },
        level=text.level,
        passes=_listed(text.judged_by),
        allows=_listed(text.allow),
        noteds=_listed(text.noted),
        canary=text.canary,
    )


_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def _values(given: str | list[str | int], where: str) -> tuple[bytes | int, ...]:
    """What a name varies over: a range of numbers, or a list of texts and numbers."""
    if isinstance(given, str):
        if not (match := _RANGE.fullmatch(given)):
            raise HarnessError(f"{where} 'vary': {given!r} is no range as '0..128'")
        return tuple(range(int(match[1]), int(match[2]) + 1))
    return tuple(v if isinstance(v, int) else notation.unescape(v) for v in given)
