"""The page of a check: the verdict first, what failed with its bytes, and nothing that is empty."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Unpack

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.gate import conclusion, findings
from httpmark.harness.gate.findings import Finding
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Compliance, Tally, Verdict, Word
from httpmark.harness.report import check_page, html_page, matrix, verdict_text
from httpmark.harness.tests.shared.judged_cases import ACCEPTED, PASSED, Said, check_of
from httpmark.harness.tests.shared.made_findings import run_of
from httpmark.harness.tests.shared.page_reader import read

KNOWN = loading.load()
DATE = b"Date: Sun, 22 Nov 2026 22:18:46 GMT"
ANSWER = b"HTTP/1.1 200 OK\r\n" + DATE + b"\r\nContent-Length: 2\r\n\r\nhi"
BINDING = [
    one.id
    for one in KNOWN.families.values()
    if one.level.is_binding and one.suite == "rfc" and not one.generated
]


class Stored:
    """Two answers to each case: its own, and that of the request after it."""

    def facts(self, server: str) -> Facts | None:
        return Facts(host="a", address="127.0.0.1", port=18080)

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        case = wanted.get("case")
        if isinstance(case, str) and wanted.get("delivery", "whole") == "whole":
            sent = f"GET /{case} HTTP/1.1\r\n\r\nGET /?canary-{case} HTTP/1.1\r\n\r\n".encode()
            yield Exchange(
                case, case, sent, ANSWER * 2, Outcome.ANSWERED, End.OPEN, 1, 2, len(sent)
            )


def concluded(run: Run, found: tuple[Finding, ...]) -> Run:
    """The run with the conclusion of its gate, as a check keeps it."""
    server = msgspec.structs.replace(
        run.servers[0], again=("http://127.0.0.1:18080/",), load=(), memory=None
    )
    told = conclusion.conclusion(run, found, conclusion.exit_code(run, found))
    return msgspec.structs.replace(run, servers=(server,), conclusion=told, profiles=())


def page_of(cases: dict[str, Said]) -> str:
    return html_page.render(concluded(*check_of(cases)), Stored())


@functools.cache
def all_fail() -> str:
    return page_of(dict.fromkeys(BINDING, ACCEPTED))


def test_the_page_begins_with_the_sentences_of_the_terminal() -> None:
    run, found = check_of({"content-length-plus-sign": ACCEPTED, "host-missing": PASSED})
    page = html_page.render(concluded(run, found), Stored())
    lines = verdict_text.verdict_lines(verdict_text.Judged(run=run, found=found, code=1), width=500)
    assert f"<h1>{lines[0].text}</h1>" in page
    lead = page[: page.index('<section id="verdict"')]
    assert "It can be used for request smuggling" in lead
    text = " ".join(read(page).text)
    assert "Requirements: 1 met, 1 broken, 0 undecided, 0 not applicable." in text


def test_every_row_that_fails_leads_to_its_bytes() -> None:
    page = all_fail()
    rows = re.findall(r'<tr><th scope="row">(.*?)</tr>', page, re.DOTALL)
    failing = [row for row in rows if "<td class=f>" in row]
    assert failing
    ids = set(read(page).ids)
    for row in failing:
        link = re.search(r'href="#(q-[^"]+)"', row)
        assert link is not None, row
        assert link[1] in ids
    articles = re.findall(r'<article id="c-([^"]+)">(.*?)</article>', page, re.DOTALL)
    assert {id for id, _ in articles} == set(BINDING), "each stands by itself"
    for id, article in articles:
        assert f"GET /{id} HTTP/1.1" in article


def published_families() -> str:
    run = run_of("go_net_http")
    return html_page.render(concluded(run, findings.findings(run)), Stored())


@pytest.mark.parametrize("page_of_what", [all_fail, published_families])
def test_every_link_leads_to_something_on_the_page(page_of_what: Callable[[], str]) -> None:
    page = read(page_of_what())
    assert page.wrong == []
    assert len(page.ids) == len(set(page.ids))
    links = [found["href"] for tag, found in page.elements if tag == "a" and "href" in found]
    inside = [link for link in links if link.startswith("#")]
    assert {link[1:] for link in inside} <= set(page.ids)
    assert inside


def test_no_evidence_is_left_out() -> None:
    page = all_fail()
    assert DATE.decode() in page
    assert "left out for lack of room" not in page
    assert "are not in this page" not in page


def test_the_answer_to_the_next_request_is_told_apart() -> None:
    page = page_of({"host-missing": ACCEPTED})
    verdict = page[page.index('<section id="verdict"') : page.index('<section id="requirements"')]
    shown = re.findall(r'<pre class="log[^"]*"><span class="dir">([^<]*)</span>([^<]*)', verdict)
    assert [name for name, _ in shown] == [
        "sent", "sent as the next request", "came", "came to the next request",
    ]  # fmt: skip
    assert shown[0][1].startswith("GET /host-missing")
    assert shown[1][1].startswith("GET /?canary-host-missing")
    assert shown[2][1] == shown[3][1]


@pytest.mark.parametrize(
    ("received", "actual", "own"),
    [
        (ANSWER * 2, "200; the next request gets 200", len(ANSWER)),
        (ANSWER * 3, "200, 200; the next request wrongly gets 200", 2 * len(ANSWER)),
        (ANSWER * 2, "9 fail; as a-b: 200; the next request gets 200", len(ANSWER)),
        (ANSWER, "200; closed", len(ANSWER)),
        # Where it cannot be told, nothing is.
        (ANSWER * 2, "200, 200; the next request is not answered", 2 * len(ANSWER)),
        (ANSWER * 3, "200; the next request gets 200", 3 * len(ANSWER)),
        (ANSWER + b"x", "200; the next request gets 200", len(ANSWER) + 1),
        (b"", "closed without a byte", 0),
    ],
)
def test_answers_are_divided_only_where_the_bytes_show_it(
    received: bytes, actual: str, own: int
) -> None:
    assert matrix._own_answers(received, actual) == own


def test_what_is_empty_is_not_drawn() -> None:
    page = page_of({"host-missing": PASSED})
    text = " ".join(read(page).text)
    for absent in ("Memory", "No load", "was not part of this run", "Not tested in this run"):
        assert absent not in text
    assert 'id="scores"' not in page
    assert "The target" in text
    assert "http://127.0.0.1:18080/" in text


def test_colour_is_never_the_only_sign() -> None:
    page = all_fail()
    broken = page[page.index('class="broken"') : page.index('<section id="requirements"')]
    assert broken.count('<span class="sign" aria-hidden="true">✗</span>') == broken.count("<h4>")
    assert "Broken: MUST" in broken
    assert broken.count('<dd class="bad">') == broken.count("<dt>Came</dt>")


def test_a_check_on_every_answer_shows_the_answer_that_failed() -> None:
    failed = Verdict("host-missing", Word.FAIL, "a line", "no line", None, Level.MUST)
    tally = Tally(words={Level.MUST: {Word.FAIL: 2}}, failures=(failed,))
    run, _ = check_of({"host-missing": PASSED})
    suite = run.servers[0].compliance.suites["rfc"]
    suite = msgspec.structs.replace(
        suite,
        answers={"RESP-01": tally},
        requirements={**suite.requirements, "status-line": Word.FAIL},
    )
    run = msgspec.structs.replace(
        run_of("reference", compliance=Compliance({"rfc": suite})), notes=()
    )
    found = findings.findings(run, families=KNOWN.families)
    page = html_page.render(concluded(run, found), Stored())
    (article,) = re.findall(r'<article id="c-RESP-01">(.*?)</article>', page, re.DOTALL)
    assert "GET /host-missing HTTP/1.1" in article
    assert "canary-host-missing" in article


def test_what_the_baseline_lists_stands_apart() -> None:
    run, found = check_of({"host-missing": ACCEPTED, "host-query": ACCEPTED})
    made = concluded(run, found)
    assert made.conclusion is not None
    told = msgspec.structs.replace(made.conclusion, expected=("host-query",))
    check = check_page.check_page(msgspec.structs.replace(made, conclusion=told), KNOWN, Stored())
    assert check is not None
    assert [group.id for group in check.expected] == ["host-invalid"]
    assert [group.id for _, groups in check.sections for group in groups] == ["host-missing"]


def test_a_run_that_gates_nothing_is_no_check() -> None:
    assert check_page.check_page(run_of("reference"), KNOWN, None) is None
