"""The scenario files against the case catalogue: every number once, exact counts, nothing twice.

``python -m httpmark.harness.tests.catalogue.test_scenarios`` adds new slugs to the golden list.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from httpmark.harness.catalogue import expectation, loading, scenario_keys, vocabulary
from httpmark.harness.firing.programs import table
from httpmark.harness.judging import judge
from httpmark.harness.model.cases import (
    STATIC_FILE_FACTS,
    Case,
    Facts,
    Family,
    Level,
    Op,
    Requirement,
)
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.load import LoadPlan
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Word
from httpmark.harness.tests.shared import repository

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "slugs.json"

# The case catalogue, section 2: designed families and how many numbers each has.
DESIGNED = {
    "BASE": 16, "RL": 40, "MTH": 29, "VER": 45, "EOL": 26, "LEAD": 10, "HN": 46, "FOLD": 21,
    "TGT": 88, "HOST": 63, "CL": 73, "TE": 63, "CLTE": 22, "CHK": 87, "TRL": 25, "SMUG": 44,
    "LIM": 24, "EXP": 19, "CONN": 28, "PIPE": 16, "SEM": 26, "UPG": 18, "TIME": 12, "EOF": 12,
    "PATHX": 30, "ROB": 7,
}  # fmt: skip

# Numbers that came after them, by family: new rows get the next numbers.
ADDED = {
    "CHK": 5, "CONN": 1, "PIPE": 2, "SEM": 3, "TE": 1, "TGT": 1, "UPG": 1,
}  # fmt: skip

# Section 4: generated families and how many requests each makes.
GENERATED = {
    "SEED-PATH": 175, "SEED-QUERY": 175, "SEED-HNAME": 178, "SEED-HVALUE": 30,
    "SEED-PCT-PATH": 61_692, "SEED-PCT-QUERY": 61_692,
    "RFC-PATH": 175, "RFC-PATH-MID": 175, "RFC-PATH-FIRST": 175, "RFC-QUERY": 175,
    "RFC-QUERY-MID": 175, "RFC-METH": 179, "RFC-HNAME-ONE": 179, "RFC-HNAME-FIRST": 179,
    "RFC-HNAME-MID": 178, "RFC-HNAME-LAST": 178, "RFC-HVALUE-ONE": 32, "RFC-HVALUE-MID": 32,
    "RFC-HVALUE-LAST": 32, "RFC-PCT-PATH": 65_052, "RFC-PCT-QUERY": 65_052, "RFC-PCT-DIFF": 6_720,
    "POS-PATH": 80, "POS-QUERY": 81, "POS-HNAME": 77, "POS-HVALUE": 224, "POS-METH": 77,
    "POS-PCT-PATH": 484, "POS-PCT-QUERY": 484,
    "SIMD-PATH": 645, "SIMD-QUERY": 645, "SIMD-HNAME": 645, "SIMD-HVALUE": 645, "SIMD-OK": 516,
    "SIMD-END": 129, "NUM-CL": 41, "NUM-ECHO": 41, "NUM-CHUNK": 120, "CASE-FRAME": 384,
    "RFC-HOST-IP": 68, "POS-HOST-IP": 18, "RFC-HOST-PORT": 67, "POS-HOST-PORT": 12,
    "RFC-AUTHORITY": 15, "POS-AUTHORITY": 6, "SIMD-HOST": 192, "SIMD-HOST-OK": 64, "RFC-VER": 84,
    "RFC-METH-TARGET": 56, "RFC-TE-PARAM": 28, "RFC-TE-UNKNOWN": 7, "RFC-TE-FINAL": 5,
    "DEV-HOST": 168, "DEV-IPV6": 824, "DEV-CL": 76, "DEV-TE": 168, "DEV-VER": 186, "DEV-CHUNK": 692,
}  # fmt: skip

# A name and a port, so that no case is another one by chance of the address.
FACTS = Facts(host="target.example:8080", capabilities=vocabulary.EVERYTHING.capabilities)

KNOWN = loading.load()
NUMBER = re.compile(r"([A-Z]+)-([0-9]+)")


def designed() -> list[Family]:
    """The designed cases of section 2; the seed's controls and the requests that a check on every
    answer needs for itself (RESP) repeat or serve others.
    """
    return [
        family
        for family in KNOWN.families.values()
        if family.suite not in ("seed", "found")
        and NUMBER.fullmatch(family.ref)
        and not family.ref.startswith("RESP-")
    ]


def generated() -> dict[str, list[Family]]:
    """Families by number; the seed's controls repeat parts of POS-* and are not of section 4."""
    found: dict[str, list[Family]] = defaultdict(list)
    for family in KNOWN.families.values():
        if family.suite != "found" and not NUMBER.fullmatch(family.ref) and not family.gates:
            found[family.ref].append(family)
    return found


def cases(family: str, *, step: int = 1) -> list[Case]:
    return list(KNOWN.cases(family, FACTS, step=step))


@functools.cache
def requests(family: str) -> tuple[bytes, ...]:
    """What goes out in each case, the canary without the name of its case."""
    return tuple(
        case.sent.replace(b"canary-" + case.id.encode(), b"canary-")
        for case in KNOWN.cases(family, FACTS)
    )


def test_the_tables_are_those_of_the_catalogue() -> None:
    assert len(DESIGNED) == 26
    assert sum(DESIGNED.values()) == 890
    assert len(GENERATED) == 58
    assert sum(GENERATED.values()) == 270_684


def test_the_readme_says_how_many_cases_there_are() -> None:
    ours = sum(n for ref, n in GENERATED.items() if not ref.startswith("SEED-"))
    readme = (repository.ROOT / "README.md").read_text("utf-8")
    designed = sum(DESIGNED.values()) + sum(ADDED.values())
    assert f"{designed} designed cases and {ours:,} generated requests" in readme


def test_every_number_stands_exactly_once() -> None:
    numbers = Counter(ref for family in designed() for ref in family.refs)
    wanted = {
        f"{name}-{number:02d}"
        for name, count in DESIGNED.items()
        for number in range(1, count + ADDED.get(name, 0) + 1)
    }
    assert sorted(wanted - numbers.keys()) == []
    assert sorted(numbers.keys() - wanted) == []
    assert [ref for ref, times in numbers.items() if times > 1] == []


# Families of refusals that say nothing where the nearest good message is refused, too.
NEAREST = {
    "CL": "BASE-03", "SMUG": "BASE-03", "TE": "BASE-04", "CHK": "BASE-04", "CLTE": "BASE-04",
    "TRL": "TRL-01",
}  # fmt: skip


@pytest.mark.parametrize(("group", "control"), NEAREST.items())
def test_a_negative_family_has_its_nearest_control(group: str, control: str) -> None:
    [gate] = [family for family in designed() if group in family.gates]
    assert control in gate.refs
    assert gate.level is Level.CTRL
    words = [one.answers[0].word for one in expectation_of(gate).passes]
    assert words == ["ACC"]
    [bad, *_] = [one for one in designed() if one.group == group and one.level is Level.MUST]
    if bad.suite == gate.suite:
        assert gate.id in KNOWN.with_controls(frozenset({bad.id}))


# The case catalogue, section 7: reports, and the families or numbers that stand for them.
ADVISORIES: dict[str, tuple[str, ...]] = {
    "CVE-2023-47627": ("CL", "CHK", "HN", "RFC-HVALUE"),
    "GHSA-qppv-j76h-2rpx": ("CL", "CHK"),
    "GHSA-753j-mpmx-qq6g": ("TE",),
    "Gunicorn 3047": ("CHK",),
    "Gunicorn 3144": ("RFC-HVALUE",),
    "CVE-2023-40518": ("HN-04", "HN-05", "HN-06", "HN-07", "HN-08", "HN-09"),
    "golang/go 61679": ("CL-10",),
    "golang/go 64517": ("CHK-19",),
    "hyper commit 8291538": ("CHK-19",),
    "CVE-2021-21299": ("TE", "CLTE"),
    "hyper PR 2600": ("CHK",),
    "GHSA-vqfr-h8mv-ghfj": ("CHK-53",),
    "picohttpparser PR 82": ("CHK-54", "CHK-55", "CHK-56"),
    "nginx PR 1016": ("CHK-54", "CHK-55", "CHK-56"),
    "HAProxy 2024-01": ("CHK", "RFC-HVALUE"),
    "CVE-2023-40225": ("CL-61",),
    "aspnetcore 66794": ("CHK",),
    "CVE-2023-39326": ("CHK", "LIM-23"),
    "CVE-2020-11076": ("CLTE", "SMUG"),
    "CVE-2020-11077": ("CLTE", "SMUG"),
    "CVE-2019-17569": ("TE", "FOLD"),
    "CVE-2020-1935": ("TE", "FOLD"),
    "CVE-2020-10719": ("RFC-PATH", "RFC-QUERY", "RFC-METH", "RFC-HNAME"),
    "CVE-2020-26129": ("CLTE", "CHK"),
    "CVE-2021-25762": ("CLTE", "CHK"),
    "CVE-2020-1944": ("CLTE",),
    "CVE-2011-3192": ("SEM-16",),
    "Mongoose (Garden 13)": ("EOL",),
    "Mongoose (Garden 26)": ("CL",),
    "Mongoose (Garden 27)": ("HN",),
    "Mongoose (Garden 28)": ("HN",),
    "Mongoose (Garden 29)": ("CL",),
    "Node.js (Garden 30)": ("EOL-12",),
    "Node.js (Garden 31)": ("CHK",),
    "Puma (Garden 38)": ("CL-10",),
    "Puma (Garden 39)": ("CHK",),
    "Puma (Garden 48)": ("PIPE",),
    "Waitress (Garden 40)": ("RFC-METH", "VER"),
    "Cheroot (Garden 47)": ("CHK-66",),
    "fasthttp (Garden 33)": ("CL",),
    "fasthttp (Garden 44)": ("TE-21",),
    "Bun PR 33717": tuple(f"HOST-{number:02d}" for number in range(6, 15)),
    "Bun (Garden 46)": ("HN-36",),
    "CISPA 2023": ("HOST", "MTH", "RFC-HVALUE"),
}


@pytest.mark.parametrize(("report", "where"), ADVISORIES.items())
def test_a_report_is_tagged_where_the_catalogue_says(report: str, where: tuple[str, ...]) -> None:
    tagged = [ref for f in KNOWN.families.values() if report in f.advisories for ref in f.refs]
    named = [one for one in where if any(ref == one or ref.startswith(f"{one}-") for ref in tagged)]
    assert named == list(where)
    assert KNOWN.select([report])


@pytest.mark.parametrize(
    ("id", "limit", "size"),
    [
        ("field-value-8k", "field_line_bytes", 8199),
        ("cookie-16k", "field_line_bytes", 16394),
        ("fields-64", "fields", 64),
        ("fields-100", "fields", 101),
        ("field-50-times", "fields", 51),
    ],
)
def test_a_declared_limit_turns_information_into_a_verdict(id: str, limit: str, size: int) -> None:
    refused = conforming(b"HTTP/1.1 431 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    told = {
        most: refused(id, Facts(host="a", limits={} if most is None else {limit: most}))
        for most in (None, size, size - 1)
    }
    assert told == {
        None: (Level.INFO, Word.WARN),
        size: (Level.CTRL, Word.FAIL),
        size - 1: (Level.SHOULD, Word.PASS),
    }


def conforming(answer: bytes) -> Callable[[str, Facts], tuple[Level, Word]]:
    """How a case is judged where it draws this answer, and then a close."""

    def judged(id: str, facts: Facts) -> tuple[Level, Word]:
        [planned] = KNOWN.planned(id, facts)
        sent = planned.case.steps[0].data
        timeline = b"".join(
            EVENT_RECORD.pack(*event)
            for event in ((1, 0, len(sent)), (2, 10, len(answer)), (3, 20, 0))
        )
        exchange = Exchange(
            id, id, sent, answer, Outcome.ANSWERED, End.CLOSED, 1, 2, 3, timeline=timeline
        )
        return planned.level, judge.Judge().judge(planned, exchange).word

    return judged


def test_a_tunnel_that_nobody_declares_fails() -> None:
    opened = conforming(b"HTTP/1.1 200 OK\r\n\r\n")
    assert opened("connect-ipv6", FACTS) == (Level.SHOULD, Word.FAIL)
    assert opened("connect", FACTS) == (Level.MUST, Word.WARN)


def expectation_of(family: Family) -> expectation.Expectation:
    [planned] = KNOWN.planned(family.id, FACTS)
    assert planned.expectation is not None
    return planned.expectation


def test_a_case_stands_in_the_file_of_its_first_family() -> None:
    order = list(DESIGNED)
    wrong = []
    for family in designed():
        names = [ref.partition("-")[0] for ref in family.refs]
        if not family.group == names[0] == min(names, key=order.index):
            wrong.append(f"{family.id}: {family.group} of {names}")
    assert wrong == []


def test_generated_families_make_exactly_what_the_catalogue_says() -> None:
    made = {ref: sum(len(requests(f.id)) for f in found) for ref, found in generated().items()}
    assert made == GENERATED


def test_no_two_designed_cases_are_the_same() -> None:
    same: dict[object, list[str]] = defaultdict(list)
    for family in designed():
        rule = KNOWN.rules[family.id]
        if not rule.sends and not rule.steps:
            continue  # a judgement of what other cases drew, or a program part of its own
        if KNOWN.inapplicable(family.id, FACTS) is not None:
            continue  # made of limits and timeouts that a server declares
        (case,) = cases(family.id)
        steps = tuple(
            (
                step.op,
                step.data.replace(b"canary-" + case.id.encode(), b"canary-"),
                step.kind,
                step.if_open,
                step.if_unanswered,
                step.wait_ms if step.op is Op.PAUSE else 0,
            )
            for step in case.steps
        )
        key = (case.place, steps, case.joined, family.transport, family.runner, rule.turns)
        same[key].append(family.id)
    assert [ids for ids in same.values() if len(ids) > 1] == []


def test_generated_requests_repeat_where_the_catalogue_says_and_once_more() -> None:
    """RFC-PCT-DIFF is a part of RFC-PCT-*, 26 sizes in hexadecimal have no letter, and ``GET`` with
    its Host in good order comes as the E of POS-METH and as one pattern of CASE-FRAME.
    """
    same: dict[tuple[str, bytes], list[str]] = defaultdict(list)
    total = 0
    for ref, found in generated().items():
        if ref.startswith("SEED-"):
            continue
        for family in found:
            place = cases(family.id, step=family.count)[0].place
            for octets in requests(family.id):
                same[place, octets].append(ref)
                total += 1
    assert total == 270_684 - 123_942
    repeated = Counter(tuple(sorted(refs)) for refs in same.values() if len(refs) > 1)
    assert repeated == {
        ("RFC-PCT-DIFF", "RFC-PCT-PATH"): 3_360,
        ("RFC-PCT-DIFF", "RFC-PCT-QUERY"): 3_360,
        ("NUM-CHUNK", "NUM-CHUNK"): 26,
        ("CASE-FRAME", "POS-METH"): 1,
    }
    assert len(same) == 139_995


def test_the_difference_is_what_the_published_pairs_leave_out() -> None:
    published = {
        octets for ref in ("SEED-PCT-PATH", "SEED-PCT-QUERY")
        for family in generated()[ref] for octets in requests(family.id)
    }  # fmt: skip
    repeated = [
        case.id
        for family in generated()["RFC-PCT-DIFF"]
        for case in cases(family.id)
        if case.steps[0].data in published
    ]
    assert repeated == []


def test_every_offset_of_the_end_of_a_section_is_reached() -> None:
    (family,) = generated()["SIMD-END"]
    ends = [case.steps[0].data.index(b"\r\n\r\n") + 2 for case in cases(family.id)]
    first = ends[0]
    assert first % 32 == 0
    assert ends == list(range(first, first + 129))
    empty = cases(family.id)[0].steps[0].data.index(b"X-A: ") + len(b"X-A: \r\n")
    assert empty < first <= empty + 32  # the smallest that leaves a value


@pytest.mark.parametrize(
    ("ref", "at", "length"),
    [("SIMD-PATH", b"GET /", 128), ("SIMD-QUERY", b"?", 128), ("SIMD-HVALUE", b"X-A: ", 128)],
)
def test_an_item_comes_at_every_offset(ref: str, at: bytes, length: int) -> None:
    offsets: dict[bytes, set[int]] = defaultdict(set)
    for family in generated()[ref]:
        for case in cases(family.id):
            octets = case.steps[0].data.partition(at)[2]
            letters = re.match(rb"(a*)(.+?)(a*)(?: HTTP/1\.1)?\r\n\r?\n?", octets, re.DOTALL)
            assert letters is not None
            assert len(letters[1]) + len(letters[3]) == length
            offsets[letters[2]].add(len(letters[1]))
    assert len(offsets) == 5
    assert all(found == set(range(length + 1)) for found in offsets.values())


def test_slugs_stay_what_they_are() -> None:
    golden: dict[str, list[str]] = json.loads(GOLDEN.read_text("utf-8"))
    now = slugs()
    lost = [slug for slug in golden if slug not in now]
    assert lost == [], "a slug is permanent: bring it back"
    moved = [slug for slug, refs in golden.items() if not set(refs) <= set(now[slug])]
    assert moved == [], "a slug keeps its numbers"
    new = [slug for slug, refs in now.items() if golden.get(slug) != refs]
    assert new == [], "run: python -m httpmark.harness.tests.catalogue.test_scenarios"


def slugs() -> dict[str, list[str]]:
    """Every slug and the numbers it stands for."""
    return {family.id: list(family.refs) for family in KNOWN.families.values()}


def add() -> None:
    """Add what is new to the golden list; nothing is ever taken out."""
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.is_file() else {}
    for slug, refs in slugs().items():
        golden[slug] = golden.get(slug, []) + [r for r in refs if r not in golden.get(slug, [])]
    lines = [f"{json.dumps(slug)}: {json.dumps(golden[slug])}" for slug in sorted(golden)]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    add()


def test_the_schema_names_every_key_word_and_program() -> None:
    text = (loading.FOLDER / "README.md").read_text("utf-8")
    code = re.findall(r"`([^`]+)`", text)

    def is_named(word: str) -> bool:
        return any(re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", one) for one in code)

    written = (
        scenario_keys.CaseEntry, scenario_keys.CaseFile,
        scenario_keys.FamilyEntry, scenario_keys.ClassEntry,
        LoadPlan, Requirement,
    )  # fmt: skip
    keys = {key for kind in written for key in kind.__struct_encode_fields__} - {"source", "name"}
    words = {*expectation.WORDS, *expectation.ENDS, *expectation._BARE, *expectation._TEXT}
    others = {
        *expectation._FIELDS,
        *vocabulary.CAPABILITIES,
        *STATIC_FILE_FACTS,
        *vocabulary.SUITES,
    }
    assert [word for word in sorted({*keys, *words, *others}) if not is_named(word)] == []


def test_programs_are_used_by_name_and_none_is_left_over() -> None:
    text = "".join(path.read_text("utf-8") for path in loading.FOLDER.rglob("*.toml"))
    assert set(re.findall(r'runner = "(\w+)"', text)) == table.PROGRAMS.keys()
