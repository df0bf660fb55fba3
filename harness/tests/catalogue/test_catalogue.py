"""Scenario files: each mistake names file, entry and key; the version follows verdicts only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from httpmark.harness.catalogue import catalogue, loading, mistakes, notation, vocabulary
from httpmark.harness.firing.programs import table
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import PARTS_OF_BEHAVE
from httpmark.harness.tests.shared.command_process import COMMAND

FAMILY = {
    "id": '"one"',
    "ref": '"ONE-01"',
    "title": '"a title"',
    "level": '"SHOULD"',
    "clause": '"RFC 9112 3"',
    "why": '"because"',
    "send": r"'GET {p}{octet} HTTP/1.1\r\nHost: {h}\r\n\r\n'",
    "octets": '"ctl"',
    "count": "33",
    "pass": '"seed"',
}
PLAN = {
    "title": '"t"',
    "why": '"w"',
    "connections": "4",
    "depth": "1",
    "duration_s": "1.0",
}


def family(**changes: str | None) -> str:
    keys = {**FAMILY, **{name.replace("pass_", "pass"): v for name, v in changes.items()}}
    body = "\n".join(f"{key} = {value}" for key, value in keys.items() if value is not None)
    return f'suite = "seed"\n[[family]]\n{body}\n'


def load(tmp_path: Path, text: str, name: str = "seed/one.toml") -> catalogue.Catalogue:
    path = tmp_path / "scenarios" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return loading.load(tmp_path / "scenarios")


def test_a_good_file_is_read(tmp_path: Path) -> None:
    known = load(tmp_path, family())
    case = next(known.cases("one", Facts(host="a:1", path="/p")))
    assert case.sent == b"GET /p\x00 HTTP/1.1\r\nHost: a:1\r\n\r\n"
    assert known.families["one"].source == "scenarios/seed/one.toml"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": '"One"'}, "'id'"),
        ({"count": "34"}, "'count': says 34, the rule makes 33"),
        ({"octets": '"nonsense"'}, "'octets': 'nonsense' is no set of bytes"),
        ({"pairs_outside": '"ctl"'}, "'pairs_outside': a family varies one thing"),
        ({"decoded": '"ctl"'}, "'decoded': goes with 'pairs_within'"),
        ({"send": "'GET'"}, "'send': must hold {octet}"),
        ({"deviations": '{ rule = "Host" }'}, "'deviations': a family varies one thing"),
        ({"octets": None, "deviations": '{ rule = "Host" }'}, "'send': must hold {item}"),
        (
            {"octets": None, "send": "'{item}'", "deviations": '{ rule = "hots" }'},
            "'deviations': no rule 'hots'",
        ),
        (
            {"octets": None, "send": "'{item}'", "deviations": '{ rule = "Host", but = ["lf"] }'},
            "'deviations': no kind 'lf'",
        ),
        ({"send": "'GET {octet} \u2028'"}, "'send': write bytes"),
        ({"pass_": '"applause"'}, "'pass': 'applause': no word 'applause'"),
        ({"gates": '["*"]'}, "'gates': only a positive control"),
        ({"level": '"CTRL"', "gates": '["two"]'}, "'gates': no family 'two'"),
        ({"deadline_ms": "-1"}, "'deadline_ms'"),
        ({"level": '"OUGHT"'}, "level"),
        ({"title": None}, "title"),
        ({"colour": '"red"'}, "colour"),
        ({"count": '"33"'}, "count"),
        ({"clause": '"somewhere"'}, "'clause': 'somewhere' is no place in an RFC"),
        ({"answer_ms": "-5"}, "'answer_ms': -5 must be above 0"),
        ({"methods": '["get "]'}, "'methods': 'get ' is no method"),
        ({"needs": '["timeout.hed_s"]'}, "'needs': no timeout 'hed_s'; known are head_s"),
        ({"let": "{ L = '{=limit.request_target+1}' }"}, "'let': no limit 'request_target'"),
    ],
)
def test_a_mistake_names_file_and_key(
    tmp_path: Path, changes: dict[str, str | None], said: str
) -> None:
    with pytest.raises(HarnessError) as caught:
        load(tmp_path, family(**changes))
    assert "scenarios/seed/one.toml" in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_slug_stands_once(tmp_path: Path) -> None:
    load(tmp_path, family())
    with pytest.raises(HarnessError, match="slugs are unique"):
        load(tmp_path, family(), "seed/two.toml")


def test_broken_toml_is_said_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"seed/one\.toml: not valid TOML: ."):
        load(tmp_path, "suite = ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"depth": "0"}, "depth"), ({"depth": "257"}, "256"), ({"duration_s": "0.0"}, "duration_s"),
     ({"connections": "1.5"}, "connections"), ({"speed": "1"}, "speed")],
)  # fmt: skip
def test_a_mistake_in_a_profile_names_file_and_key(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in {**PLAN, **changes}.items())
    with pytest.raises(HarnessError, match=said) as caught:
        load(tmp_path, text, "load/fast.toml")
    assert "scenarios/load/fast.toml" in str(caught.value)


def test_the_version_follows_the_verdict_and_not_the_wording(tmp_path: Path) -> None:
    first = load(tmp_path, family()).version
    assert (
        load(tmp_path, family(title='"other"', why='"other"', clause='"RFC 9112 4"')).version
        == first
    )
    changed = {
        load(tmp_path, text).version
        for text in (
            family(send=r"'PUT {p}{octet}'"),
            family(level='"MUST"'),
            family(pass_='"accepted"'),
            family(octets='"ctl + sp"', count="34"),
            family(deadline_ms="1"),
            family(head_only="true"),
        )
    }
    assert len(changed | {first}) == 7


@pytest.mark.parametrize(
    ("text", "octets"),
    [(r"\r\n\t", b"\r\n\t"), (r"\x00\xfF", b"\x00\xff"), (r"\q\\", b"\\q\\\\"), (r"\x0", b"\\x0"),
     ("ÿ", b"\xff")],
)  # fmt: skip
def test_only_four_escapes_are_escapes(text: str, octets: bytes) -> None:
    assert notation.unescape(text) == octets


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(HarnessError, match="did you mean pipelined"):
        loading.load().plan("pipeline")
    with pytest.raises(HarnessError, match="did you mean seed"):
        loading.load().suite("sead")


def test_a_timeout_of_zero_is_none() -> None:
    known = loading.load()
    facts = Facts(host="h", timeouts={"head_s": 0.0})
    assert known.inapplicable("stop-in-method", facts) == (
        "needs timeout.head_s: declare timeouts.head_s in a manifest (docs/manifest.md)"
    )
    declared = Facts(host="h", timeouts={"head_s": 2.0})
    assert known.inapplicable("stop-in-method", declared) is None


def test_a_case_that_gates_is_a_control_and_names_families(tmp_path: Path) -> None:
    text = """
suite = "rfc"
family = "BASE"
title = "t"
clause = "RFC 9112 3"
why = "w"
level = "LEVEL"
[[case]]
id = "one"
ref = "BASE-90"
send = 'GET / HTTP/1.1'
pass = "ACC"
gates = ["NAME"]
"""
    path = tmp_path / "scenarios" / "rfc9112" / "a.toml"
    path.parent.mkdir(parents=True)
    for level, name, said in (
        ("MUST", "BASE", "case 'one': key 'gates': only a positive control"),
        ("CTRL", "XYZ", "'gates': no family 'XYZ'"),
        ("CTRL", "BASE", None),
    ):
        path.write_text(text.replace("LEVEL", level).replace("NAME", name))
        if said is None:
            assert loading.load(tmp_path / "scenarios").families["one"].gates == ("BASE",)
            continue
        with pytest.raises(HarnessError, match=said):
            loading.load(tmp_path / "scenarios")


CASES = """
suite = "rfc"
family = "BASE"
title = "t"
clause = "RFC 9112 3"
why = "w"
level = "MUST"
"""
CASE = {
    "id": '"one"',
    "ref": '"BASE-90"',
    "send": "'GET / HTTP/1.1'",
    "pass": '"ACC"',
}


def case(**changes: str) -> str:
    keys = {**CASE, **{name.replace("pass_", "pass"): v for name, v in changes.items()}}
    return "[[case]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items()) + "\n"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runner": '"every_cutt"'}, "'runner': no program 'every_cutt'; did you mean every_cut?"),
        ({"needs": '["timeout.hed_s"]'}, "'needs': no timeout 'hed_s'"),
        ({"send": "'GET /{limit.request_target*a} HTTP/1.1'"}, "'send': no limit 'request_target'"),
        ({"pass_": '"ACC; beyond {limit.field} 5"'}, "'pass': no limit 'field'"),
        ({"answer_ms": "-5"}, "'answer_ms': -5 must be above 0"),
        ({"methods": '["get "]'}, "'methods': 'get ' is no method"),
        ({"clause": '"somewhere"'}, "'clause': 'somewhere' is no place in an RFC"),
        ({"colour": '"red"'}, "'colour': there is no such key"),
        ({"tittle": '"red"'}, "'tittle': there is no such key; did you mean title?"),
        ({"turns": '"red"'}, "'turns': Expected `int`, got `str`"),
    ],
)
def test_a_mistake_names_the_case_by_its_id(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    with pytest.raises(mistakes.Mistakes) as caught:
        load(tmp_path, CASES + case() + case(id='"two"', ref='"BASE-91"', **changes))
    assert [line for line in caught.value.lines if said in line] == [caught.value.lines[0]]
    assert caught.value.lines[0].startswith("scenarios/seed/one.toml: case 'two': key '")


def test_a_number_stands_once(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"'two': key 'ref': 'one' of .* has BASE-90 already"):
        load(tmp_path, CASES + case() + case(id='"two"'))


def test_every_mistake_is_told_and_not_more_than_anyone_reads(tmp_path: Path) -> None:
    two = case(id='"One"', turns='"a"', colour="1") + case(clause='"x"', answer_ms="0")
    with pytest.raises(mistakes.Mistakes) as caught:
        load(tmp_path, CASES + two)
    assert [line.partition(": key ")[2][:10] for line in caught.value.lines] == [
        "'turns': E", "'colour': ", "'clause': ", "'answer_ms"
    ]  # fmt: skip
    many = "".join(case(id=f'"a{n}"', ref=f'"BASE-{n}"', level='"OUGHT"') for n in range(30))
    with pytest.raises(mistakes.Mistakes) as caught:
        load(tmp_path, CASES + many)
    assert len(caught.value.lines) == mistakes.MISTAKES_MAX + 1
    assert caught.value.lines[-1] == "and 10 more mistakes"


@pytest.mark.process
def test_the_command_says_a_mistake_a_line(tmp_path: Path) -> None:
    folder = tmp_path / loading.FOUND
    folder.mkdir(parents=True)
    (folder / "x.toml").write_text(CASES + case(colour="1") + case(clause='"x"'))
    ran = subprocess.run(
        [*COMMAND, "list", "cases"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("httpmark: scenarios/found/x.toml: case 'one': ") for line in lines)


def test_the_words_of_other_modules_are_theirs() -> None:
    assert table.PROGRAMS.keys() == vocabulary.PROGRAMS.keys()


def test_slugs_are_the_ids_of_the_cases_made() -> None:
    known = loading.load()
    facts = vocabulary.EVERYTHING
    for name in ("path_octet_good", "get-plain", "query_pair_good"):
        made = [case.id for case in known.cases(name, facts, step=7)]
        assert list(known.slugs(name, step=7)) == made
        assert made


def test_the_files_httpmark_brings_are_read_once() -> None:
    assert loading.load() is loading.load()


def test_a_section_stands_for_all_below_it_and_a_ruleset_for_what_it_judges_otherwise() -> None:
    known = loading.load()
    below = known.select(["9112/6.3"])
    assert below < known.select(["9112/6"])
    hardened = known.select(["hardened"])
    assert {known.families[name].group for name in hardened} > {"CL", "TE", "CLTE"}
    assert all(known.hardens(known.families[name]) for name in hardened)
    assert known.select(["realistic"])


def test_a_timeout_that_was_found_is_not_a_declared_one() -> None:
    known = loading.load()
    facts = Facts(host="h", timeouts={"head_s": 5.0})
    found = Facts(host="h", timeouts={"head_s": 5.0}, timeouts_found=("head_s",))
    for case in ("stop-in-method", "fields-without-end", "slow-within-timeout"):
        assert known.inapplicable(case, facts) is None
    assert known.inapplicable("stop-in-method", found) is None
    for case in ("fields-without-end", "slow-within-timeout"):
        why = known.inapplicable(case, found)
        assert why == (
            "needs declared.head_s: declare timeouts.head_s in a manifest (docs/manifest.md)"
        )


def test_a_case_needs_the_places_of_behave_that_it_asks() -> None:
    known = loading.load()
    everything = vocabulary.EVERYTHING
    wrong = []
    for name, family in known.families.items():
        if family.generated or known.inapplicable(name, everything) is not None:
            continue
        sent = next(known.cases(name, everything)).sent
        asked = {
            part
            for part in PARTS_OF_BEHAVE
            if re.search(rb"[ =]/" + part.removeprefix("behave.").encode() + rb"[? ]", sent)
        }
        words = {word for need in family.needs for word in need.split("|")}
        needs = {word for word in words if word.startswith("behave")}
        needs |= {"behave.early"} if "early" in family.needs else set()
        rule = known.rules[name]
        may_go_elsewhere = "{big}" in "".join((*rule.sends, *rule.steps))
        if asked != needs and not may_go_elsewhere:
            wrong.append(f"{name}: asks {sorted(asked)}, needs {sorted(needs)}")
    assert wrong == []


def test_what_a_target_declares_and_does_not_show_makes_cases_inapplicable_and_no_error() -> None:
    """A manifest may say ``static`` of a server that was started without the files."""
    known = loading.load()
    facts = Facts(host="h", capabilities=tuple(sorted(vocabulary.CAPABILITIES)))
    for name in known.families:
        if known.inapplicable(name, facts) is None:
            next(known.planned(name, facts), None)
    assert known.inapplicable("static-nul-end", facts) is not None
