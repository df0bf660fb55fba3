"""scenarios/**/*.toml to families and load plans; every complaint names file, entry and key."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import functools
import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from httpmark.harness import checks, corpus, expectation, grammar, notation, talks
from httpmark.harness.expectation import Expectation
from httpmark.harness.model import (
    LIMITS,
    Case,
    Facts,
    Family,
    HarnessError,
    Level,
    LoadMode,
    LoadPlan,
    NothingSelected,
    Requirement,
)

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
FOUND = Path("scenarios", "found")
"""Where ``httpmark fuzz`` saves finds and all commands look for them, below the working folder."""
FOUND_SET = "HTTPMARK_FOUND"
"""The environment variable that names another folder of finds."""
SUITES = ("seed", "rfc", "smuggling", "resilience", "found")
CAPABILITIES = frozenset(
    {
        "hello",
        "body",
        "mirror",
        "behave",
        "echo",
        "tls",
        "static",
        "websocket",
        "catch_all",
        "early",
    }
)

# Groups in which the ruleset "hardened" takes what is merely permitted for a failure.
HARDENED = frozenset({"CL", "TE", "CLTE", "CHK", "SMUG", "EOL", "FOLD", "HN", "HOST", "TRL"})

TIMEOUTS = ("head_s", "content_s", "idle_s", "write_s", "check_interval_s")  # servers.TIMEOUTS
PROGRAMS = frozenset(
    {
        "alive_after_each_family",
        "clean_neighbours",
        "every_cut",
        "follow_redirect",
        "gives_back",
        "limit_sized_requests",
        "markup_in_every_place",
        "never_reading_client",
        "not_restarted",
        "resets",
        "resets_at_connect",
        "same_verdicts_at_64",
        "slow_readers",
        "thousand_bad_requests",
        "valid_load_among_bad_requests",
    }
)
"""The words of ``runner``; what they do is in ``runners``, which stands on this module."""
MISTAKES_MAX = 20
"""More than that nobody mends in one go."""

_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_REF = re.compile(r"([A-Z][A-Z0-9]*(?:-[A-Z]+)*)(?:-([0-9]+))?")
_CLAUSE = re.compile(
    r"RFC [0-9]{4} [0-9A-Z][0-9A-Z.]*(?:, (?:RFC [0-9]{4} )?[0-9A-Z][0-9A-Z.]*|, erratum [0-9]+)*"
)
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DECLARED = re.compile(r"\{[^{}]*?\b(limit|timeout)\.([A-Za-z0-9_]*)|\b(timeout)\.([A-Za-z0-9_]+)")
_CANARIES = ("after", "joined", "none")
_PLACES = ("auto", "mirror", "body", "hello")
_Text = TypeVar("_Text", bound=msgspec.Struct)
_Texts = str | list[str]

# Whom load-time checks address cases to: a target that can do everything.
EVERYTHING = Facts(host="127.0.0.1:80", capabilities=tuple(sorted(CAPABILITIES)))


class Mistakes(HarnessError):
    """All that is wrong with scenario files; ``lines`` holds one complaint each."""

    def __init__(self, lines: Sequence[str]) -> None:
        rest = len(lines) - MISTAKES_MAX
        more = (f"and {rest} more mistakes",) if rest > 0 else ()
        self.lines = (*lines[:MISTAKES_MAX], *more)
        super().__init__("\n".join(self.lines))


class _Told:
    """Collects complaints, so that one mistake does not hide the next."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        try:
            yield
        except Mistakes as error:
            self.lines += error.lines
        except HarnessError as error:
            self.lines.append(str(error))

    def done(self) -> None:
        """Pass on what was noted.

        :raises Mistakes: something was.
        """
        if self.lines:
            raise Mistakes(list(dict.fromkeys(self.lines)))


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


class _RequirementsText(msgspec.Struct, forbid_unknown_fields=True):
    """``requirements.toml`` as written."""

    requirement: list[Requirement]


class _PublishedText(msgspec.Struct, forbid_unknown_fields=True):
    """``seed/published.json`` as written."""

    about: str
    versions: dict[str, str]
    counts: dict[str, dict[str, tuple[int, int]]]  # detected, undetected
    detections: dict[str, dict[str, str]]


class Planned(msgspec.Struct, frozen=True):
    """A case with what it is judged by."""

    case: Case
    expectation: Expectation | None  # None: a word of checks.WORDS
    level: Level


class Catalogue(msgspec.Struct, frozen=True):
    """All families and plans, and the version that changes with any verdict-changing edit."""

    families: dict[str, Family]
    rules: dict[str, corpus.Rule]
    plans: dict[str, LoadPlan]
    default_plans: tuple[str, ...]
    version: str
    published: dict[str, dict[str, str]] = {}  # server, family: run lengths of detections
    requirements: tuple[Requirement, ...] = ()

    @property
    def suites(self) -> tuple[str, ...]:
        """Those with families, and ``found``, which is there before anything is found."""
        filled = {family.suite for family in self.families.values()} | {"found"}
        return tuple(sorted(filled, key=SUITES.index))

    def default_suites(self, *, quick: bool, full: bool, only_one: bool) -> tuple[str, ...]:
        """The suites that are fired where none is named.

        :param only_one: one server is checked, rather than several compared: then a quick look is
            at what the RFCs ask for, else at the published families alone.
        """
        if full:
            chosen: tuple[str, ...] = SUITES
        elif quick:
            chosen = ("rfc", "smuggling") if only_one else ("seed",)
        else:
            chosen = ("seed", "rfc", "smuggling", "found")
        filled = {family.suite for family in self.families.values()}
        return tuple(suite for suite in self.suites if suite in chosen and suite in filled)

    def of_suite(self, suite: str) -> list[Family]:
        """The families of a suite, controls first: nothing counts before they have passed."""
        chosen = [family for family in self.families.values() if family.suite == suite]
        return sorted(chosen, key=lambda family: family.level is not Level.CTRL)

    def cases(self, family: str, facts: Facts, *, step: int = 1) -> Iterator[Case]:
        """The cases of one family, addressed to a target; with ``step`` every so manieth.

        :raises notation.Unknown: the family needs what the target does not declare.
        """
        return corpus.cases(family, self.rules[family], facts, step=step)

    def slugs(self, family: str, *, step: int = 1) -> Iterator[str]:
        """The ids of the cases of one family, without making them."""
        return (family + one.slug for one in corpus.variations(self.rules[family], step))

    def planned(self, family: str, facts: Facts, *, step: int = 1) -> Iterator[Planned]:
        """The same, each with its expectation and level.

        :raises notation.Unknown: the family needs what the target does not declare.
        """
        entry, rule = self.families[family], self.rules[family]
        by_words = entry.judged_by in checks.WORDS
        shared: dict[int, tuple[Expectation | None, Level]] = {}
        for case, variation in corpus.varied(family, rule, facts, step=step):
            if case.variant not in shared:
                given = rule.classes[case.variant] if case.variant >= 0 else None
                level = given.level if given is not None and given.level else entry.level
                if level is Level.INFO and _is_declared(rule, facts):
                    # Within its limits a server does what it says; how it refuses more is no
                    # control.
                    level = Level.SHOULD if _is_beyond(rule, facts) else Level.CTRL
                texts = _texts(rule, case.variant)
                own = by_words or any("{" in text for text in texts)
                shared[case.variant] = None if own else _expected(rule, case, {}), level
            expected, level = shared[case.variant]
            if expected is None and not by_words:
                known = corpus.case_values(rule, facts, case.id, variation.values)
                expected = _expected(rule, case, known)
            yield Planned(case, expected, level)

    def offers_choice(self, family: str) -> bool:
        """Whether some case of a family may be accepted as well as refused."""
        rule = self.rules[family]
        passes = [rule.passes, *(one.passes for one in rule.classes)]
        return any(
            expectation.expectation(words, values=_AnyValue()).offers_choice
            for words in passes
            if words
        )

    def inapplicable(self, family: str, facts: Facts) -> str | None:
        """Why a family cannot be played against a target; None where it can."""
        entry = self.families[family]
        lacking = [need for need in entry.needs if not _has(need, facts)]
        if lacking:
            return f"needs {', '.join(lacking)}"
        if entry.transport is not None and (entry.transport == "tls") != (facts.scheme == "https"):
            return f"only over {entry.transport}"
        return corpus.inapplicable(self.rules[family], facts)

    def plan(self, name: str) -> LoadPlan:
        """A load profile by name.

        :raises HarnessError: there is none of that name.
        """
        return self.plans[_known(name, self.plans, "profile")]

    def suite(self, name: str) -> str:
        """A suite by name.

        :raises HarnessError: there is none of that name.
        """
        return _known(name, self.suites, "suite")

    def select(self, selectors: Iterable[str], exclude: Iterable[str] = ()) -> frozenset[str]:
        """The families that selectors name: by id, number, family, clause (``9112/6.3``), level,
        ruleset (``realistic``, ``hardened``) or advisory; a ``*`` stands for anything.

        :raises HarnessError: a selector names nothing.
        """
        chosen = frozenset(self.families) if not (wanted := list(selectors)) else frozenset()
        for selector in wanted:
            chosen |= self._named(selector)
        for selector in exclude:
            chosen -= self._named(selector)
        if not chosen:
            raise NothingSelected("nothing selected: every case is excluded")
        return chosen

    def with_controls(self, chosen: frozenset[str]) -> frozenset[str]:
        """The same families, and the controls without which their figures mean nothing."""
        entries = [self.families[name] for name in chosen]
        suites = {family.suite for family in entries}
        gated = {"*", *chosen, *(family.group for family in entries)}
        return chosen | {
            family.id
            for family in self.families.values()
            if family.suite in suites and gated.intersection(family.gates)
        }

    def _named(self, selector: str) -> frozenset[str]:
        found = {
            family.id
            for family in self.families.values()
            if any(fnmatch.fnmatchcase(word, selector) for word in self._handles(family))
            or (family.generated and selector.startswith(family.id + "-"))
        }
        if not found:
            words = sorted({word for f in self.families.values() for word in self._handles(f)})
            near = difflib.get_close_matches(selector, words, 1)
            hint = f"did you mean {near[0]}?" if near else "`httpmark list cases` shows all"
            raise HarnessError(f"no case {selector!r}: {hint}")
        return frozenset(found)

    def _handles(self, family: Family) -> tuple[str, ...]:
        """All words a family can be selected by; a section stands for all below it."""
        clauses = re.findall(r"RFC ([0-9]+) ([0-9][0-9.]*|[A-Z]\.[0-9.]+)", family.clause)
        sections = {
            f"{rfc}/{'.'.join(numbers[: depth + 1])}"
            for rfc, section in clauses
            for numbers in (section.rstrip(".").split("."),)
            for depth in range(len(numbers))
        }
        return (
            family.id,
            *family.refs,
            family.group,
            *sorted(sections),
            str(family.level),
            family.suite,
            *(("realistic",) if family.realistic else ()),
            *(("hardened",) if self.hardens(family) else ()),
            *family.advisories,
        )

    def hardens(self, family: Family) -> bool:
        """Whether the ruleset ``hardened`` judges a family otherwise than ``rfc``."""
        return family.framing or family.group in HARDENED or bool(self.rules[family.id].hardened)


def _has(need: str, facts: Facts) -> bool:
    if need.startswith("timeout."):
        return bool(facts.timeouts.get(need[8:]))  # 0 waits for ever: there is nothing to wait for
    if need == "tls":
        return facts.scheme == "https"
    return any(word in facts.capabilities for word in need.split("|"))


def _is_declared(rule: corpus.Rule, facts: Facts) -> bool:
    """Whether a limit that the expectations of a rule name is known of a target."""
    words = " ".join((*rule.passes, *rule.allows, *rule.noteds))
    return any(
        match[1] == "limit" and facts.limits.get(match[2]) is not None
        for match in _DECLARED.finditer(words)
    )


_BEYOND = re.compile(r"(?<!no )beyond \{limit\.([a-z_]+)\} ([0-9]+)")


def _is_beyond(rule: corpus.Rule, facts: Facts) -> bool:
    """Whether a case of a rule is larger than a limit of the target that its expectations name."""
    return any(
        (limit := facts.limits.get(name)) is not None and int(number) > limit
        for name, number in _BEYOND.findall(" ".join((*rule.passes, *rule.allows)))
    )


def _texts(rule: corpus.Rule, variant: int) -> tuple[str, ...]:
    given = rule.classes[variant] if variant >= 0 else None
    if given is not None and (given.passes or given.allows or given.noteds):
        return (*given.passes, *given.allows, *given.noteds)
    return (*rule.passes, *rule.allows, *rule.noteds, *(rule.hardened or ()))


def _expected(rule: corpus.Rule, case: Case, known: expectation.Values) -> Expectation:
    given = rule.classes[case.variant] if case.variant >= 0 else None
    if given is not None and (given.passes or given.allows or given.noteds):
        return expectation.expectation(
            given.passes or rule.passes, given.allows, given.noteds, values=known
        )
    return expectation.expectation(
        rule.passes, rule.allows, rule.noteds, rule.hardened, values=known
    )


def _known(name: str, known: Any, kind: str) -> str:
    if name in known:
        return name
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    raise HarnessError(f"unknown {kind} {name!r}: {hint}")


def found_folder() -> Path:
    """Where finds are saved and looked for: the folder ``HTTPMARK_FOUND`` names, else
    ``scenarios/found`` below the working folder."""
    return Path(os.environ.get(FOUND_SET) or FOUND)


def load(folder: Path = FOLDER) -> Catalogue:
    """Read every scenario file below ``folder``; those that httpmark brings are read once, and
    with them what ``httpmark fuzz`` has saved in :func:`found_folder`.

    :raises HarnessError: a file has a mistake; the message names file, entry and key.
    """
    if folder != FOLDER:
        return _read(folder)
    finds = found_folder()
    if not finds.is_dir() or finds.resolve().is_relative_to(FOLDER):
        return _installed()
    paths = sorted(finds.glob("*.toml"))
    if not paths:
        return _installed()
    return _with_finds(tuple((path, path.stat().st_mtime_ns) for path in paths), Path.cwd())


@functools.cache
def _installed() -> Catalogue:
    return _read(FOLDER)


@functools.lru_cache(maxsize=4)
def _with_finds(paths: tuple[tuple[Path, int], ...], below: Path) -> Catalogue:
    """The same with what was found here. The version stays: it is that of what httpmark brings,
    and no score of another suite hangs on a find."""
    known = _installed()
    families, rules = dict(known.families), dict(known.rules)
    told = _Told()
    for path, _ in paths:
        with told.noting():
            _add(path, path.as_posix(), families, rules, told, suite="found")
    told.done()
    return msgspec.structs.replace(known, families=families, rules=rules)


def _add(
    path: Path,
    name: str,
    families: dict[str, Family],
    rules: dict[str, corpus.Rule],
    told: _Told,
    *,
    suite: str | None = None,
) -> None:
    """The families of one file; complaints of the file as a whole are raised, others noted."""
    for family, rule in _entries(path, name, told):
        where = f"{name}: {family.id!r}: key"
        known = families.get(family.id)
        if known is not None:
            told.lines.append(f"{where} 'id': {known.source} has this id already; slugs are unique")
        elif suite is not None and family.suite != suite:
            told.lines.append(f"{where} 'suite': what stands here is of the suite {suite!r}")
        else:
            families[family.id], rules[family.id] = family, rule


def _read(folder: Path) -> Catalogue:
    families: dict[str, Family] = {}
    rules: dict[str, corpus.Rule] = {}
    plans: dict[str, LoadPlan] = {}
    requirements: list[Requirement] = []
    told = _Told()
    for path in sorted(folder.rglob("*.toml")):
        name = path.relative_to(folder.parent).as_posix()
        with told.noting():
            if path.parent.name == "load":
                plans[path.stem] = _plan(path, name)
            elif path.name == "requirements.toml":
                requirements += _decode(_parsed(path, name), name, _RequirementsText).requirement
            else:
                _add(path, name, families, rules, told)
    told.lines += _between(families)
    told.done()
    # Deeper profiles first: the headline is the one the eye meets.
    defaults = sorted((plan for plan in plans.values() if plan.default), key=lambda p: -p.depth)
    return Catalogue(
        families,
        rules,
        plans,
        tuple(plan.name for plan in defaults),
        _version(families, rules, requirements),
        _published(folder),
        tuple(requirements),
    )


def _between(families: dict[str, Family]) -> Iterator[str]:
    """What is wrong between entries: numbers that stand twice, gates before nothing."""
    numbers: dict[str, Family] = {}
    gateable = {"*", *families, *(family.group for family in families.values())}
    for family in families.values():
        where = f"{family.source}: {family.id!r}: key"
        # Generated families may share a number, and a control may repeat a case (suite seed).
        for ref in family.refs if family.group != family.ref and family.suite != "found" else ():
            if (known := numbers.setdefault(ref, family)) is not family:
                yield f"{where} 'ref': {known.id!r} of {known.source} has {ref} already"
        for gated in family.gates:
            if gated not in gateable:
                yield f"{where} 'gates': no family {gated!r}"


def _published(folder: Path) -> dict[str, dict[str, str]]:
    """What servers did in the published benchmark, request by request (seed/published.json)."""
    path = folder / "seed" / "published.json"
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=_PublishedText).detections
    except msgspec.DecodeError as error:
        raise HarnessError(f"{path.relative_to(folder.parent)}: {error}") from None


def _parsed(path: Path, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise HarnessError(f"{where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HarnessError(f"{where}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{where}: not valid TOML: {error}") from None


def _decode(text: dict[str, Any], where: str, kind: type[_Text], **known: str) -> _Text:
    if clash := text.keys() & known:
        raise HarnessError(f"{where}: key {min(clash)!r}: it follows from the file's name")
    try:
        return msgspec.convert({**text, **known}, kind)
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}; scenarios/README.md lists the keys") from None


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The keys of a kind; a thousand entries ask, and reading annotations is slow."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _entry(text: dict[str, Any], where: str, kind: type[_Text]) -> _Text:
    """An entry as its kind; every key that is unknown, lacking or of a wrong type is told.

    :raises Mistakes: there are some.
    """
    told = _Told()
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


def _entries(path: Path, name: str, told: _Told) -> Iterator[tuple[Family, corpus.Rule]]:
    text = _parsed(path, name)
    if "case" in text:
        cases = _decode(text, name, _CasesText)
        for where, one in _named(cases.case, "case", name):
            with told.noting():
                yield _case(cases, _entry(one, where, _CaseText), where, name)
    else:
        file = _decode(text, name, _FileText)
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
        for match in _DECLARED.finditer(text):
            kind, name = (match[1], match[2]) if match[1] else (match[3], match[4])
            known = LIMITS if kind == "limit" else TIMEOUTS
            if name not in known:
                raise HarnessError(
                    f"{where} {key!r}: no {kind} {name!r}; known are {', '.join(known)}"
                )


def _checked(text: _CaseText | _FamilyText, where: str, told: _Told) -> None:
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


def _case(file: _CasesText, text: _CaseText, where: str, name: str) -> tuple[Family, corpus.Rule]:
    """A designed case: a family of one."""
    told = _Told()
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
        hint = f"did you mean {near[0]}?" if near else "harness/runners.py lists them"
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
    rule = corpus.Rule()
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
) -> corpus.Rule:
    given = [key for key in ("x", "send", "steps") if getattr(text, key) is not None]
    is_view = all(word.startswith("views.") for word in passes)
    if len(given) != 1 and not ((text.runner or is_view) and not given):
        raise HarnessError(f"{where} 'send': state one of x, send and steps")
    if text.turns != 1 and (text.turns < 1 or not isinstance(text.send, str)):
        raise HarnessError(f"{where} 'turns': at least 1, and for a message of one write")
    if text.x is not None and file.template is None:
        raise HarnessError(f"{where} 'x': the file has no template")
    for step in text.steps or ():
        if complaint := corpus.complaint(step):
            raise HarnessError(f"{where} 'steps': {complaint}")
    let = tuple(text.let.items())
    sends = _listed(text.send)
    if text.x is not None:
        sends, let = (file.template or "",), (*let, ("x", text.x))
    allows = _listed(text.allow if text.allow is not None else file.allow)
    noteds = _listed(text.noted if text.noted is not None else file.noted)
    hardened = text.hardened if text.hardened is not None else file.hardened
    try:
        read = expectation.expectation(passes, allows, noteds, values=_AnyValue())
        if hardened is not None:
            expectation.expectation(_listed(hardened), values=_AnyValue())
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    for word in (*passes, *allows, *noteds):
        if word.startswith("talk.") and word[5:] not in talks.TALKS:
            raise HarnessError(f"{where} 'pass': no {word}; harness/talks.py has none of that name")
    canary = text.canary or file.canary
    methods = text.methods if text.methods is not None else file.methods
    return corpus.Rule(
        sends=sends,
        steps=tuple(text.steps or ()),
        let=let,
        place=_one_of(text.place or file.place, _PLACES, where, "place"),
        canary=_one_of(canary, _CANARIES, where, "canary"),
        turns=text.turns,
        complete=text.complete,
        methods=tuple(methods),
        answers=max(read.answers, len(methods) - (canary == "joined")),
        answer_ms=text.answer_ms or (corpus.WAIT_MS if read.waits else corpus.ANSWER_MS),
        timeline=True,
        passes=passes,
        allows=allows,
        noteds=noteds,
        hardened=None if hardened is None else _listed(hardened),
    )


class _AnyValue(dict[str, Any]):
    """Gives some octets for any name: for reading a text whose values come later."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> bytes:
        return b"1"


def _try(rule: corpus.Rule, where: str, name: str) -> None:
    """Address a rule to a target that can do everything: mistakes show at once."""
    if not rule.sends and not rule.steps:
        return
    try:
        next(corpus.cases("x", rule, EVERYTHING))
    except notation.Unknown:
        pass  # a limit that not every target declares
    except UnicodeEncodeError:
        raise HarnessError(f"{where} 'send': write octets above 0x7F as \\xNN") from None
    except ValueError as error:
        raise HarnessError(f"{where} 'send': {error}") from None


def _family(
    file: _FileText, text: _FamilyText, where: str, name: str
) -> tuple[Family, corpus.Rule]:
    """A generated family, or a published control."""
    told = _Told()
    _checked(text, where, told)
    if text.gates and text.level is not Level.CTRL:
        told.lines.append(f"{where} 'gates': only a positive control (CTRL) gates")
    with told.noting():
        _suite(file.suite, where)
    words = _listed(text.judged_by)
    rule = corpus.Rule()
    with told.noting():
        rule = _rule(text, words, where)
        made = corpus.count(rule)
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
        judged_by=words[0] if words[0] in checks.WORDS else "expectation",
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


def _rule(text: _FamilyText, words: tuple[str, ...], where: str) -> corpus.Rule:
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
        if complaint := corpus.complaint(step):
            raise HarnessError(f"{where} 'steps': {complaint}")
    written = "".join((*sends, *text.steps))
    if not text.vary and written.count(placeholder) != len(varied):
        raise HarnessError(f"{where} 'send': must hold {placeholder} exactly {len(varied)} time(s)")
    if text.deadline_ms < 0:
        raise HarnessError(f"{where} 'deadline_ms': must be positive")
    published = words[0] in checks.WORDS
    deadline_ms = text.deadline_ms or (2000 if published else 0)
    rule = corpus.Rule(
        sends=sends,
        steps=tuple(text.steps),
        let=tuple(text.let.items()),
        vary=tuple((name, _values(value, where)) for name, value in text.vary.items()),
        place=_one_of(text.place, _PLACES, where, "place") if not published else "hello",
        canary=_one_of(text.canary, _CANARIES, where, "canary") if not published else "none",
        methods=tuple(text.methods),
        answer_ms=text.answer_ms or deadline_ms or corpus.ANSWER_MS,
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
            read += [expectation.alternative(t, _AnyValue()) for t in _texts(rule, number)]
    except ValueError as error:
        raise HarnessError(f"{where} 'pass': {error}") from None
    waits = any(answer.word == "WAIT" for one in read for answer in one.answers)
    if waits and text.answer_ms is None:
        rule = msgspec.structs.replace(rule, answer_ms=corpus.WAIT_MS)
    answers = expectation.expectation(rule.passes, values=_AnyValue()).answers
    return msgspec.structs.replace(
        rule,
        answers=max(answers, len(text.methods)),
        classes=tuple(
            msgspec.structs.replace(
                entry, answers=expectation.expectation(entry.passes, values=_AnyValue()).answers
            )
            if entry.passes
            else entry
            for entry in rule.classes
        ),
    )


def _class(text: _ClassText, where: str) -> corpus.Class:
    if sum((text.octets is not None, text.decoded is not None, bool(text.when))) != 1:
        raise HarnessError(f"{where} 'classes': state one of octets, decoded and when")
    return corpus.Class(
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


def _plan(path: Path, name: str) -> LoadPlan:
    plan = _decode(_parsed(path, name), name, LoadPlan, name=path.stem, source=name)
    for key in ("connections", "depth", "rounds", "quick_rounds", "threads", "workers"):
        if getattr(plan, key) < 1:
            raise HarnessError(f"{name}: key {key!r}: must be at least 1")
    for key in ("duration_s", "quick_duration_s"):
        if getattr(plan, key) <= 0:
            raise HarnessError(f"{name}: key {key!r}: must be positive")
    if plan.depth > 256:
        raise HarnessError(f"{name}: key 'depth': at most 256")
    mistake = _plan_mistake(plan)
    if mistake:
        raise HarnessError(f"{name}: key {mistake}")
    return plan


def _plan_mistake(plan: LoadPlan) -> str | None:
    """What does not go together in a load profile: the key, and why."""
    rates = (plan.rate is not None) + (plan.rate_of_capacity is not None)
    if plan.mode is LoadMode.OPEN and rates != 1:
        return "'rate': an open loop has either 'rate' or 'rate_of_capacity'"
    if plan.mode is not LoadMode.OPEN and rates:
        return "'rate': belongs to mode = \"open\""
    if any(rate is not None and rate <= 0 for rate in (plan.rate, plan.rate_of_capacity)):
        return "'rate': must be positive"
    if (plan.mode is LoadMode.IDLE) != bool(plan.ladder):
        return "'ladder': goes with mode = \"idle\", and that needs one"
    for key, ladder in (("ladder", plan.ladder), ("quick_ladder", plan.quick_ladder)):
        if any(a >= b for a, b in zip((0, *ladder), ladder, strict=False)):
            return f"{key!r}: heights must grow from above 0"
        if len(ladder) == 1:
            return f"{key!r}: a slope needs two heights"
    if plan.tls_ciphers is not None and plan.tls_version is None:
        return "'tls_ciphers': goes with 'tls_version'"
    if plan.tls and "tls" not in plan.needs:
        return "'needs': must hold \"tls\" where 'tls_version' is given"
    if any(request.weight < 1 for request in plan.requests):
        return "'requests': 'weight' must be at least 1"
    if plan.split_bytes < 0:
        return "'split_bytes': must not be negative"
    return None


def _version(
    families: dict[str, Family], rules: dict[str, corpus.Rule], requirements: list[Requirement]
) -> str:
    """A digest of all that decides a verdict; titles and reasons may change without it."""
    digest = hashlib.sha256()
    for name in sorted(families):
        family = families[name]
        verdict_relevant = (
            name, family.suite, family.level, family.judged_by, sorted(family.gates),
            sorted(family.needs), family.transport, family.runner, rules[name],
        )  # fmt: skip
        digest.update(msgspec.json.encode(verdict_relevant, order="sorted"))
    digest.update(msgspec.json.encode([(r.id, r.level, r.cases) for r in requirements]))
    return digest.hexdigest()[:12]
