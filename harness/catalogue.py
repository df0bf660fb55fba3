"""scenarios/**/*.toml to families and load plans; every complaint names file, entry and key."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from httpmark.harness import checks, corpus, grammar
from httpmark.harness.model import Case, Family, HarnessError, Level, LoadMode, LoadPlan

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"

_ESCAPE = re.compile(rb"\\(?:([rnt])|x([0-9A-Fa-f]{2}))")
_LETTERS = {b"r": b"\r", b"n": b"\n", b"t": b"\t"}
_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_Text = TypeVar("_Text")


def octets(text: str) -> bytes:
    r"""The octets a scenario writes: ``\r \n \t \xNN`` are escapes, any other backslash is 0x5C.

    :raises ValueError: a character beyond U+00FF.
    """
    return _ESCAPE.sub(
        lambda match: _LETTERS[match[1]] if match[1] else bytes((int(match[2], 16),)),
        text.encode("latin-1"),
    )


class _FamilyText(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ``[[family]]`` as written."""

    id: str
    ref: str
    title: str
    level: Level
    clause: str
    why: str
    send: str
    count: int
    judged_by: str = msgspec.field(name="pass")
    octets: str | None = None
    pairs_outside: str | None = None
    pairs_within: str | None = None
    decoded: str | None = None
    needs: tuple[str, ...] = ("hello",)
    gates: tuple[str, ...] = ()
    head_only: bool = False
    deadline_ms: int = 2000


class _FileText(msgspec.Struct, forbid_unknown_fields=True):
    suite: str
    family: list[_FamilyText]


class _PublishedText(msgspec.Struct, forbid_unknown_fields=True):
    """``seed/published.json`` as written."""

    about: str
    versions: dict[str, str]
    counts: dict[str, dict[str, tuple[int, int]]]  # detected, undetected
    detections: dict[str, dict[str, str]]


class Catalogue(msgspec.Struct, frozen=True):
    """All families and plans, and the version that changes with any verdict-changing edit."""

    families: dict[str, Family]
    rules: dict[str, corpus.Rule]
    plans: dict[str, LoadPlan]
    default_plans: tuple[str, ...]
    version: str
    published: dict[str, dict[str, str]] = {}  # server, family: run lengths of detections

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(family.suite for family in self.families.values()))

    def of_suite(self, suite: str) -> list[Family]:
        """The families of a suite, controls first: nothing counts before they have passed."""
        chosen = [family for family in self.families.values() if family.suite == suite]
        return sorted(chosen, key=lambda family: family.level is not Level.CTRL)

    def cases(self, family: str, *, path: str, host: str) -> Iterator[Case]:
        """The cases of one family, addressed to a target."""
        return corpus.cases(family, self.rules[family], path=path, host=host)

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


def _known(name: str, known: Any, kind: str) -> str:
    if name in known:
        return name
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    raise HarnessError(f"unknown {kind} {name!r}: {hint}")


def load(folder: Path = FOLDER) -> Catalogue:
    """Read every scenario file below ``folder``.

    :raises HarnessError: a file has a mistake; the message names file, entry and key.
    """
    families: dict[str, Family] = {}
    rules: dict[str, corpus.Rule] = {}
    plans: dict[str, LoadPlan] = {}
    for path in sorted(folder.rglob("*.toml")):
        name = path.relative_to(folder.parent).as_posix()
        if path.parent.name == "load":
            plans[path.stem] = _plan(path, name)
        else:
            for family, rule in _families(path, name):
                if family.id in families:
                    raise HarnessError(
                        f"{name}: family {family.id!r}: key 'id': "
                        f"{families[family.id].source} has this id already; slugs are unique"
                    )
                families[family.id], rules[family.id] = family, rule
    for family in families.values():
        for gated in family.gates:
            if gated != "*" and gated not in families:
                raise HarnessError(
                    f"{family.source}: family {family.id!r}: key 'gates': no family {gated!r}"
                )
    # Deeper profiles first: the headline is the one the eye meets.
    defaults = sorted((plan for plan in plans.values() if plan.default), key=lambda p: -p.depth)
    return Catalogue(
        families,
        rules,
        plans,
        tuple(plan.name for plan in defaults),
        _version(families, rules),
        _published(folder),
    )


def _published(folder: Path) -> dict[str, dict[str, str]]:
    """What servers did in the published benchmark, request by request (seed/published.json)."""
    path = folder / "seed" / "published.json"
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=_PublishedText).detections
    except msgspec.DecodeError as error:
        raise HarnessError(f"{path.relative_to(folder.parent)}: {error}") from None


def _decode(path: Path, where: str, kind: type[_Text], **known: str) -> _Text:
    try:
        text = tomllib.loads(path.read_text("utf-8"))
        if clash := text.keys() & known:
            raise HarnessError(f"{where}: key {min(clash)!r}: it follows from the file's name")
        return msgspec.convert({**text, **known}, kind)
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{where}: not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise HarnessError(f"{where}: {error}; scenarios/README.md lists the keys") from None


def _families(path: Path, name: str) -> Iterator[tuple[Family, corpus.Rule]]:
    file = _decode(path, name, _FileText)
    for text in file.family:
        where = f"{name}: family {text.id!r}: key"
        if not _SLUG.fullmatch(text.id):
            raise HarnessError(f"{where} 'id': lower-case words joined by _ or -")
        if text.judged_by not in checks.WORDS:
            known = ", ".join(sorted(checks.WORDS))
            raise HarnessError(f"{where} 'pass': no word {text.judged_by!r}; known are {known}")
        if text.gates and text.level is not Level.CTRL:
            raise HarnessError(f"{where} 'gates': only a positive control (CTRL) gates")
        rule = _rule(text, where)
        made = corpus.count(rule)
        if made != text.count:
            raise HarnessError(f"{where} 'count': says {text.count}, the rule makes {made}")
        family = Family(
            id=text.id,
            ref=text.ref,
            suite=file.suite,
            title=text.title,
            level=text.level,
            clause=text.clause,
            why=text.why,
            judged_by=text.judged_by,
            count=text.count,
            generated=text.count > 1,
            needs=text.needs,
            gates=text.gates,
            source=name,
        )
        yield family, rule


def _rule(text: _FamilyText, where: str) -> corpus.Rule:
    sets: dict[str, frozenset[int] | None] = {}
    for key in ("octets", "pairs_outside", "pairs_within", "decoded"):
        expression: str | None = getattr(text, key)
        try:
            sets[key] = None if expression is None else grammar.octet_set(expression)
        except ValueError as error:
            raise HarnessError(f"{where} {key!r}: {error}") from None
    varied = [key for key in ("octets", "pairs_outside", "pairs_within") if sets[key] is not None]
    if len(varied) > 1:
        raise HarnessError(
            f"{where} {varied[1]!r}: a family varies one thing, and {varied[0]!r} is there"
        )
    if sets["decoded"] is not None and sets["pairs_within"] is None:
        raise HarnessError(f"{where} 'decoded': goes with 'pairs_within'")
    if sets["decoded"] is not None and not (sets["pairs_within"] or set()) <= grammar.HEXDIG:
        raise HarnessError(f"{where} 'decoded': the pairs must be hexadecimal digits")
    placeholder = "{octet}" if varied == ["octets"] else "{pair}"
    if text.send.count(placeholder) != len(varied):
        raise HarnessError(f"{where} 'send': must hold {placeholder} exactly {len(varied)} time(s)")
    try:
        send = octets(text.send)
    except ValueError:
        raise HarnessError(f"{where} 'send': write octets above 0x7F as \\xNN") from None
    if text.deadline_ms <= 0:
        raise HarnessError(f"{where} 'deadline_ms': must be positive")
    return corpus.Rule(send=send, head_only=text.head_only, deadline_ms=text.deadline_ms, **sets)


def _plan(path: Path, name: str) -> LoadPlan:
    plan = _decode(path, name, LoadPlan, name=path.stem, source=name)
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
    if plan.mode is LoadMode.OPEN and min(plan.rate or 1, plan.rate_of_capacity or 1) <= 0:
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


def _version(families: dict[str, Family], rules: dict[str, corpus.Rule]) -> str:
    """A digest of all that decides a verdict; titles and reasons may change without it."""
    digest = hashlib.sha256()
    for name in sorted(families):
        family, rule = families[name], rules[name]
        verdict_relevant = (
            name,
            family.suite,
            family.level,
            family.judged_by,
            sorted(family.gates),
            sorted(family.needs),
            rule.send.hex(),
            *(
                sorted(value) if value is not None else None
                for value in (rule.octets, rule.pairs_outside, rule.pairs_within, rule.decoded)
            ),
            rule.head_only,
            rule.deadline_ms,
        )
        digest.update(msgspec.json.encode(verdict_relevant))
    return digest.hexdigest()[:12]
