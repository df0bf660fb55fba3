"""The page in a real browser: it does what it shows, with scripts and without, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from httpmark.harness import maps, report

from .browser import Browser, Page
from .made_run import OK, RULES, MadeEvidence, made_run, with_server

pytestmark = pytest.mark.needs("chromium")

NAMES = ("reference", "null", "go_net_http", "rust_hyper", "qhttpserver")
HOSTILE = (
    b"<script>window.hacked=1</script></pre><img src=x onerror=window.hacked=1>"
    b"</script><svg onload=window.hacked=1>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report.render(made_run(NAMES), MadeEvidence()), "utf-8")
    return file


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
    browser: Browser, drawn: Path, scripts: bool
) -> None:
    page = browser.open(drawn, scripts=scripts)
    asked = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:image/png")] == [drawn.as_uri()]
    assert troubles(page) == []


def test_hostile_octets_do_nothing(browser: Browser, tmp_path: Path) -> None:
    families = tuple(name for name in RULES if name.endswith("byte"))
    word = HOSTILE.decode()
    run = with_server(made_run(NAMES, only=families), "go_net_http", title=word, died=word)
    run = msgspec.structs.replace(run, notes=(word,), environment={"fingerprint": word})
    manners = {"go_net_http": lambda _family, _octets: OK[:-14] + b"\r\n" + HOSTILE}
    file = tmp_path / "hostile.html"
    file.write_text(report.render(run, MadeEvidence(manners, families)), "utf-8")  # type: ignore[arg-type]
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


def test_wire_logs_narrow_to_a_word(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look("document.querySelector('.filter').focus()")
    page.type("mute")
    visible = "[...document.querySelectorAll('details.server')].filter(d => !d.hidden)"
    assert page.look(f"{visible}.map(d => d.dataset.text)") == ["qhttpserver"]
    assert page.look(
        f"{visible}.flatMap(d => [...d.querySelectorAll('article')])"
        ".filter(a => !a.hidden).every(a => a.textContent.includes('mute'))"
    )
    page.look("document.querySelector('.filter').value = ''")
    page.look("document.querySelector('.filter').dispatchEvent(new Event('input'))")
    assert page.look(f"{visible}.length") == len(NAMES)


def test_a_cell_of_an_octet_map_says_what_it_is(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    page.look("document.querySelector('.p-path_byte figure[data-server=qhttpserver] .map').focus()")
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
        figure = ".p-path_pct_pair figure[data-server=qhttpserver]"
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
    log = "details.server[data-text=qhttpserver]"
    assert not shown(page, f"{log} article")
    page.click(f"{log} summary")
    assert shown(page, f"{log} article")
    text = page.look(f"document.querySelector('{log} article').innerText")
    assert "path_byte-" in text
    assert "| nc -q 2 127.0.0.1 18080" in text


def test_without_scripts_nothing_pretends_to_work(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn, scripts=False)
    assert page.look("document.querySelectorAll('button').length") == 0
    assert not shown(page, ".filter")
    assert not shown(page, ".readout")
    text = page.look("document.body.innerText")
    for server in made_run(NAMES, only=("path_byte",)).servers:
        assert server.title in text


# --- sizes, schemes, paper ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(
    browser: Browser, drawn: Path, width: int, scheme: str
) -> None:
    page = browser.open(drawn, width=width, scheme=scheme)
    page.look("document.querySelectorAll('details').forEach(d => d.open = true)")
    for family in maps.FAMILIES:
        page.look(f"document.getElementById('t-{family.id}').checked = true")
        assert page.look("document.documentElement.scrollWidth") <= width, family.id


def test_on_a_phone_every_figure_of_the_first_screen_is_within_it(
    browser: Browser, drawn: Path
) -> None:
    page = browser.open(drawn, width=390, height=844)
    outside = page.look(
        "[...document.querySelectorAll('.scores *')].filter(e => {"
        " const b = e.getBoundingClientRect();"
        " return b.width && (b.right > innerWidth + 1 || b.left < -1) }).map(e => e.outerHTML)"
    )
    assert [item for item in outside if 'class="unseen"' not in item] == []


def test_on_paper_all_families_are_there(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn, medium="print")
    for family in maps.FAMILIES:
        assert shown(page, f".p-{family.id}")
    assert not shown(page, "label[for=t-path_byte]")
    assert page.command("Page.printToPDF")["data"]


# --- accessibility ------------------------------------------------------------------------------


def test_everything_to_operate_or_to_see_has_a_name(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
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


def test_headings_go_down_one_step_at_a_time(browser: Browser, drawn: Path) -> None:
    page = browser.open(drawn)
    levels = page.look("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => +h.tagName[1])")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


_CONTRAST = """
(() => {
  const parse = (text) => {
    const context = document.createElement('canvas').getContext('2d');
    context.fillStyle = text; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
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
    const a = light(parse(colour)), b = light(ground(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const key = element.tagName + '.' + (element.getAttribute('class') || '');
    if (!seen.has(key) || seen.get(key) > ratio) seen.set(key, ratio);
  }
  return [...seen].filter(([, ratio]) => ratio < 4.5);
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, drawn: Path, scheme: str) -> None:
    page = browser.open(drawn, scheme=scheme)
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
