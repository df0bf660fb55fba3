"""What is drawn from a run: laws of the page, some of the scoreboard too."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Unpack

import hypothesis
import hypothesis.strategies as st
import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.judging import family_tally, requirement_verdicts
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.load import Bottleneck, Cost
from httpmark.harness.model.memory import BytesPerConnection
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import (
    Compliance,
    Controls,
    Difference,
    SuiteResult,
    Verdict,
    Word,
)
from httpmark.harness.report import html_page, number_format, overview, scoreboard
from httpmark.harness.tests.shared.made_run import (
    BAD,
    FEW,
    MANNERS,
    OCTET_FAMILIES,
    OK,
    CompleteEvidence,
    MadeEvidence,
    Manner,
    complete_run,
    held,
    load_result,
    made_run,
    small_run,
    with_server,
)
from httpmark.harness.tests.shared.page_reader import read

HOSTILE = (
    b"<script>alert(1)</script>\x00\xff\xfe</pre></script><!--\xe2\x80\xa8&quot;"
    b"\"'><img src=x onerror=alert(1)>"
)


@functools.cache
def small_page() -> str:
    return html_page.render(small_run(), MadeEvidence(only=OCTET_FAMILIES))


@functools.cache
def large_page() -> str:
    return html_page.render(made_run(), MadeEvidence())


@functools.cache
def complete_page() -> str:
    """Ten servers, and something in every section."""
    return html_page.render(complete_run(), CompleteEvidence())


def shape(page: str) -> tuple[list[str], list[dict[str, str]]]:
    """The elements of a page but for the marks of ``wire``, and what they load or lead to."""
    reader = read(page)
    assert not reader.wrong
    assert not reader.open
    return (
        [tag for tag, _ in reader.elements if tag != "b"],
        [
            {name: value for name, value in attributes.items() if name in ("src", "href", "srcset")}
            for tag, attributes in reader.elements
            if tag != "b" or attributes
        ],
    )


def answering(answer: bytes | None) -> Manner:
    return lambda _family, _octets: answer


# --- hostile bytes -----------------------------------------------------------------------------


def test_hostile_bytes_of_a_server_stay_text() -> None:
    hostile = OK[:-14] + b"\r\n" + HOSTILE
    tame = OK[:-14] + b"\r\n" + b"x" * len(HOSTILE)
    run = made_run(("reference",), only=OCTET_FAMILIES)
    pages = [
        html_page.render(run, MadeEvidence({"reference": answering(answer)}, only=OCTET_FAMILIES))
        for answer in (hostile, tame)
    ]
    assert shape(pages[0]) == shape(pages[1])
    assert len(read(pages[0]).scripts) == 2
    assert "alert(1)" in "".join(read(pages[0]).text)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "</script><script>alert(1)</script>",
        "</script x",
        "</script/",
        "<!--<script ",
        "</style><b>",
        '" onmouseover="alert(1)',
        "&quot; onmouseover=&quot;",
        "<!-- <script>",
        "{{ 7919*7877 }}{% raw %}",
        "a\u2028b\u2029c\u202ed\x00e\x1bf",
        "\udc80 lone surrogate",
    ],
)
def test_hostile_words_in_a_run_stay_text(hostile: str) -> None:
    def worded(word: str) -> Run:
        run = with_server(
            small_run(),
            "go_net_http",
            title=word,
            language=word,
            version=word,
            died=word,
            memory_reason=word,
        )
        suite = run.servers[2].compliance.suites["seed"]
        verdict = Verdict("control-x", Word.FAIL, word, word)
        changed = msgspec.structs.replace(
            suite, score_percent=None, reason=word, controls=Controls(1, 1, (verdict,))
        )
        load = load_result(500.0, bottleneck=Bottleneck.BROKEN, errors={word: 3})
        run = with_server(
            run,
            "go_net_http",
            compliance=msgspec.structs.replace(run.servers[2].compliance, suites={"seed": changed}),
            load=(msgspec.structs.replace(load, bottleneck_why=word),),
        )
        run = with_server(run, "absent_server", unavailable=word, title=word)
        return msgspec.structs.replace(
            run, notes=(word,), environment={"fingerprint": word, "deep": {"x": [word]}}
        )

    evidence = MadeEvidence(only=OCTET_FAMILIES)
    page = html_page.render(worded(hostile), evidence)
    page.encode("utf-8")
    assert shape(page) == shape(html_page.render(worded("tame"), evidence))
    assert "62377963" not in page
    for control in "\x00\x1b\u2028\u2029\u202e":
        assert control not in page
    found = json.loads(read(page).scripts[0])
    assert found["notes"] == [hostile]
    board = scoreboard.scoreboard(worded(hostile))
    assert board.isascii()
    assert all(line.isprintable() for line in board.splitlines())


@hypothesis.given(st.text())
def test_the_json_block_holds_no_markup_and_gives_the_words_back(word: str) -> None:
    run = msgspec.structs.replace(small_run(), notes=(word,), servers=())
    drawn = str(html_page.embedded(run))
    assert not set(drawn) & set("<>&\u2028\u2029")
    assert json.loads(drawn)["notes"] == [word]


# --- the page -----------------------------------------------------------------------------------


def test_the_page_is_well_formed() -> None:
    for page in (small_page(), complete_page(), html_page.render(small_run(), None)):
        reader = read(page)
        assert reader.wrong == []
        assert reader.open == []
        assert len(set(reader.ids)) == len(reader.ids)
        assert page.startswith("<!doctype html>\n")


@pytest.mark.parametrize("page", [small_page, complete_page])
def test_links_inside_the_page_lead_somewhere(page: Callable[[], str]) -> None:
    reader = read(page())
    targets = {
        attributes["href"][1:]
        for _, attributes in reader.elements
        if attributes.get("href", "").startswith("#")
    }
    assert targets
    assert targets <= set(reader.ids)
    used = {attributes["href"][1:] for tag, attributes in reader.elements if tag == "use"}
    assert used <= set(reader.ids)
    labels = {attributes["for"] for tag, attributes in reader.elements if tag == "label"}
    assert labels <= set(reader.ids)


def test_the_page_loads_nothing() -> None:
    for tag, attributes in read(complete_page()).elements:
        for name in ("src", "srcset", "href", "action", "data", "poster", "xlink:href"):
            value = attributes.get(name, "")
            if tag == "a" and name == "href":
                assert re.match(r"#|https://www\.rfc-editor\.org/", value), value
            elif tag == "use" and value:
                assert re.fullmatch(r"#d[-a-z_]*", value), value
            elif value:
                assert value.startswith("data:image/png;base64,"), (tag, name, value[:60])
        assert not any(name.startswith("on") for name in attributes), tag
        assert "style" not in attributes, "the policy forbids style attributes"
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
    assert "@import" not in complete_page()
    assert "url(" not in complete_page()


def test_the_policy_allows_our_own_style_and_script_and_nothing_else() -> None:
    reader = read(small_page())
    policy = next(
        attributes["content"] for tag, attributes in reader.elements if "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", small_page(), re.DOTALL)
    assert style
    for name, text in (("style-src", style[1]), ("script-src", reader.scripts[1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy


def test_our_own_script_is_small() -> None:
    assert len(read(small_page()).scripts[1].encode()) <= 20_000


def test_ten_servers_with_all_evidence_stay_under_500_kb() -> None:
    assert len(large_page().encode()) < 400_000
    assert len(complete_page().encode()) < 500_000


class Failing(CompleteEvidence):
    """The same, and an answer of its own to every designed case."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        case = wanted.get("case")
        if case is None or wanted.get("delivery", "whole") != "whole":
            yield from super().exchanges(server, **wanted)
            return
        sent = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"
        received = OK + server.encode()
        yield Exchange(
            case, case, sent, received, Outcome.ANSWERED, End.OPEN, 1, 2, len(sent)
        )  # fmt: skip


def failing_suite(server: str, percent: int) -> SuiteResult:
    """All designed cases, of which a server fails so many, each server others than the next."""
    known = loading.load()
    cases = [f for f in known.families.values() if f.suite == "rfc" and not f.generated]
    answers = ("200; closed", "200, 200; the next request is answered", "silence", "404; closed")
    verdicts = {}
    for one in cases:
        number = zlib.crc32(f"{server}/{one.id}".encode())
        word = Word.FAIL if number % 100 < percent else Word.PASS
        actual = answers[number // 100 % 4] if word is Word.FAIL else "400; closed"
        verdicts[one.id] = Verdict(one.id, word, "R400C", actual, None, one.level)
    tallies = {id: family_tally.tally([verdict]) for id, verdict in verdicts.items()}
    found = requirement_verdicts.requirements(known.requirements, cases, tallies, {})
    return SuiteResult(
        score_percent=50.0,
        must=requirement_verdicts.must(found),
        cases=verdicts,
        requirements={id: word for id, (_, word, _) in found.items()},
        controls=Controls(80, 0),
    )


@pytest.mark.parametrize("percent", [2, 30])
def test_ten_servers_that_fail_all_over_stay_under_500_kb_with_evidence(percent: int) -> None:
    run = complete_run(only=OCTET_FAMILIES)
    for name in MANNERS:
        suites = {"rfc": failing_suite(name, percent)}
        run = with_server(run, name, compliance=Compliance(suites))
    page = html_page.render(run, Failing(only=OCTET_FAMILIES))
    assert len(page.encode()) < 500_000
    assert page.count('<pre class="again">') > 20
    assert ("are left out for lack of room" in page) == (percent == 30)
    assert read(page).wrong == []


def test_the_size_has_a_bound_where_no_two_neighbours_read_alike() -> None:
    noisy: Manner = lambda _family, octets: (BAD, OK, b"", None)[  # noqa: E731
        zlib.crc32(octets + octets[::-1]) % 4
    ]
    run = made_run(("reference",))
    page = html_page.render(run, MadeEvidence({"reference": noisy}))
    assert len(page.encode()) - len(html_page.render(run, None).encode()) < 180_000


def test_the_same_run_gives_the_same_bytes() -> None:
    again = html_page.render(made_run(FEW, only=OCTET_FAMILIES), MadeEvidence(only=OCTET_FAMILIES))
    assert again == small_page()
    # Something in every section, and pairs of bytes.
    run = complete_run(("go_net_http", "rust_hyper"))
    pages = [html_page.render(run, CompleteEvidence()) for _ in range(2)]
    assert pages[0] == pages[1]


def test_the_page_holds_the_run() -> None:
    found = json.loads(read(small_page()).scripts[0])
    run = msgspec.convert(found, Run)
    assert [server.name for server in run.servers] == [s.name for s in small_run().servers]
    held = run.servers[2].compliance.suites["seed"]
    suite = small_run().servers[2].compliance.suites["seed"]
    assert held.score_percent == pytest.approx(suite.score_percent, rel=1e-5)
    assert held.families == suite.families
    assert held.controls == suite.controls
    assert msgspec.convert(json.loads(read(complete_page()).scripts[0]), Run).paired
    assert run.servers[2].memory == small_run().servers[2].memory


def test_every_server_appears_in_page_and_scoreboard() -> None:
    text = " ".join(read(small_page()).text)
    board = scoreboard.scoreboard(small_run())
    for server in small_run().servers:
        assert server.title in text
        assert server.name in board


def test_why_a_server_is_not_there_is_said() -> None:
    run = with_server(small_run(), "go_net_http", died="exit code 139 after 3 s")
    for drawn in (html_page.render(run, None), scoreboard.scoreboard(run)):
        assert "zig not found; apt-get install zig" in drawn
        assert "exit code 139 after 3 s" in drawn


def test_a_missing_score_prints_its_reason_and_no_percentage() -> None:
    run = small_run()
    suite = run.servers[2].compliance.suites["seed"]
    reason = "not scored: 3 of 345 positive controls failed"
    verdict = Verdict("control_path_octet-2f", Word.FAIL, "2xx", "404 Not Found")
    changed = msgspec.structs.replace(
        suite, score_percent=None, reason=reason, controls=Controls(342, 3, (verdict,))
    )
    run = with_server(
        run,
        "go_net_http",
        compliance=msgspec.structs.replace(run.servers[2].compliance, suites={"seed": changed}),
    )
    page = html_page.render(run, None)
    row = re.search(r'<tr role="row" id="s2">.*?</tr>', page, re.DOTALL)
    assert row
    assert "no score" in row[0]
    assert reason in row[0]
    assert "detected</span>" not in row[0]
    assert "404 Not Found" in page
    assert reason in scoreboard.scoreboard(run)
    line = next(x for x in scoreboard.scoreboard(run).splitlines() if x.startswith("go_net_http"))
    assert "no score" in line
    assert "%" not in line


def test_the_control_stands_apart_and_has_no_rank() -> None:
    page = small_page()
    scores = page[page.index('<table class="scores"') :]
    assert scores.index("Calibration, never ranked") < scores.index('data-v="null"')
    control = re.search(r'<tr role="row" id="s1">.*?</tr>', page, re.DOTALL)
    assert control
    assert 'class="rank"' not in control[0]
    order = [row.state for row in overview.rows(small_run())]
    assert order == ["scored", "scored", "scored", "control", "absent"]


def test_differences_from_the_published_counts_are_listed() -> None:
    run = small_run()
    suite = run.servers[2].compliance.suites["seed"]
    difference = Difference("path_byte", 33, 35, ("path_byte-80", "path_byte-81"), 4)
    changed = msgspec.structs.replace(suite, published="differs", differences=(difference,))
    run = with_server(
        run,
        "go_net_http",
        compliance=msgspec.structs.replace(run.servers[2].compliance, suites={"seed": changed}),
    )
    text = " ".join(read(html_page.render(run, None)).text)
    assert "published 33 detected, here 35" in text
    assert "path_byte-80 path_byte-81" in text
    assert "as published" in " ".join(read(small_page()).text)


# --- figures ------------------------------------------------------------------------------------

_NOT_SERVER = [limit for limit in Bottleneck if limit is not Bottleneck.SERVER]


@pytest.mark.parametrize("limit", _NOT_SERVER)
def test_an_unranked_rate_is_never_a_plain_number(limit: Bottleneck) -> None:
    run = with_server(small_run(), "go_net_http", load=(load_result(300.0, bottleneck=limit),))
    page = html_page.render(run, None)
    drawn = read(page)
    plain = number_format.throughput(1e9 / 300, Bottleneck.SERVER, ranked=True).text
    assert plain == "3.33 M"
    row = re.search(r'<tr role="row" id="s2">.*?</tr>', page, re.DOTALL)
    assert row
    rate = re.search(r'<p class="rate"><b class="nobr">(.*?)</b>', row[0])
    assert rate
    line = next(
        line for line in scoreboard.scoreboard(run).splitlines() if line.startswith("go_net_http")
        and limit_word(limit) in line
    )  # fmt: skip
    if limit is Bottleneck.BROKEN:
        assert rate[1] == "not counted"
        assert "not counted" in line
        assert ">=" not in line
    else:
        assert rate[1] == "≥ 3.33 M"
        assert ">= 3.33 M" in line
    assert f"seen as {limit.value}" in " ".join(drawn.text) or limit is Bottleneck.CLIENT
    assert number_format.STAMPS[limit] in row[0]
    windows = page[page.index('<table class="windows">') :]
    for cell in re.findall(r"<td>([^<]*\d [MkG])</td>", windows):
        assert not cell.startswith("3."), "a window of an unranked sample as a plain number"


def limit_word(limit: Bottleneck) -> str:
    return number_format.STAMPS[limit].removesuffix("-bound")


def test_a_cost_without_interval_says_why_and_is_not_ranked() -> None:
    run = with_server(
        small_run(), "go_net_http", load=(load_result(300.0, rounds=2, reason="too few"),)
    )
    for drawn in (html_page.render(run, None), scoreboard.scoreboard(run)):
        assert "2 sound samples" in drawn
        assert "too few" in drawn


def test_no_cost_is_no_zero() -> None:
    load = msgspec.structs.replace(
        load_result(300.0),
        cpu_ns_per_request=Cost(None, None),
        requests_per_second=None,
        interval_95=None,
        samples=(),
        reason="died in the first window",
    )
    run = with_server(small_run(), "go_net_http", load=(load,), memory=None)
    page = html_page.render(run, None)
    assert "died in the first window" in page
    assert "no cost" in page
    board = scoreboard.scoreboard(run)
    assert "died in the first window" in board


@pytest.mark.parametrize(
    ("slope", "shown"), [(-105.8, "about 0"), (12.0, "about 0"), (64.0, "64.0"), (7239.0, "7,239")]
)
def test_a_slope_below_the_noise_is_no_figure(slope: float, shown: str) -> None:
    memory = msgspec.structs.replace(
        held(600), bytes_per_connection=BytesPerConnection(0.0, slope, 3800.0)
    )
    page = html_page.render(with_server(small_run(), "go_net_http", memory=memory), None)
    row = re.search(r'<tr role="row" id="s2">.*?</tr>', page, re.DOTALL)
    assert row
    assert f'">{shown}<small> B</small> <span class="unit">per connection' in row[0]


@pytest.mark.parametrize("limit", list(Bottleneck))
def test_a_stamp_is_explained_at_the_spot(limit: Bottleneck) -> None:
    run = with_server(small_run(), "go_net_http", load=(load_result(300.0, bottleneck=limit),))
    page = html_page.render(run, None)
    stamp = f'<span class="stamp b-{limit.value}" title="{html_page.STAMP_WORDS[limit]}">'
    for section in ("scores", "cost"):
        part = page[page.index(f'<section id="{section}"') :]
        part = part[: part.index("</section>")]
        assert part.count(stamp) >= 2, "at the figure, and in the legend"
        assert f"</span> {html_page.STAMP_WORDS[limit]}</span>" in part


def test_what_was_not_asked_of_http_is_said_where_speed_is_ranked() -> None:
    told = "MUSTs of <code>rfc</code> were not checked in this run"
    assert small_page().count(told) == 1 + 3, "under the principle, and at each ranked server"
    assert told not in complete_page()


def test_littles_law_stands_at_every_window() -> None:
    page = small_page()
    assert "N = 512 × depth 256 → 131,072 in flight" in page
    assert page.count("130,810 (99.8 %)") == len(FEW)


# --- the maps -----------------------------------------------------------------------------------


# --- the scoreboard -----------------------------------------------------------------------------


def test_an_interrupted_run_says_so() -> None:
    run = msgspec.structs.replace(small_run(), interrupted=True, finished=None)
    assert "interrupted: partial results" in html_page.render(run, None)
    assert "INTERRUPTED" in scoreboard.scoreboard(run)


def test_a_run_without_suites_or_without_load_is_drawn_all_the_same() -> None:
    bare = msgspec.structs.replace(
        small_run(),
        servers=tuple(
            msgspec.structs.replace(
                server, load=(), memory=None, compliance=type(server.compliance)()
            )
            for server in small_run().servers
        ),
    )
    reader = read(html_page.render(bare, None))
    assert reader.wrong == []
    assert "No load was part of this run." in " ".join(reader.text)
    assert scoreboard.scoreboard(bare)
    assert read(html_page.render(msgspec.structs.replace(bare, servers=()), None)).wrong == []


def test_what_was_asked_for_and_what_came_are_plain_words() -> None:
    page = complete_page()
    asked = re.findall(r"asked for: ([^<]*)", page)
    assert asked
    assert not [text for text in asked if re.search(r"\b(ACC|REJ|R400C?|EITHER)\b", text)]
    assert not re.search(r"\([0-9]{3} is not [A-Z]", page)
