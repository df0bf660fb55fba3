"""The tables of what reaches the origin: by rule, by message, and a single case."""

from __future__ import annotations

import msgspec

from httpmark.harness.judging.forwarding_rules import RULES
from httpmark.harness.model.forwarding import (
    FrontEnd,
    Heard,
    LeftOut,
    MessageCount,
    Passage,
    Remark,
    RuleCount,
    Survey,
    Terms,
    Upstream,
)
from httpmark.harness.report import forwarding_tables, html_page, scoreboard
from httpmark.harness.tests.shared import made_run


def count(rule: str, *cases: str, what: str = "what") -> RuleCount:
    return RuleCount(
        rule=rule, cases=cases, example=cases[0], what=what, shown=b"GET /\x1b HTTP/1.1\r\n",
        asked_again=len(cases),
    )  # fmt: skip


def message(family: str, forwarded: int, **rules: int) -> MessageCount:
    return MessageCount(family=family, suite="rfc", asked=2, forwarded=forwarded, rules=rules)


ONE = FrontEnd(
    name="one", title="One|", version="1.0", asked=6, forwarded=4,
    rules=(count("via", "a", "b"), count("nul", "a"), count("repaired", "b")),
    messages=(message("a", 2, nul=1, via=2), message("b", 2, via=2, repaired=1), message("c", 0)),
)  # fmt: skip
TWO = FrontEnd(
    name="two", title="Two", version="2.0", asked=6, forwarded=3, not_repeated=1,
    rules=(count("via", "b"),),
    messages=(message("a", 0), message("b", 2, via=1), message("c", 1)),
)  # fmt: skip
GONE = FrontEnd(name="gone", title="Gone", unavailable="gone not found: install it")
SURVEY = Survey(
    date="2026-01-01", harness_version="0", catalogue_version="abc", origin="the origin",
    rules=RULES, left_out=(LeftOut("too large", 1234),), front_ends=(ONE, TWO, GONE),
)  # fmt: skip


def test_the_table_counts_cases_by_rule_and_names_the_worst() -> None:
    lines = list(forwarding_tables.lines(SURVEY, 80))
    rows = {line.split()[0]: line.split()[1:] for line in lines if line and line[0].isalpha()}
    assert rows["nul"] == ["MUST", "1", "-"]
    assert rows["repaired"] == ["note", "1", "-"]
    text = "\n".join(lines)
    assert "    came  GET /\\x1b HTTP/1.1\\r\\n" in lines
    assert "gone is unavailable, because gone not found: install it" in text
    assert "Cases left out: 1,234 too large." in text
    assert "1 broke a rule once only" in text
    assert "bare-cr" not in text
    assert all(len(line) <= 80 for line in lines)


def test_the_page_has_only_messages_that_differ_or_break_a_rule() -> None:
    page = forwarding_tables.page(SURVEY)
    assert "| `a` | forwarded; **nul** | refused |" in page
    assert "| `c` | refused | 1 of 2 forwarded |" in page
    assert "| `b` |" not in page  # alike, and only Via is missing
    assert "One\\|" in page
    assert "Not asked: Gone (gone not found: install it)." in page


def test_nobody_usable_is_told_without_a_table() -> None:
    lines = list(
        forwarding_tables.lines(
            Survey(
                date="", harness_version="", catalogue_version="", origin="", rules=RULES,
                left_out=(), front_ends=(GONE,),
            ),
            80,
        )
    )  # fmt: skip
    assert lines == ["gone is unavailable, because gone not found: install it"]


def test_a_single_case_is_shown_with_what_is_said_of_it() -> None:
    passage = Passage(
        case="c", family="c", suite="rfc", sent=b"GET /sent", received=b"",
        upstreams=(
            Upstream(number=1, opened_us=0, to_origin=b"GET /came", from_origin=b"HTTP/1.1"),
        ),
    )  # fmt: skip
    said = Heard(passage=passage, remarks=(Remark("via", "no Via", b""),))
    text = "\n".join(forwarding_tables.both_sides("one", said))
    order = ["c through one", "GET /sent", "GET /came", "HTTP/1.1", "(nothing)", "via: no Via"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    refused = Passage(case="c", family="c", suite="rfc", sent=b"", received=b"", upstreams=())
    shown = forwarding_tables.both_sides("one", Heard(passage=refused, remarks=()))
    assert "nothing reached the origin" in list(shown)


RUN = made_run.with_server(
    msgspec.structs.replace(
        made_run.small_run(),
        forwarding=Terms(origin="the origin", rules=RULES, left_out=(LeftOut("too large", 1234),)),
    ),
    "null", forwarding_reason="not applicable: its server.toml has no [proxy]",
)  # fmt: skip
RUN = made_run.with_server(RUN, "rust_hyper", forwarding=ONE)
RUN = made_run.with_server(RUN, "go_net_http", forwarding=TWO)


def test_the_scoreboard_counts_by_rule_and_names_the_messages_that_break_a_must() -> None:
    text = scoreboard.scoreboard(RUN)
    part = text.partition("FORWARDING: what reached the origin behind each front end\n")[2]
    rows = {words[0]: words[1:] for line in part.splitlines() if (words := line.split())}
    assert set(rows["nul"]) == {"MUST", "1", "-"}
    assert set(rows["a"]) == {"forwarded*", "refused"}
    assert "b" not in rows, "it breaks no MUST but Via"
    assert "null: not applicable: its server.toml has no [proxy]" in part
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_run_without_the_suite_says_nothing_of_it() -> None:
    run = made_run.small_run()
    assert forwarding_tables.of_run(run) is None
    assert forwarding_tables.run_lines(run, 80) == []
    assert 'id="forwarding"' not in html_page.render(run, None)


def test_the_page_shows_each_message_by_front_end() -> None:
    page = html_page.render(RUN, None)
    part = page.partition('<section id="forwarding"')[2].partition("</section>")[0]
    assert "<code>a</code></th><td>refused</td><td>forwarded<br><b>nul</b></td>" in part or (
        "<code>a</code></th><td>forwarded<br><b>nul</b></td><td>refused</td>" in part
    )
    assert "<code>c</code>" in part, "one refuses all of it, the other some"
    assert "null: not applicable: its server.toml has no [proxy]" in part
    assert "stood as a reverse proxy before the origin" in part
