"""The keys of scenario files: each kind of entry as it is written."""

from __future__ import annotations

from typing import Any

import msgspec

from httpmark.harness.model.cases import Level

Texts = str | list[str]


class ClassEntry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An entry of ``classes`` as written."""

    octets: str | None = None
    decoded: str | None = None
    when: dict[str, str | int] = {}
    level: Level | None = None
    judged_by: Texts = msgspec.field(name="pass", default_factory=list)
    allow: Texts = []
    noted: Texts = []
    canary: str | None = None


class DeviationsEntry(msgspec.Struct, forbid_unknown_fields=True):
    """``deviations`` of a family: those of a rule of the grammar, some kinds left out."""

    rule: str
    but: list[str] = []


class FamilyEntry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ``[[family]]`` as written."""

    id: str
    ref: str
    title: str
    level: Level
    clause: str
    why: str
    count: int
    send: Texts = []
    steps: list[str] = []
    judged_by: Texts = msgspec.field(name="pass")
    octets: str | None = None
    pairs_outside: str | None = None
    pairs_within: str | None = None
    decoded: str | None = None
    vary: dict[str, str | list[str | int]] = {}
    deviations: DeviationsEntry | None = None
    classes: list[ClassEntry] = []
    let: dict[str, str] = {}
    allow: Texts = []
    noted: Texts = []
    hardened: Texts | None = None
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


class FamilyFile(msgspec.Struct, forbid_unknown_fields=True):
    suite: str
    family: list[dict[str, Any]]  # each a FamilyEntry


class CaseEntry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ``[[case]]`` as written; where a key is None, the key of the file holds."""

    id: str
    ref: str | list[str]
    title: str = ""
    level: Level | None = None
    framing: bool | None = None
    clause: str | None = None
    why: str | None = None
    x: str | None = None
    send: Texts | None = None
    steps: list[str] | None = None
    let: dict[str, str] = {}
    judged_by: Texts | None = msgspec.field(name="pass", default=None)
    allow: Texts | None = None
    noted: Texts | None = None
    hardened: Texts | None = None
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


class CaseFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A file of cases as written."""

    suite: str
    family: str
    title: str
    case: list[dict[str, Any]]  # each a CaseEntry
    framing: bool = False
    template: str | None = None
    level: Level | None = None
    clause: str | None = None
    why: str | None = None
    judged_by: Texts | None = msgspec.field(name="pass", default=None)
    allow: Texts = []
    noted: Texts = []
    hardened: Texts | None = None
    needs: list[str] = []
    place: str = "auto"
    canary: str = "after"
    methods: list[str] = []
