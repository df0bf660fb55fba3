"""The page in a real browser: it does what it shows, with scripts and without, and nothing else."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness.report import byte_maps, html_page
from httpmark.harness.tests.shared import rogue
from httpmark.harness.tests.shared.browser import Browser, Page
from httpmark.harness.tests.shared.command_process import run as command
from httpmark.harness.tests.shared.made_run import (
    OCTET_FAMILIES,
    OK,
    RULES,
    CompleteEvidence,
    MadeEvidence,
    complete_run,
    load_result,
    made_run,
    with_server,
)
from httpmark.harness.tests.shared.pytest_rules import starts_process

pytestmark = pytest.mark.needs("chromium")

NAMES = ("reference", "null", "go_net_http", "rust_hyper", "qhttpserver")
HOSTILE = (
    b"<script>window.hacked=1</script></pre><img src=x onerror=window.hacked=1>"
    b"</script><svg onload=window.hacked=1>"
)


@pytest.fixture(scope="module")
@starts_process
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(html_page.render(made_run(NAMES), MadeEvidence()), "utf-8")
    return file


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with something in every section; what its servers answer is hostile."""
    file = tmp_path_factory.mktemp("complete") / "report.html"
    only = (*OCTET_FAMILIES, "path_pct_pair")
    page = html_page.render(complete_run(NAMES, only=only), CompleteEvidence(only=only))
    file.write_text(page, "utf-8")
    return file


@pytest.fixture(params=["drawn", "complete"])
def either(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def rows(page: Page, table: str = ".scores") -> list[str]:
    """The servers of a table's first body, from top to bottom."""
    found: list[str] = page.look(
        f"[...document.querySelector('{table}').tBodies[0].rows]"
        ".map(r => r.cells[0].firstElementChild.textContent.trim())"
    )
    return found


def shown(page: Page, selector: str) -> bool:
    """Whether an element is there to be seen; what a closed ``details`` holds is not."""
    return bool(
        page.look(
            f"!!document.querySelector('{selector}')?.checkVisibility({{visibilityProperty: true,"
            " contentVisibilityAuto: true})"
        )
    )


def troubles(page: Page) -> list[Any]:
    return [
        *page.events("Runtime.exceptionThrown"),
        *page.events("Page.javascriptDialogOpening"),
        *(
            event
            for event in page.events("Log.entryAdded")
            if event["entry"]["level"] in ("error", "warning")
        ),
    ]


# --- it loads nothing and breaks nothing -------------------------------------------------------


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_asks_for_itself_and_nothing_more(
    browser: Browser, either: Path, scripts: bool
) -> None:
    page = browser.open(either, scripts=scripts)
    asked = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:image/png")] == [either.as_uri()]
    assert troubles(page) == []


def test_hostile_bytes_do_nothing(browser: Browser, tmp_path: Path) -> None:
    families = tuple(name for name in RULES if name.endswith("byte"))
    word = HOSTILE.decode()
    run = with_server(made_run(NAMES, only=families), "go_net_http", title=word, died=word)
    run = msgspec.structs.replace(run, notes=(word,), environment={"fingerprint": word})
    manners = {"go_net_http": lambda _family, _octets: OK[:-14] + b"\r\n" + HOSTILE}
    file = tmp_path / "hostile.html"
    file.write_text(html_page.render(run, MadeEvidence(manners, families)), "utf-8")  # type: ignore[arg-type]
    page = browser.open(file)
    page.look("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.look("window.hacked") is None
    assert troubles(page) == []
    assert "window.hacked=1" in page.look("document.querySelector('#wire').innerText")


def test_the_policy_is_obeyed(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked=1';"
        " document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png';"
        " document.body.append(i); })()"
    )
    assert page.look("window.hacked") is None
    assert len(troubles(page)) >= 2


# --- sorting ------------------------------------------------------------------------------------


def test_a_table_sorts_by_the_mouse(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    by_score = rows(page)
    assert by_score == ["httpmark reference", "Rust hyper", "Go net/http", "Qt QHttpServer"]
    button = ".scores thead th:nth-child(3) button"
    page.click(button)
    assert rows(page) == ["httpmark reference", "Rust hyper", "Go net/http", "Qt QHttpServer"]
    page.click(button)
    assert rows(page) == ["Qt QHttpServer", "Go net/http", "Rust hyper", "httpmark reference"]
    heading = "document.querySelector('.scores thead th:nth-child(3)')"
    assert page.look(f"{heading}.getAttribute('aria-sort')") == "descending"
    page.click(".scores thead th:nth-child(2) button")
    assert rows(page) == by_score, "a score is sorted best first"
    assert page.look(f"{heading}.getAttribute('aria-sort')") is None


def test_a_table_sorts_by_the_keyboard(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look("document.querySelector('.scores thead th:nth-child(1) button').focus()")
    page.key("Enter")
    assert rows(page) == sorted(rows(page), key=str.lower)
    page.key(" ")
    assert rows(page) == sorted(rows(page), key=str.lower, reverse=True)
    page.key("Tab")
    assert page.look("document.activeElement.parentElement.cellIndex") == 1


def test_sorting_never_moves_the_control_among_the_ranked(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    for column in (1, 3, 3, 5):
        page.click(f".scores thead th:nth-child({column}) button")
        assert "null" not in rows(page)
        assert len(rows(page)) == 4


def test_counts_sort_as_numbers(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.click("#families details summary")
    page.click(".counts thead th:nth-child(4) button")
    found = page.look(
        "[...document.querySelectorAll('.counts tbody tr')].map(r => r.cells[3].textContent)"
    )
    numbers = [int(text.replace(",", "")) for text in found]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 61692


# --- filtering, maps, logs ----------------------------------------------------------------------


def test_wire_logs_narrow_to_words(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look("document.querySelector('#wire .filter').focus()")
    page.type("mute qhttp")
    visible = "[...document.querySelectorAll('details.taken')].filter(d => !d.hidden)"
    assert page.look(f"{visible}.length") >= 2
    articles = f"{visible}.flatMap(d => [...d.querySelectorAll('article')]).filter(a => !a.hidden)"
    assert page.look(f"{articles}.every(a => a.textContent.includes('mute'))")
    assert page.look(f"{articles}.every(a => a.textContent.includes('qhttpserver'))")
    clear(page, "#wire .filter")
    assert page.look(f"{visible}.length") == 6


def clear(page: Page, field: str) -> None:
    page.look(f"document.querySelector('{field}').value = ''")
    page.look(f"document.querySelector('{field}').dispatchEvent(new Event('input'))")


def test_a_cell_of_a_byte_map_says_what_it_is(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look(
        "document.querySelector('.p-path_byte figure[data-server~=qhttpserver] .map').focus()"
    )
    for _ in range(10):
        page.key("ArrowRight")
    readout = "document.querySelector('.readout')"
    assert page.look(f"{readout}.textContent") == "Qt QHttpServer: 0x0A LF mute"
    for _ in range(2):
        page.key("ArrowDown")
    assert page.look(f"{readout}.textContent") == "Qt QHttpServer: 0x2A ‘*’ not sent"


def test_a_pixel_of_a_pair_map_says_what_it_is_in_light_and_dark(
    browser: Browser, drawn: Path
) -> None:
    for scheme in ("light", "dark"):
        page = browser.open(drawn, scheme=scheme)
        page.click("label[for=t-path_pct_pair]")
        figure = ".p-path_pct_pair figure[data-server~=qhttpserver]"
        page.look(f"document.querySelector('{figure} [data-pairs]').focus()")
        for _ in range(10):
            page.key("ArrowDown")
        readout = page.look("document.querySelector('.readout').textContent")
        assert readout == "Qt QHttpServer: % 0x0A LF 0x00 NUL mute", scheme
        page.key("ArrowDown")
        readout = page.look("document.querySelector('.readout').textContent")
        assert readout == "Qt QHttpServer: % 0x0B 0x00 NUL accepted", scheme


@pytest.mark.parametrize("scripts", [True, False])
def test_families_of_maps_are_chosen_with_scripts_and_without(
    browser: Browser, drawn: Path, scripts: bool
) -> None:
    page = browser.open(drawn, scripts=scripts)
    assert shown(page, ".p-path_byte")
    assert not shown(page, ".p-query_pct_pair")
    page.click("label[for=t-query_pct_pair]")
    assert not shown(page, ".p-path_byte")
    assert shown(page, ".p-query_pct_pair img")
    page.key("ArrowLeft")
    assert shown(page, ".p-path_pct_pair"), "radio buttons follow the arrow keys"


@pytest.mark.parametrize("scripts", [True, False])
def test_a_case_opens_with_scripts_and_without(
    browser: Browser, drawn: Path, scripts: bool
) -> None:
    page = browser.open(drawn, scripts=scripts)
    log = "details.taken"
    assert not shown(page, f"{log} article")
    page.click(f"{log} summary")
    assert shown(page, f"{log} article")
    text = page.look(f"document.querySelector('{log} article').innerText")
    assert "path_byte-" in text
    assert "qhttpserver" in text
    assert "| timeout 2 nc 127.0.0.1 18080" in text


def test_without_scripts_nothing_pretends_to_work(browser: Browser, either: Path) -> None:
    page = browser.open(either, scripts=False)
    assert page.look("document.querySelectorAll('button').length") == 0
    assert not shown(page, ".filter")
    assert not shown(page, ".readout")
    text = page.look("document.body.innerText")
    for server in made_run(NAMES, only=("path_byte",)).servers:
        assert server.title in text


# --- requirements, deliveries, drawings ---------------------------------------------------------


def matrix_column(page: Page, column: int) -> list[list[str]]:
    """What stands in a column of the requirements, section by section, as far as it is shown."""
    found: list[list[str]] = page.look(
        "[...document.querySelector('.matrix').tBodies].map(b => [...b.rows]"
        f".filter(r => !r.hidden && !r.matches('.group')).map(r => r.cells[{column}].textContent))"
    )
    return found


def test_requirements_sort_within_their_document_worst_first(
    browser: Browser, complete: Path
) -> None:
    page = browser.open(complete)
    column = page.look(
        "[...document.querySelectorAll('.matrix thead th')]"
        ".findIndex(h => h.textContent.startsWith('go_net_http'))"
    )
    before = matrix_column(page, column)
    assert {word for section in before for word in section} == {"fail", "pass"}
    page.click(f".matrix thead th:nth-child({column + 1}) button")
    order = ["fail", "unstable", "void", "warn", "pass", "n/a", "not fired"]
    for was, section in zip(before, matrix_column(page, column), strict=True):
        assert section == sorted(was, key=order.index)
    page.click(".matrix thead th:nth-child(1) button")
    for section in matrix_column(page, 0):
        assert section == sorted(section)
    firsts = "[...document.querySelector('.matrix').tBodies].map(b => b.rows[0].className)"
    assert set(page.look(firsts)) == {"group"}


def test_requirements_narrow_to_words(browser: Browser, complete: Path) -> None:
    page = browser.open(complete)
    every = [title for section in matrix_column(page, 0) for title in section]
    page.look("document.querySelector('#requirements .filter').focus()")
    page.type("must content-length")
    some = [title for section in matrix_column(page, 0) for title in section]
    assert some
    assert len(some) < len(every)
    words = "[...document.querySelectorAll('details.req')].filter(d => !d.hidden)"
    texts = page.look(f"{words}.map(d => d.textContent.toLowerCase())")
    assert texts
    assert all("content-length" in text for text in texts)
    page.type(" nothing-has-this-word")
    assert matrix_column(page, 0) == [[] for _ in matrix_column(page, 0)]
    assert not shown(page, ".matrix .group")
    clear(page, "#requirements .filter")
    assert [title for section in matrix_column(page, 0) for title in section] == every


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_requirement_leads_to_its_cases_and_their_wire_logs(
    browser: Browser, complete: Path, width: int, scripts: bool
) -> None:
    page = browser.open(complete, width=width, scripts=scripts)
    assert not shown(page, "details.req article")
    target = page.look("document.querySelector('.matrix tbody a').hash.slice(1)")
    page.click(".matrix tbody a")
    opened = f"details.req:has(#{target})"
    assert page.look(f"document.querySelector('{opened}').open"), "a link opens what it leads to"
    text = page.look("document.querySelector('details.req[open]').innerText")
    assert "go_net_http" in text
    assert "| timeout 2 nc " in text or "Shown under another requirement" in text
    page.look("document.querySelectorAll('details.req').forEach(d => d.open = true)")
    logs = page.look("[...document.querySelectorAll('.req .log')].map(l => l.innerText).join()")
    assert "Content-Length: +5" in logs
    assert "<script>window.hacked=1</script>" in logs
    assert page.look("window.hacked") is None
    assert troubles(page) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_a_delivery_that_disagrees_shows_both_answers(
    browser: Browser, complete: Path, scripts: bool
) -> None:
    page = browser.open(complete, scripts=scripts)
    table = page.look("document.querySelector('#deliveries table').innerText")
    for name in NAMES:
        assert name in table
    assert not shown(page, "details.cut article")
    page.click("details.cut summary")
    assert shown(page, "details.cut article")
    text = page.look("document.querySelector('details.cut').innerText")
    assert "400 Bad Request" in text
    assert "<img src=x onerror=window.hacked=1>" in text
    assert page.look("window.hacked") is None


_ENDS = """
[...document.querySelectorAll('.plot[role=img]')].map((plot) => {
  const frame = plot.getBoundingClientRect();
  const box = (e) => { const b = e.getBoundingClientRect();
    return [b.left - frame.left, b.top - frame.top, b.right - frame.left, b.bottom - frame.top]; };
  return { name: plot.getAttribute('aria-label'), width: frame.width, height: frame.height,
    lines: [...plot.querySelectorAll('polyline')].map(box),
    numbers: [...plot.querySelectorAll('text[class^=l]')].map(box) };
})
"""


@pytest.mark.parametrize("width", [390, 1280])
def test_lines_and_their_numbers_are_within_the_drawing_and_apart(
    browser: Browser, complete: Path, width: int
) -> None:
    page = browser.open(complete, width=width)
    plots = page.look(_ENDS)
    assert len(plots) == 2
    for plot in plots:
        assert plot["name"]
        assert len(plot["lines"]) == len(plot["numbers"]) == len(NAMES)
        for left, top, right, bottom in plot["lines"]:
            assert -2 <= left < right <= plot["width"]
            assert -2 <= top <= bottom <= plot["height"] + 2
        for _, _, right, _ in plot["numbers"]:
            assert right <= plot["width"] + 2
        tops = sorted((top, bottom) for _, top, _, bottom in plot["numbers"])
        assert all(b[0] >= a[0] + 10 for a, b in itertools.pairwise(tops))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scripts", [True, False])
def test_every_drawing_stands_beside_its_figures(
    browser: Browser, complete: Path, width: int, scripts: bool
) -> None:
    page = browser.open(complete, width=width, scripts=scripts)
    for section in ("scores", "requirements", "agreement", "deliveries", "ratios", "latency"):
        assert shown(page, f"#{section}"), section
    ratios = page.look("document.querySelector('#ratios').innerText")
    assert "1.20×" in ratios
    assert "too few pairs" in ratios
    latency = page.look("document.querySelector('#latency table').innerText")
    memory = page.look("document.querySelector('#memory').innerText")
    titles = page.look("[...document.querySelectorAll('.scores .name')].map(n => n.textContent)")
    assert len(titles) == len(NAMES)
    for title in titles:
        assert title in latency
        assert title in memory
    assert "940 µs" in latency
    assert "1,500" in memory


def test_a_byte_map_of_the_rfc_suite_says_what_its_cells_are(
    browser: Browser, complete: Path
) -> None:
    page = browser.open(complete)
    page.click("label[for=t-path_octet_last]")
    assert shown(page, ".p-path_octet_last .map")
    figures = (
        "[...document.querySelectorAll('.p-path_octet_last figure')].map(f => f.dataset.server)"
    )
    assert page.look(figures) == ["reference", "go_net_http rust_hyper qhttpserver", "null"]
    page.look("document.querySelector('.p-path_octet_last figure .map').focus()")
    readout = "document.querySelector('.readout').textContent"
    assert page.look(readout) == "httpmark reference: 0x00 NUL rejected"
    for _ in range(4):
        page.key("ArrowDown")
    page.key("ArrowRight")
    assert page.look(readout) == "httpmark reference: 0x41 ‘A’ accepted"


# --- sizes, schemes, paper ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(
    browser: Browser, either: Path, width: int, scheme: str
) -> None:
    page = browser.open(either, width=width, scheme=scheme)
    page.look("document.querySelectorAll('details').forEach(d => d.open = true)")
    tabs = page.look("[...document.querySelectorAll('.tabs > input')].map(i => i.id)")
    assert tabs
    for tab in tabs:
        page.look(f"document.getElementById('{tab}').checked = true")
        assert page.look("document.documentElement.scrollWidth") <= width, tab


def test_labels_of_one_axis_keep_off_those_of_the_next(browser: Browser, tmp_path: Path) -> None:
    run = made_run(NAMES, only=OCTET_FAMILIES[:1])
    slow = (load_result(34.6 * 1300), load_result(34.6 * 2000, profile="keepalive"))
    file = tmp_path / "report.html"
    file.write_text(html_page.render(with_server(run, "qhttpserver", load=slow), None), "utf-8")
    for width in (900, 1200, 1280):
        page = browser.open(file, width=width)
        boxes = page.look(
            "[...document.querySelectorAll('.scores thead .scale text')].map(t => {"
            " const b = t.getBoundingClientRect(); return [b.left, b.right] })"
        )
        labels = page.look(
            "[...document.querySelectorAll('.scores thead .scale text')].map(t => t.textContent)"
        )
        assert "1,000×" in labels
        for (_, right), (left, _) in itertools.pairwise(boxes):
            assert right + 4 < left, width


def test_on_a_phone_every_figure_of_the_first_screen_is_within_it(
    browser: Browser, either: Path
) -> None:
    page = browser.open(either, width=390, height=844)
    outside = page.look(
        "[...document.querySelectorAll('.scores *')].filter(e => {"
        " const b = e.getBoundingClientRect();"
        " return b.width && (b.right > innerWidth + 1 || b.left < -1) }).map(e => e.outerHTML)"
    )
    assert [item for item in outside if 'class="unseen"' not in item] == []


A4_PX = 703  # 210 mm less the margins, at 96 dpi


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_and_holds_the_page_as_a_desk_does(
    browser: Browser, complete: Path, scheme: str
) -> None:
    page = browser.open(complete, medium="print", width=A4_PX, scheme=scheme)
    style = "getComputedStyle(document.documentElement)"
    assert page.look(f"{style}.getPropertyValue('--paper')") == "#fff"
    assert page.look(f"{style}.getPropertyValue('--rejected')") == f"#{byte_maps.LIGHT[1]}"
    assert page.look("getComputedStyle(document.body).color") == "rgb(29, 28, 26)"
    assert shown(page, ".scores thead"), "no layout of a phone"
    outside = page.look(
        "[...document.querySelectorAll('.scores *, .matrix *, .forest *')].filter(e =>"
        f" e.getBoundingClientRect().right > {A4_PX} + 1).map(e => e.outerHTML)"
    )
    assert [item for item in outside if 'class="unseen"' not in item] == []
    picture = page.look("document.querySelector('[data-pairs] img').currentSrc")
    assert picture == page.look("document.querySelector('[data-pairs] img').src"), "the light one"


def test_on_paper_nothing_is_folded_away(browser: Browser, complete: Path) -> None:
    page = browser.open(complete, medium="print", width=A4_PX)
    assert page.look("document.querySelectorAll('details[open]').length") == 0
    for inside in ("details.req article", "details.cut article", "details .windows"):
        assert shown(page, inside), inside
    page = browser.open(complete)
    assert not shown(page, "details.req article")


def test_on_paper_all_families_are_there(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn, medium="print")
    for family in byte_maps.FAMILIES:
        assert shown(page, f".p-{family.id}")
    assert not shown(page, "label[for=t-path_byte]")
    assert page.command("Page.printToPDF")["data"]


# --- a run that was fired -----------------------------------------------------------------------

FIRED = (
    "get-plain", "host-missing", "content-length-plus-sign", "content-length-octal-prefix",
    "leading-empty-line",
)  # fmt: skip


@pytest.fixture(scope="module")
@starts_process
def fired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The page that a check of a server with a bug leaves; the server goes on."""
    folder = tmp_path_factory.mktemp("fired")
    server = subprocess.Popen(
        [sys.executable, rogue.__file__, "--bug", "B34"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = re.findall(r"\d+", server.stdout.readline())[-1]
        cases = [word for case in FIRED for word in ("--case", case)]
        code, out, errors = command(
            "check", f"http://127.0.0.1:{port}/", "--suite", "rfc", *cases, "--out", "r", cwd=folder
        )
        assert code == 1, out + errors
        yield folder / "r" / "report.html"
    finally:
        server.kill()
        server.communicate()


@pytest.mark.process
@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_of_a_real_check_leads_to_the_bytes_that_failed(
    browser: Browser, fired: Path, scripts: bool
) -> None:
    page = browser.open(fired, scripts=scripts)
    assert troubles(page) == []
    failed = "document.querySelector('.matrix td.f').parentElement"
    target = page.look(f"{failed}.querySelector('a').hash.slice(1)")
    opened = f"details.req:has(#{target})"
    assert not shown(page, f"{opened} article")
    page.click(f".matrix a[href='#{target}']")
    assert shown(page, f"{opened} article"), "by a click"
    text = page.look(f"document.querySelector('{opened}').innerText")
    assert "content-length-plus-sign" in text
    assert "Content-Length: +" in text
    assert "HTTP/1.1 200 OK" in text
    line = page.look(f"document.querySelector('{opened} pre.again').textContent")
    again = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=30, check=False
    )
    assert "HTTP/1.1 200 OK" in again.stdout, f"the line to be copied draws the same: {line}"
    page.click(f"{opened} summary")
    assert not shown(page, f"{opened} article")
    linked = browser.open(fired, scripts=scripts, fragment=target)
    assert shown(linked, f"{opened} article"), "by a link from elsewhere"


def test_the_page_of_a_real_check_sorts_and_filters(browser: Browser, fired: Path) -> None:
    page = browser.open(fired)
    page.click(".matrix thead th:nth-child(3) button")
    order = ["fail", "unstable", "void", "warn", "contested", "pass", "n/a", "not fired"]
    sections = matrix_column(page, 2)
    assert "fail" in [word for section in sections for word in section]
    for section in sections:
        assert section == sorted(section, key=order.index)
    page.look("document.querySelector('#requirements .filter').focus()")
    page.type("fail plus-sign")
    words = [word for section in matrix_column(page, 2) for word in section]
    assert words
    assert set(words) == {"fail"}
    clear(page, "#requirements .filter")
    assert matrix_column(page, 2) == sections
    assert troubles(page) == []


# --- accessibility ------------------------------------------------------------------------------


def test_everything_to_operate_or_to_see_has_a_name(browser: Browser, either: Path) -> None:
    page = browser.open(either)
    page.look("document.querySelectorAll('details').forEach(d => d.open = true)")
    nodes = page.command("Accessibility.getFullAXTree")["nodes"]
    wanted = {
        "button", "link", "textbox", "searchbox", "radio", "image", "img", "region", "table",
        "columnheader", "rowheader", "heading", "DisclosureTriangle",
    }  # fmt: skip
    seen = set()
    for node in nodes:
        role = node.get("role", {}).get("value")
        if role in wanted and not node.get("ignored"):
            seen.add(role)
            name = node.get("name", {}).get("value", "")
            assert name.strip() or role == "table", (role, node)
    assert {"button", "link", "searchbox", "radio", "region", "heading"} <= seen
    assert seen & {"image", "img"}


def test_headings_go_down_one_step_at_a_time(browser: Browser, either: Path) -> None:
    page = browser.open(either)
    levels = page.look("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => +h.tagName[1])")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


_CONTRAST = """
(() => {
  // A canvas reads a colour slowly, and the page has few of them: each is read once.
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const read = new Map();
  const parse = (text) => {
    if (!read.has(text)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = text; context.fillRect(0, 0, 1, 1);
      read.set(text, [...context.getImageData(0, 0, 1, 1).data]);
    }
    return read.get(text);
  };
  const light = ([r, g, b]) => [r, g, b].map((n) => n / 255)
    .map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4)
    .reduce((sum, n, at) => sum + n * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const seen = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
    if (element.closest('script,style,.unseen,.quiet,.skip')) continue;
    const style = getComputedStyle(element);
    const colour = element.closest('svg') ? style.fill : style.color;
    // An initial stands on the piece of a bar that is drawn before it.
    const under = element.matches('.initial')
      ? parse(getComputedStyle(element.previousElementSibling).fill) : ground(element);
    const a = light(parse(colour)), b = light(under);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const key = element.tagName + '.' + (element.getAttribute('class') || '');
    if (!seen.has(key) || seen.get(key) > ratio) seen.set(key, ratio);
  }
  return [...seen].filter(([, ratio]) => ratio < 4.5);
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, either: Path, scheme: str) -> None:
    page = browser.open(either, scheme=scheme)
    page.look("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.look(_CONTRAST) == []


def test_what_can_be_operated_is_reached_by_tab_and_shows_its_focus(
    browser: Browser, drawn: Path
) -> None:
    page = browser.open(drawn)
    reached = set()
    for _ in range(60):
        page.key("Tab")
        name, outlined = page.look(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            " const label = e.labels && e.labels[0] ? getComputedStyle(e.labels[0]) : s;"
            " return [e.tagName + '.' + (e.getAttribute('class') || e.id || ''),"
            " s.outlineStyle !== 'none' || label.outlineStyle !== 'none'] })()"
        )
        reached.add(name)
        assert outlined or name.startswith("BODY"), name
    assert "A.skip" in reached
    assert any(name.startswith("BUTTON") for name in reached)
    assert any(name.startswith("DIV.scroll") for name in reached)
    assert "INPUT.t-path_byte" in reached
    assert "svg.map" in reached
