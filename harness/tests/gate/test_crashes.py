"""A crash in every output: what is told of it, and that it is a finding that fails the gate."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.gate import baseline, conclusion, crashes, findings, github, junit, sarif
from httpmark.harness.gate.findings import Finding, Status
from httpmark.harness.model.crashes import Blame, Crash, CrashKind, crash_id
from httpmark.harness.model.run import Run
from httpmark.harness.report import html_page, verdict_text
from httpmark.harness.tests.shared.made_findings import families, run_of

CASE = "transfer-encoding-gzip"
ALONE = Crash(
    kind=CrashKind.DIED,
    how="killed by SIGABRT",
    blame=Blame.ALONE,
    cases=(CASE,),
    requests=1,
    suite="rfc",
    family=CASE,
    by_hand=("printf 'GET / HTTP/1.1\\r\\n\\r\\n' | nc -q 2 127.0.0.1 PORT",),
    octets=87,
    fewest=19,
    last_words=("assertion failed <b>",),
)
NAMELESS = [
    Crash(kind=CrashKind.DIED, how="exit code 3", blame=blame, cases=("a", "b"), requests=9)
    for blame in (Blame.SEQUENCE, Blame.NOT_AGAIN, Blame.SUSPECTED)
]


def found(*some: Crash, **changes: object) -> tuple[Run, list[Finding]]:
    run = run_of("reference", crashes=some, **changes)
    return run, list(findings.findings(run, families=families()))


def of_crashes(some: list[Finding]) -> list[Finding]:
    return [one for one in some if one.id.endswith("crash")]


def terminal(run: Run, all_found: list[Finding]) -> str:
    judged = verdict_text.Judged(run=run, found=tuple(all_found), code=1)
    return "\n".join(line.text for line in verdict_text.verdict_lines(judged, width=200))


def test_a_crash_fails_the_gate_and_comes_first() -> None:
    run, all_found = found(ALONE)
    [finding] = of_crashes(all_found)
    assert (finding.id, finding.suite) == (crash_id(CASE), "rfc")
    assert finding.status is Status.FAILED
    assert conclusion.worst_first(all_found)[0] is finding
    assert conclusion.exit_code(run, all_found) == 1
    told = conclusion.conclusion(run, all_found, 1)
    assert told.headline == f"Dies of 1 request (killed by SIGABRT): {CASE}."
    assert not any("Fails the gate" in sentence for sentence in told.sentences), "told once"


def test_a_server_that_was_not_started_again_is_no_reason_to_judge_nothing() -> None:
    """The exit code is 1: a target that cannot be used at all would be 3."""
    run, all_found = found(
        msgspec.structs.replace(NAMELESS[2], went_on=False), died="127.0.0.1:80 refuses connections"
    )
    assert conclusion.exit_code(run, all_found) == 1
    assert Status.UNUSABLE not in {one.status for one in all_found}
    [finding] = of_crashes(all_found)
    assert finding.message.endswith("The rest was not asked")


@pytest.mark.parametrize("text", ["killed by SIGABRT", CASE, "19 of 87 bytes", "assertion failed"])
def test_every_output_tells_of_what_the_server_dies(text: str) -> None:
    run, all_found = found(ALONE)
    outputs = {
        "junit": junit.junit(run, all_found),
        "sarif": sarif.sarif(run, all_found),
        "page": html_page.render(run, None),
        "terminal": terminal(run, all_found),
    }
    if "bytes" not in text and "assertion" not in text:
        outputs["summary"] = github.summary(run, all_found, code=1).replace("\\", "")
        outputs["annotations"] = "\n".join(github.workflow_commands(all_found))
    assert [name for name, shown in outputs.items() if text not in shown] == []


def test_the_words_of_a_server_are_marked_as_its_own_and_cannot_be_markup() -> None:
    run, all_found = found(ALONE)
    [finding] = of_crashes(all_found)
    assert finding.last_words == ("the server's own last words:", "| assertion failed <b>")
    page = html_page.render(run, None)
    assert "assertion failed &lt;b&gt;" in page
    assert "assertion failed <b>" not in page.partition('id="results"')[0]


def test_each_blame_says_how_much_is_known() -> None:
    told = [crashes.told(one) for one in (ALONE, *NAMELESS)]
    assert "Asked again alone, after a fresh start, it did so again" in told[0]
    assert "after these 9 requests in this order" in told[1]
    assert "none of them does it alone" in told[1]
    assert "after these 9 requests; asked again one by one, none of them does it again" in told[2]
    assert "any of which may be the cause" in told[3]
    hasty = msgspec.structs.replace(NAMELESS[0], is_proven=False)
    assert "none of them does it alone" not in crashes.told(hasty)
    hasty = msgspec.structs.replace(NAMELESS[1], is_proven=False)
    assert "none of them" not in crashes.told(hasty)
    assert "no time" in crashes.told(hasty)
    alien = msgspec.structs.replace(NAMELESS[2], why_not="it is not ours")
    assert crashes.told(alien).endswith("Nothing could be asked again: it is not ours")


def test_crashes_without_a_culprit_are_one_finding() -> None:
    _, all_found = found(*NAMELESS)
    [finding] = of_crashes(all_found)
    assert (finding.id, finding.failures) == (crashes.NAMELESS, 3)


def test_a_known_crash_can_be_in_a_baseline(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(
        f'[[expected]]\nid = "{crash_id(CASE)}"\noutcome = "killed by SIGABRT"\nreason = "known"\n'
    )
    held = baseline.read(file, known=findings.listable(families()))
    today = datetime.date(2026, 1, 1)

    def status(crash: Crash) -> Status:
        [finding] = of_crashes(list(baseline.hold(found(crash)[1], held, today=today)))
        return finding.status

    assert status(ALONE) is Status.EXPECTED
    assert status(msgspec.structs.replace(ALONE, how="killed by SIGSEGV")) is Status.FAILED
    assert status(msgspec.structs.replace(ALONE, kind=CrashKind.HUNG)) is Status.FAILED
