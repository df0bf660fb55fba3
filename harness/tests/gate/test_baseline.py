"""The ratchet: what is listed may fail as listed, nothing else, and the file only shrinks."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.gate import baseline
from httpmark.harness.gate import findings as gate_findings
from httpmark.harness.gate.baseline import Baseline
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.model.cases import Level
from httpmark.harness.model.errors import HarnessError

TODAY = datetime.date(2026, 11, 21)
KNOWN = {"alpha": "CL-1", "beta": "CL-2", "gamma": "CL-3", "many_byte": "GEN-1"}
FILE = """\
# What our server cannot do yet.
# Ask before you add anything.

# alpha is old
[[expected]]
id = "alpha"
outcome = "accepted"
reason = "the router is lenient"

# beta: see the tracker
[[expected]]
id = "beta"
outcome = "any"
reason = "not decided"
issue = "https://example.org/issues/7"
expires = 2027-03-01

[[expected]]
id = "many_byte"   # a generated family
outcome = "accepted"
at_most = 140 # of 175
reason = "raw octets pass"
"""


def parsed(text: str, path: str = "b.toml") -> Baseline:
    return baseline._parsed(Path(path), text, KNOWN)


def seen(
    id: str,
    said: Status,
    outcome: str = "accepted",
    failures: int = 1,
    requests: int = 1,
    **more: object,
) -> Finding:
    finding = Finding(
        server="target",
        suite="rfc",
        id=id,
        title=id,
        level=Level.MUST,
        clause="",
        status=said,
        message="m",
        outcome="" if said is Status.PASSED else outcome,
        failures=0 if said is Status.PASSED else failures,
        requests=requests,
    )
    return msgspec.structs.replace(finding, **more)


def held(
    finding: Finding, *, text: str = FILE, strict: bool = False, today: datetime.date = TODAY
) -> Finding:
    (only,) = baseline.hold([finding], parsed(text), today=today, strict=strict)
    return only


def test_what_is_listed_and_fails_as_listed_is_expected() -> None:
    found = held(seen("alpha", Status.FAILED))
    assert found.status is Status.EXPECTED
    assert found.excuse == gate_findings.Excuse(
        state="unchanged", reason="the router is lenient", file="b.toml", line=5
    )


def test_what_is_not_listed_fails_and_is_new() -> None:
    found = held(seen("gamma", Status.FAILED))
    assert found.status is Status.FAILED
    assert found.excuse == gate_findings.Excuse(state="new")


def test_another_way_to_fail_is_a_failure() -> None:
    found = held(seen("alpha", Status.FAILED, "hung"))
    assert found.status is Status.FAILED
    assert "fails as 'hung', but the baseline lists 'accepted'" in found.message
    assert found.excuse is not None
    assert found.excuse.state == "updated"


def test_any_way_may_be_listed() -> None:
    assert held(seen("beta", Status.FAILED, "hung")).status is Status.EXPECTED


@pytest.mark.parametrize(("failures", "said"), [(140, Status.EXPECTED), (141, Status.FAILED)])
def test_a_family_may_not_fail_more_often(failures: int, said: Status) -> None:
    found = held(seen("many_byte", Status.FAILED, failures=failures, requests=175))
    assert found.status is said


def test_an_excuse_ends_on_its_day() -> None:
    day = datetime.date(2027, 3, 1)
    before = day - datetime.timedelta(days=1)
    assert held(seen("beta", Status.FAILED), today=before).status is Status.EXPECTED
    late = held(seen("beta", Status.FAILED), today=day)
    assert late.status is Status.FAILED
    assert "expired on 2027-03-01" in late.message


def test_an_unexpected_pass_is_told_and_fails_in_strict_mode() -> None:
    lenient = held(seen("alpha", Status.PASSED))
    strict = held(seen("alpha", Status.PASSED), strict=True)
    assert (lenient.status, strict.status) == (Status.PASSED, Status.FAILED)
    for found in (lenient, strict):
        assert found.excuse is not None
        assert found.excuse.state == "absent"
        assert "remove it" in found.message


@pytest.mark.parametrize("said", [Status.UNDECIDED, Status.UNUSABLE, Status.NOT_APPLICABLE])
def test_what_proves_nothing_is_neither_excused_nor_an_unexpected_pass(said: Status) -> None:
    assert held(seen("alpha", said), strict=True).status is said


def test_what_is_only_warned_of_needs_no_excuse_and_is_told() -> None:
    found = held(seen("alpha", Status.WARNED, "hung"))
    assert found.status is Status.WARNED
    assert "no longer fails, but the baseline lists it" in found.message
    assert found.excuse is not None
    assert found.excuse.state == "absent"
    assert held(seen("alpha", Status.WARNED), strict=True).status is Status.FAILED
    assert held(seen("gamma", Status.WARNED)).message == "m"
    small = baseline.shrink(parsed(FILE), [seen("alpha", Status.WARNED)])
    assert small.done == ("alpha: only warns, removed",)
    assert '"alpha"' not in small.text


def test_a_family_says_which_way_it_fails() -> None:
    text = FILE.replace('"accepted"\nat_most', '"200; closed | hung"\nat_most')

    def many(outcome: str, text: str = text) -> Finding:
        return held(seen("many_byte", Status.FAILED, outcome, 9, 175), text=text)

    assert many("200; closed").status is Status.EXPECTED
    worse = many("200; closed | 200; the next request is answered")
    assert worse.status is Status.FAILED
    assert "the baseline lists '200; closed | hung'" in worse.message
    # Files of before families told their ways apart stay as good as they were.
    old = FILE.replace('"accepted"\nat_most', '"fail"\nat_most')
    assert many("200; closed", old).status is Status.EXPECTED


def test_what_follows_the_semicolon_is_a_way_to_fail() -> None:
    text = FILE.replace(
        'outcome = "accepted"\nreason = "the', 'outcome = "200; closed"\nreason = "the'
    )
    assert held(seen("alpha", Status.FAILED, "200; closed"), text=text).status is Status.EXPECTED
    smuggled = "200; the next request is answered"
    assert held(seen("alpha", Status.FAILED, smuggled), text=text).status is Status.FAILED
    short = text.replace("200; closed", "200")
    assert held(seen("alpha", Status.FAILED, smuggled), text=short).status is Status.EXPECTED


def test_a_family_must_say_how_often_it_may_fail_and_updating_writes_it() -> None:
    text = FILE.replace("at_most = 140 # of 175\n", "")
    found = seen("many_byte", Status.FAILED, failures=99, requests=175)
    open_ended = held(found, text=text)
    assert open_ended.status is Status.FAILED
    assert "write at_most = 99" in open_ended.message
    small = baseline.shrink(parsed(text), [found])
    assert small.done == ("many_byte: at_most set to 99",)
    assert small.text == text.replace(
        'outcome = "accepted"\nreason = "raw', 'outcome = "accepted"\nat_most = 99\nreason = "raw'
    )
    assert held(found, text=small.text).status is Status.EXPECTED
    # One case is one request: it needs no number.
    assert held(seen("alpha", Status.FAILED), text=text).status is Status.EXPECTED


def test_an_entry_may_speak_of_one_server() -> None:
    text = '[[expected]]\nid = "alpha"\noutcome = "any"\nreason = "r"\nserver = "other"\n'
    assert held(seen("alpha", Status.FAILED), text=text).status is Status.FAILED
    assert held(seen("alpha", Status.FAILED, server="other"), text=text).status is Status.EXPECTED


ENTRY = '[[expected]]\nid = "alpha"\noutcome = "any"\nreason = "r"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENTRY.replace("alpha", "alpa"), "did you mean alpha?"),
        (ENTRY.replace("alpha", "CL-2"), "write the id beta"),
        (ENTRY.replace("alpha", "many_byte-80"), "write many_byte"),
        (ENTRY.replace("reason", "raison"), "did you mean reason?"),
        (ENTRY.replace('"r"', '" "'), "has no reason"),
        (ENTRY.replace('reason = "r"\n', ""), "missing required field `reason`"),
        (ENTRY + "expires = 12\n", "expires"),
        (ENTRY + "at_most = 0\n", "at_most must be 1 or more"),
        (ENTRY + ENTRY, "alpha is listed twice"),
        (ENTRY.replace("[[expected]]", "[[expect]]"), "unknown key 'expect'"),
        ("expected = 1", "must be a list"),
        ("[[expected", "not valid TOML"),
    ],
)
def test_every_mistake_names_its_line(text: str, said: str) -> None:
    with pytest.raises(HarnessError) as error:
        parsed("# a comment\n" + text)
    assert said in str(error.value)
    assert str(error.value).startswith("b.toml")
    if "alpha" in text and "expect]]" not in text and "twice" not in said:
        assert "line 2" in str(error.value)


def test_json_does_as_well() -> None:
    listed = {"id": "beta", "outcome": "any", "reason": "r", "expires": "2027-03-01"}
    found = parsed(json.dumps({"expected": [listed]}), "b.json")
    assert found.entries[0].expires == datetime.date(2027, 3, 1)
    small = baseline.shrink(found, [seen("beta", Status.PASSED)])
    assert json.loads(small.text) == {"expected": []}
    grown = baseline.grow(found, [seen("alpha", Status.FAILED)], reason="new", known=KNOWN)
    again = parsed(grown.text, "b.json")
    assert [entry.id for entry in again.entries] == ["alpha", "beta"]
    assert again.entries[1] == found.entries[0]


def test_what_passes_is_taken_out_with_its_comment_and_nothing_else() -> None:
    small = baseline.shrink(parsed(FILE), [seen("alpha", Status.PASSED)])
    assert small.text == FILE.replace(
        '# alpha is old\n[[expected]]\nid = "alpha"\noutcome = "accepted"\n'
        'reason = "the router is lenient"\n\n',
        "",
    )
    assert small.done == ("alpha: passes, removed",)
    last = baseline.shrink(parsed(FILE), [seen("many_byte", Status.PASSED)])
    assert last.text == FILE[: FILE.index('[[expected]]\nid = "many_byte"')]


def test_a_comment_on_the_first_line_speaks_of_the_file() -> None:
    small = baseline.shrink(parsed("# ours\n" + ENTRY), [seen("alpha", Status.PASSED)])
    assert small.text == "# ours\n"


def test_what_fails_less_often_may_fail_no_more_often_again() -> None:
    found = [seen("many_byte", Status.FAILED, failures=99, requests=175)]
    small = baseline.shrink(parsed(FILE), found)
    assert small.text == FILE.replace("at_most = 140", "at_most = 99")


@pytest.mark.parametrize("said", [Status.FAILED, Status.UNDECIDED, Status.UNUSABLE])
def test_what_did_not_pass_stays(said: Status) -> None:
    found = [seen("alpha", said), seen("many_byte", said, failures=150, requests=175)]
    assert baseline.shrink(parsed(FILE), found) == baseline.Shrunk(FILE, ())


def test_an_entry_of_several_servers_goes_when_all_pass() -> None:
    one, other = seen("alpha", Status.PASSED), seen("alpha", Status.FAILED, server="b")
    assert not baseline.shrink(parsed(FILE), [one, other]).done
    other = msgspec.structs.replace(other, status=Status.PASSED)
    assert baseline.shrink(parsed(FILE), [one, other]).done


def test_a_file_that_cannot_be_edited_is_left_alone() -> None:
    inner = 'outcome = "any", reason = "r"}'
    text = f'expected = [{{id = "alpha", {inner}, {{id = "beta", {inner}]\n'
    with pytest.raises(HarnessError, match="by hand: alpha: passes, removed"):
        baseline.shrink(parsed(text), [seen("alpha", Status.PASSED)])


_saids = st.sampled_from(list(Status))


@hypothesis.given(
    st.dictionaries(st.sampled_from(sorted(KNOWN)), st.tuples(_saids, st.integers(1, 200)))
)
def test_updating_never_excuses_what_was_not_excused(found: dict[str, tuple[Status, int]]) -> None:
    def many(id: str, said: Status, number: int) -> Finding:
        family = id == "many_byte"
        return seen(id, said, failures=number if family else 1, requests=200 if family else 1)

    findings = [many(id, said, number) for id, (said, number) in found.items()]
    before = parsed(FILE)
    after = parsed(baseline.shrink(before, findings).text)
    assert len(after.entries) <= len(before.entries)
    for id in KNOWN:
        for number in (1, 99, 140, 141):
            failing = [many(id, Status.FAILED, number)]
            (was,) = baseline.hold(failing, before, today=TODAY)
            (now,) = baseline.hold(failing, after, today=TODAY)
            assert was.status is Status.EXPECTED or now.status is Status.FAILED
    # What was found is judged the same, but that no pass is unexpected any more.
    for was, now in zip(
        baseline.hold(findings, before, today=TODAY),
        baseline.hold(findings, after, today=TODAY, strict=True),
        strict=True,
    ):
        assert was.status is now.status


def test_growing_needs_a_reason_and_lists_failures_only() -> None:
    found = [
        seen("gamma", Status.FAILED, "hung"),
        seen("many_byte", Status.WARNED, failures=3, requests=9),
        seen("score", Status.FAILED),
        seen("alpha", Status.FAILED, "hung"),
    ]
    with pytest.raises(HarnessError, match="give a reason"):
        baseline.grow(parsed(FILE), found, reason=" ", known=KNOWN)
    grown = baseline.grow(parsed(FILE), found, reason='first "look"\n', known=KNOWN)
    assert grown.done == ("gamma: added",)
    entry = parsed(grown.text).entries[2]
    assert (entry.id, entry.outcome, entry.at_most) == ("gamma", "hung", None)


def test_a_file_that_grows_stays_sorted_and_keeps_its_comments() -> None:
    known = {**KNOWN, "aaa": "", "bbb": "", "zeta": ""}
    found = [seen(id, Status.FAILED) for id in ("zeta", "bbb", "gamma", "aaa")]
    found.append(seen("bcc_byte", Status.FAILED, failures=3, requests=9))
    known["bcc_byte"] = ""
    grown = baseline.grow(parsed(FILE), found, reason="new", known=known)
    made = baseline._parsed(Path("b.toml"), grown.text, known)
    ids = [entry.id for entry in made.entries]
    assert ids == sorted(ids)
    assert len(ids) == 8
    assert next(e.at_most for e in made.entries if e.id == "bcc_byte") == 3
    assert '# alpha is old\n[[expected]]\nid = "alpha"' in grown.text
    assert '# beta: see the tracker\n[[expected]]\nid = "beta"' in grown.text
    assert "\n\n\n" not in grown.text
    for line in FILE.splitlines():
        assert line in grown.text
    inner = 'outcome = "any", reason = "r"}'
    listed = parsed(f'expected = [{{id = "alpha", {inner}]\n')
    with pytest.raises(HarnessError, match="by hand: aaa: added"):
        baseline.grow(listed, found[3:4], reason="new", known=known)


def test_a_first_baseline_lets_the_same_run_pass() -> None:
    found = [seen("gamma", Status.FAILED), seen("many_byte", Status.FAILED, failures=3, requests=9)]
    grown = baseline.grow(baseline.empty(Path("b.toml")), found, reason="start", known=KNOWN)
    assert tomllib.loads(grown.text)
    after = baseline.hold(found, parsed(grown.text), today=TODAY, strict=True)
    assert {finding.status for finding in after} == {Status.EXPECTED}


def test_a_file_is_named_as_its_repository_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "ci").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "ci")
    inside = tmp_path / "project" / "ci" / "known.toml"
    assert baseline.in_repository(inside) == "ci/known.toml"
    assert baseline.in_repository(Path("known.toml")) == "ci/known.toml"
    assert baseline.in_repository(Path("../known.toml")) == "known.toml"
    # Without a repository it is the working folder that counts; outside of it, nothing does.
    monkeypatch.chdir(tmp_path)
    assert baseline.in_repository(tmp_path / "b" / "known.toml") == "b/known.toml"
    monkeypatch.chdir(tmp_path / "project")
    assert baseline.in_repository(tmp_path / "b" / "known.toml") == "known.toml"


def test_a_file_that_is_not_there_yet_excuses_nothing(tmp_path: Path) -> None:
    """But there is nothing in it to remove, and a folder is no file."""

    def opened(path: Path, **given: bool) -> baseline.Baseline | None:
        said = {"update": False, "strict": False, **given}
        return baseline.opened(path, known=KNOWN, growth=None, **said)

    path = tmp_path / "b.toml"
    for strict in (True, False):
        held = opened(path, strict=strict)
        assert held == baseline.empty(path)
    assert held is not None
    (finding,) = baseline.hold([seen("gamma", Status.FAILED)], held, today=TODAY)
    assert finding.status is Status.FAILED
    with pytest.raises(HarnessError, match="or make one with --allow-growth REASON"):
        opened(path, update=True)
    with pytest.raises(HarnessError, match="directory"):
        opened(tmp_path)
