"""JUnit XML: counts what it holds, in the form that readers expect, whatever is said in it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import junitparser
import msgspec

from httpmark.harness.gate import findings
from httpmark.harness.gate.findings import Status
from httpmark.harness.gate.junit import SYSTEM_OUT_CHARACTERS_MAX, junit
from httpmark.harness.tests.shared.made_findings import families, hostile_run, many, mixed, run_of


def test_junit_counts_what_it_holds_and_each_finding_is_one_case() -> None:
    run = mixed()
    found = findings.findings(run, families=families())
    root = ElementTree.fromstring(junit(run, found))
    assert root.tag == "testsuites"
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped", "tests": "testcase"}
    for element in (root, *root.iter("testsuite")):
        for attribute, tag in kinds.items():
            assert element.get(attribute) == str(sum(1 for _ in element.iter(tag)))
    assert sum(1 for _ in root.iter("testcase")) == len(found)
    said = [finding.status for finding in found]
    assert len(list(root.iter("failure"))) == said.count(Status.FAILED) > 0
    assert len(list(root.iter("error"))) == said.count(Status.UNUSABLE) > 0
    assert len(list(root.iter("skipped"))) == said.count(Status.UNDECIDED) > 0
    assert len(list(root.iter("system-out"))) == said.count(Status.WARNED) > 0
    for case in root.iter("testcase"):
        assert len([child for child in case if child.tag != "properties"]) <= 1


def test_junit_has_the_order_and_attributes_that_readers_expect() -> None:
    root = ElementTree.fromstring(junit(mixed(), findings.findings(mixed())))
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors", "skipped", "time"} <= set(suite.keys())
        assert suite[0].tag == "properties"
        assert {child.tag for child in suite} == {"properties", "testcase"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        names = [(case.get("classname"), case.get("name")) for case in suite.iter("testcase")]
        assert len(set(names)) == len(names)


def test_junit_names_the_clause() -> None:
    run = run_of("go_net_http")
    text = junit(run, findings.findings(run, families=families()))
    case = next(
        case for case in ElementTree.fromstring(text).iter("testcase")
        if case.get("name") == "field_name_byte"
    )  # fmt: skip
    assert case.get("classname") == "RFC 9110 5.1, 5.6.2"


def test_hostile_words_break_no_junit() -> None:
    run = hostile_run()
    xml = junit(run, findings.findings(run))
    xml.encode("utf-8")
    root = ElementTree.fromstring(xml)
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
        "skipped", "system-out",
    }  # fmt: skip


def test_junit_reads_in_another_reader_and_says_what_is_excused() -> None:
    run = run_of("reference")
    made = [many(said, 1)[0] for said in Status]
    excused = findings.Excuse(state="unchanged", reason="known since spring", issue="#7")
    made = [
        msgspec.structs.replace(f, excuse=excused) if f.status is Status.EXPECTED else f
        for f in made
    ]
    read = junitparser.JUnitXml.fromstring(junit(run, made).encode())
    assert (read.tests, read.failures, read.errors, read.skipped) == (len(Status), 1, 1, 3)
    results = {case.name: case.result for suite in read for case in suite}
    assert results["expected0"][0].message == "expected failure: known since spring (#7)"
    assert results["passed0"] == []


def test_a_failure_tells_how_to_send_it_by_hand_and_what_was_on_the_wire() -> None:
    (finding,) = many(Status.FAILED, 1)
    finding = msgspec.structs.replace(
        finding, reproducers=("printf x | nc",), wire="sent:\nx" * 9999
    )
    root = ElementTree.fromstring(junit(run_of("reference"), [finding]))
    assert "printf x | nc" in (root.findtext(".//failure") or "")
    assert len(root.findtext(".//system-out") or "") == SYSTEM_OUT_CHARACTERS_MAX
