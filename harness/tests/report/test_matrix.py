"""The matrix: a row per requirement, a column per server, and only what was no pass below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

import msgspec

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import evidence, family_tally, requirement_verdicts
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.cases import Facts, Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import Compliance, SuiteResult, Verdict, Word
from httpmark.harness.report import html_page, matrix
from httpmark.harness.tests.shared import made_run

KNOWN = loading.load()
CASE = next(f for f in KNOWN.families.values() if "CL-12" in f.refs)
OTHER = next(f for f in KNOWN.families.values() if "CL-13" in f.refs)
SENT = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"
HOSTILE = b"HTTP/1.1 200 OK\r\nDate: %d\r\nX: <script>alert(1)</script>\r\n\r\n"


AGAIN = {"a": ("http://127.0.0.1:18080/",)}


class Stored:
    """Exchanges of two servers that differ in their date alone."""

    def facts(self, server: str) -> Facts | None:
        return Facts(host="a", address="127.0.0.1", port=18080)

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        if wanted.get("case") == CASE.id and wanted.get("delivery", "whole") == "whole":
            received = HOSTILE % len(server)
            yield Exchange(
                CASE.id, CASE.id, SENT, received, Outcome.ANSWERED, End.OPEN, 1, 2, len(SENT)
            )


def server(name: str, word: Word) -> ServerResult:
    verdicts = {
        CASE.id: Verdict(CASE.id, word, "R400C", "200 OK", None, Level.MUST),
        OTHER.id: Verdict(OTHER.id, Word.PASS, "R400C", "400", None, Level.MUST),
    }
    tallies = {id: family_tally.tally([verdict]) for id, verdict in verdicts.items()}
    rows = requirement_verdicts.requirements(KNOWN.requirements, [CASE, OTHER], tallies, {})
    suite = SuiteResult(
        score_percent=0.0, must=requirement_verdicts.must(rows), cases=verdicts,
        requirements={id: found for id, (_, found, _) in rows.items()},
    )  # fmt: skip
    return ServerResult(
        name=name, title=name, language="", version=None, runtime="process",
        compliance=Compliance({"rfc": suite}),
    )  # fmt: skip


def run_of(*servers: ServerResult) -> Run:
    return msgspec.structs.replace(made_run.made_run(), servers=servers)


def drawn(*servers: ServerResult) -> matrix.Matrix:
    made = matrix.matrix(run_of(*servers), KNOWN)
    assert made is not None
    return matrix.with_logs(made, Stored(), AGAIN)


def test_a_run_without_such_suites_has_no_matrix() -> None:
    assert matrix.matrix(made_run.made_run(), KNOWN) is None


def test_a_requirement_is_as_good_as_its_worst_case_and_shows_only_that_one() -> None:
    made = drawn(server("good", Word.PASS), server("bad", Word.FAIL))
    assert made.servers == ("good", "bad")
    rows = [row for _, found in made.sections for row in found if row.cases]
    assert rows
    for row in rows:
        assert row.words == (Word.PASS, Word.FAIL)
        [case] = row.cases
        assert case.family.id == CASE.id
        assert case.told == (matrix.Told(("bad",), Word.FAIL, "200 OK"),)
        assert case.sent == SENT


def test_answers_that_differ_in_their_date_alone_are_one_log() -> None:
    made = drawn(server("one", Word.FAIL), server("another", Word.FAIL))
    [case] = next(row for _, found in made.sections for row in found if row.cases).cases
    [log] = case.logs
    assert log.servers == ("one", "another")


class WithFewer(Stored):
    """The same, and what fewer bytes got."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        if wanted.get("delivery") == evidence.kept_as(CASE.id):
            [whole] = super().exchanges(server, case=wanted.get("case"))
            yield msgspec.structs.replace(whole, sent=SENT.replace(b"hello", b""))
        else:
            yield from super().exchanges(server, **wanted)


def test_what_fewer_bytes_do_stands_below_the_line_that_sends_all() -> None:
    made = matrix.matrix(run_of(server("a", Word.FAIL)), KNOWN)
    assert made is not None
    made = matrix.with_logs(made, WithFewer(), AGAIN)
    [case] = next(row for _, found in made.sections for row in found if row.cases).cases
    whole, comment, fewer = case.again.splitlines()
    assert comment == f"# {len(SENT) - 5} of {len(SENT)} bytes do the same"
    assert whole.replace("hello", "") == fewer


def test_sections_are_in_the_order_of_the_documents() -> None:
    made = drawn(server("a", Word.WARN))
    assert [name for name, _ in made.sections] == sorted(name for name, _ in made.sections)


def test_hostile_bytes_stay_text_in_the_page() -> None:
    page = html_page.render(run_of(server("bad", Word.FAIL)), Stored())
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert CASE.id in page


def test_logs_keep_to_their_room_and_what_is_left_out_is_told() -> None:
    made = matrix.matrix(run_of(server("bad", Word.FAIL)), KNOWN)
    assert made is not None
    full = matrix.with_logs(made, Stored(), AGAIN)
    [case] = next(row for _, found in full.sections for row in found if row.cases).cases
    assert case.logs
    assert full.logs_left_out == 0
    none = matrix.with_logs(made, Stored(), AGAIN, bytes_max=100)
    [case] = next(row for _, found in none.sections for row in found if row.cases).cases
    assert case.sent == b""
    assert case.told
    assert none.logs_left_out == 1


def test_what_is_only_permitted_is_noted_without_bytes() -> None:
    made = drawn(server("lax", Word.WARN))
    [case] = next(row for _, found in made.sections for row in found if row.cases).cases
    assert not case.fails
    assert case.sent == b""
    page = html_page.render(run_of(server("lax", Word.WARN)), Stored())
    assert f"<code>{CASE.id}</code> ! lax: 200 OK" in page


def test_cases_that_every_server_took_alike_stand_together() -> None:
    bad = server("bad", Word.FAIL)
    suite = bad.compliance.suites["rfc"]
    both = {id: msgspec.structs.replace(suite.cases[CASE.id], case=id) for id in suite.cases}
    suite = msgspec.structs.replace(suite, cases=both)
    bad = msgspec.structs.replace(bad, compliance=Compliance({"rfc": suite}))
    made = drawn(bad)
    groups = [
        [case.family.id for case in same]
        for _, rows in made.sections
        for row in rows
        for same in row.groups
    ]
    assert groups == [[CASE.id, OTHER.id]]
    page = html_page.render(run_of(bad), Stored())
    assert page.count("bad: 200 OK") == 1
    assert OTHER.id in page


def test_what_has_no_room_is_counted_and_what_binds_goes_last() -> None:
    bad = server("bad", Word.FAIL)
    suite = bad.compliance.suites["rfc"]
    noted = Verdict(OTHER.id, Word.WARN, "R400C", "200 OK", None, Level.MUST)
    suite = msgspec.structs.replace(suite, cases={**suite.cases, OTHER.id: noted})
    bad = msgspec.structs.replace(bad, compliance=Compliance({"rfc": suite}))
    made = matrix.matrix(run_of(bad), KNOWN)
    assert made is not None

    def told(found: matrix.Matrix) -> tuple[set[str], int]:
        rows = [row for _, section in found.sections for row in section]
        ids = {case.family.id for row in rows for case in row.cases if case.drawn_in is None}
        return ids, sum(row.left_out for row in rows)

    assert told(matrix.shortened(made, surplus_bytes=0)) == ({CASE.id, OTHER.id}, 0)
    assert told(matrix.shortened(made, surplus_bytes=1)) == ({CASE.id}, 1)
    assert told(matrix.shortened(made, surplus_bytes=10_000)) == (set(), 2)


CONTESTED = next(
    family
    for family in KNOWN.families.values()
    if family.contested and not family.generated
    for row in KNOWN.requirements
    # A row that binds is judged by its binding cases, and a contested case is none.
    if row.level is Level.SHOULD
    and requirement_verdicts.showing(row)(family.refs or (family.ref,), family.group)
)


class OfContested(Stored):
    """The exchanges of a contested case."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        if wanted.get("case") == CONTESTED.id:
            case = CONTESTED.id
            yield Exchange(case, case, SENT, b"HTTP/1.1 200 OK\r\n\r\n", Outcome.ANSWERED,
                           End.OPEN, 1, 2, len(SENT))  # fmt: skip


def of_contested(name: str, word: Word) -> ServerResult:
    verdict = Verdict(CONTESTED.id, word, "ACC", f"as {name}", None, CONTESTED.level)
    rows = requirement_verdicts.requirements(
        KNOWN.requirements, [CONTESTED], {CONTESTED.id: family_tally.tally([verdict])}, {}
    )
    suite = SuiteResult(
        score_percent=100.0, must=requirement_verdicts.must(rows), cases={CONTESTED.id: verdict},
        requirements={id: found for id, (_, found, _) in rows.items()},
    )  # fmt: skip
    return msgspec.structs.replace(
        server(name, Word.PASS), compliance=Compliance({CONTESTED.suite: suite})
    )


def test_a_contested_row_is_marked_and_its_warnings_show_their_bytes() -> None:
    run = run_of(of_contested("one", Word.PASS), of_contested("other", Word.WARN))
    made = matrix.matrix(run, KNOWN)
    assert made is not None
    made = matrix.with_logs(made, OfContested(), {"other": ("http://127.0.0.1:1/",)})
    row = next(row for _, found in made.sections for row in found if row.cases)
    assert row.is_contested
    assert row.contested == (False, True), "a warning that is a reading, and no other"
    [case] = row.cases
    assert [told.word for told in case.told] == [Word.PASS, Word.WARN]
    assert case.sent == SENT
    assert case.again
    page = html_page.render(run, OfContested())
    assert "<td class=c>contested</td>" in page
    assert '<span class="ct">contested</span>' in page
    assert str(CONTESTED.contested)[:40] in page
    assert '<li class="pass">one: as one</li><li class="warn">other: as other</li>' in page


def test_both_readings_are_told_where_all_pass() -> None:
    run = run_of(of_contested("one", Word.PASS), of_contested("other", Word.PASS))
    made = matrix.matrix(run, KNOWN)
    assert made is not None
    row = next(row for _, found in made.sections for row in found if row.cases)
    assert (row.not_passed, row.contested, row.is_contested) == (0, (False, False), True)
    page = html_page.render(run, OfContested())
    assert "0 of " in page
    assert str(CONTESTED.contested)[:40] in page
    assert f'href="#q-{row.requirement.id}"' in page, "a name leads to the readings"
    assert "<td class=c>" not in page


def test_a_case_without_its_bytes_says_how_to_get_them() -> None:
    page = html_page.render(run_of(server("bad", Word.FAIL)), None)
    assert "<code>httpmark explain CASE</code> shows the rule" in page
    assert "they are not in this page" not in html_page.render(
        run_of(server("bad", Word.FAIL)), Stored()
    )
