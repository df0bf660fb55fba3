"""A run to what people look at: one offline HTML page.

Nothing is decided here. Scores, ranks and bottlenecks are read from the run; this module lays them
out, and where a figure is not fit to stand alone it prints the reason instead. Bytes that came
from a server are hostile: they reach the page only through ``http.printable``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from httpmark.harness.catalogue import expectation_words, loading
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.gate import crashes, verdict_sentences
from httpmark.harness.http import printable
from httpmark.harness.judging.exchange_reader import ExchangeReader
from httpmark.harness.model.load import Bottleneck
from httpmark.harness.model.run import Run
from httpmark.harness.model.verdicts import Word
from httpmark.harness.report import (
    agreement,
    byte_maps,
    check_page,
    delivery_table,
    forwarding_tables,
    matrix,
    number_format,
    overview,
    plots,
)

TEMPLATES = Path(__file__).resolve().parents[2] / "reports"

PRINCIPLE = (
    "Speed counts only where the server follows the RFCs, the server and not the load generator "
    "was the bottleneck, and the numbers add up (Little’s law). Where one of these fails, this "
    "page says so instead of ranking the figure."
)
CRASHES_SHOWN = 3  # of one entry of the catalogue
WINDOWS_MAX = 60  # of load, each with a line of its own
PAGE_BYTES_MAX = 490_000  # as far as leaving out wire logs and cases can see to it
CHECK_BYTES_MAX = 20_000_000  # of wire logs in the page of a check, which leaves nothing out
_LOGS_BYTES_MIN = 30_000  # rather than these, cases that do not bind are left out
SLOPE_BYTES_MIN = 64  # per connection: below a cache line it is none
_STRINGS_MAX = 300  # of one environment value, in characters
# What stays in result.json: it is bulky, or stands in a table of the page.
_BULKY = frozenset(
    {"histogram", "cases", "generated", "answers", "requirements", "samples", "forwarding"}
)


def flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and printable values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        if any(isinstance(inner, (dict, list, tuple)) for inner in value):
            for at, inner in enumerate(value):
                yield from flat(inner, f"{name}.{at}")
        else:
            yield name, _cut(" ".join(_scalar(inner) for inner in value) or "none")
    else:
        yield name, _cut(_scalar(value))


def _scalar(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _STRINGS_MAX else text[:_STRINGS_MAX] + " …"


def embedded(run: Run) -> Markup:
    """The run as JSON for a script block: nothing in it can end the block.

    Histograms, samples and the verdicts on single cases stay in result.json: they are bulky.
    Figures have six digits; what is as it is by default is left out.
    """

    def slim(value: object) -> object:
        if isinstance(value, msgspec.Struct):
            return {
                field.name: slim(inner)
                for field in msgspec.structs.fields(value)
                if field.name not in _BULKY
                and (inner := getattr(value, field.name)) != field.default
            }
        if isinstance(value, dict):
            return {key: slim(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [slim(inner) for inner in value]
        return float(f"{value:.6g}") if isinstance(value, float) else value

    text = json.dumps(slim(run), ensure_ascii=True, separators=(",", ":"))
    return printable.page_json(text)


def _per_connection(slope: float) -> str:
    """Bytes per connection as a large figure; a slope below the noise, or downwards, is about 0."""
    return "about 0" if slope < SLOPE_BYTES_MIN else number_format.nanoseconds(slope)


# --- the page -----------------------------------------------------------------------------------


def _finalize(value: Any) -> Any:
    return (
        printable.page_text(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters.update(
        count=number_format.count,
        percent=number_format.percent,
        ns=number_format.nanoseconds,
        times=number_format.times,
        memory=number_format.memory,
        us=number_format.microseconds,
        share=number_format.share,
        per_connection=_per_connection,
        parts=overview.parts,
        wanted=expectation_words.wanted,
        came=expectation_words.came,
        came_apart=expectation_words.came_apart,
        counted=verdict_sentences.counted,
        page_bytes=lambda value, limit: printable.page_bytes(value, limit=limit),
    )
    return environment


def _digest(text: str) -> str:
    """What the page's policy allows a style or script of ours by."""
    found = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def _style(tabs: Sequence[str]) -> str:
    """The style sheet, and the rules by which a tab shows its panel without a script.

    :param tabs: what tabs and panels are named by: slugs of the catalogue.
    """
    rule = ",".join(f"#t-{tab}:checked~.p-{tab}" for tab in tabs)
    text = (TEMPLATES / "style.css").read_text(encoding="utf-8").strip()
    return f"{text}\n{rule}{{display:block}}" if tabs else text


# One line for each stamp, at the spot.
STAMP_WORDS = {
    Bottleneck.SERVER: "the server’s CPUs were busy, and the generator had time left",
    Bottleneck.CLIENT: "the generator was busy: the server may be faster",
    Bottleneck.NETWORK: "the network, or packets lost on it, was the bottleneck",
    Bottleneck.NONE: "both ends were idle at times: too few requests were in flight",
    Bottleneck.STARVED: "other programs took CPU time that the sample needed",
    Bottleneck.BROKEN: "there were errors: the sample does not count",
    Bottleneck.UNKNOWN: "the bottleneck could not be found, or the numbers do not add up",
}

MARKS = {
    Word.PASS: "✓",
    Word.WARN: "!",
    Word.FAIL: "✗",
    Word.UNSTABLE: "~",
    Word.VOID: "?",
    Word.NOT_APPLICABLE: "–",
}


def _shown(
    places: Iterable[byte_maps.Place], seen: Collection[byte_maps.Seen]
) -> list[byte_maps.Place]:
    """The places that were asked; where two suites ask the same one, that which asked more."""
    best: dict[str, tuple[int, byte_maps.Place]] = {}
    for place in places:
        filled = (found.cells[place.key] for found in seen if place.key in found.cells)
        asked = sum(len(cells) - cells.count(0) for cells in filled)
        if asked > best.get(place.where, (0, place))[0]:
            best[place.where] = (asked, place)
    kept = {place.key for _, place in best.values()}
    return [place for place in places if place.key in kept]


def _stamped(run: Run) -> list[Bottleneck]:
    """The limits that the loads of a run ran into, in the order of the enumeration."""
    found = {load.bottleneck for server in run.servers for load in server.load}
    return [limit for limit in Bottleneck if limit in found]


def render(run: Run, evidence: ExchangeReader | None) -> str:
    """The HTML report of a run, one file without a network.

    :param evidence: the exchanges, for maps and wire logs; without it those sections say so.
    """
    known = loading.load()
    # Everywhere the servers stand in the order of the first screen.
    ordered = msgspec.structs.replace(run, servers=tuple(row.server for row in overview.rows(run)))
    check = check_page.check_page(ordered, known, evidence)
    made = matrix.matrix(ordered, known, whole=check is not None)
    template = _templates().get_template("page.html")
    page = functools.partial(
        template.render,
        **_of_run(run),
        check=check,
        **_of_requirements(made),
        **_of_exchanges(ordered, known, evidence),
        **_of_load(ordered),
    )
    return _filled(page, made, run, evidence) + "\n"


def _of_run(run: Run) -> dict[str, Any]:
    """What the head, the first screen and the last sections show."""
    rows, survey = overview.rows(run), forwarding_tables.of_run(run)
    return {
        "run": run,
        "rows": rows,
        "columns": overview.columns(run),
        "requests_most": max((row.suite.requests for row in rows if row.suite), default=0),
        "families": byte_maps.FAMILIES,
        "readings": byte_maps.READINGS,
        "principle": PRINCIPLE,
        "suite_name": overview.PUBLISHED,
        "rfc": overview.REQUIREMENTS,
        "environment": tuple(flat(run.environment)),
        "data": embedded(run),
        "survey": survey,
        "front_ends": forwarding_tables.usable(survey) if survey is not None else [],
        "messages": forwarding_tables.messages(survey) if survey is not None else [],
        "not_front_ends": forwarding_tables.not_asked(run),
        "crashed": tuple(server for server in run.servers if server.crashes),
        "crash_entries": crashes.by_entry,
        "crash_told": crashes.told,
        "crash_named": crashes.named,
        "crashes_shown": CRASHES_SHOWN,
    }


def _of_requirements(made: matrix.Matrix | None) -> dict[str, Any]:
    """The share of requirements that each server meets, for the first screen."""
    names = made.servers if made is not None else ()
    return {
        "kept": {name: (made.scores[at], made.must[at]) for at, name in enumerate(names) if made},
        "marks": MARKS,
    }


def _of_exchanges(run: Run, known: Catalogue, evidence: ExchangeReader | None) -> dict[str, Any]:
    """Maps, agreement, wire logs and deliveries; and the style and policy, which name the maps."""
    places = byte_maps.places(known)
    seen = {}
    if evidence is not None:
        for server in run.servers:
            if not server.unavailable:
                seen[server.name] = byte_maps.look(server, evidence, places)
    shown = _shown(places, seen.values())
    published = [p.key for p in places if p.suite == overview.PUBLISHED and not p.pair]
    controls = frozenset(server.name for server in run.servers if server.control)
    style = _style([place.key for place in shown])
    script = (TEMPLATES / "script.js").read_text(encoding="utf-8").strip()
    return {
        "has_evidence": evidence is not None,
        "seen": seen,
        "places": shown,
        "alike_maps": byte_maps.alike(shown, run.servers, seen),
        "taken": byte_maps.taken(run.servers, seen),
        "dots": {place.key: byte_maps.dots(place) for place in shown if not place.pair},
        "alike_bytes": agreement.of_bytes(seen, published),
        "alike_cases": agreement.of_cases(seen),
        "contested": agreement.contested(seen, known, controls=controls),
        "cuts": delivery_table.cuts(run, known, evidence),
        "style": Markup(style),
        "script": Markup(script),
        "policy": (
            f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; "
            f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
        ),
    }


def _of_load(run: Run) -> dict[str, Any]:
    """Drawings of load and memory, and what their templates call."""
    return {
        "forests": plots.forests(run),
        "spectra": plots.spectra(run),
        "ladder": plots.ladder(run),
        "sample_throughput": number_format.sample_throughput,
        "in_flight": number_format.in_flight,
        "windows_max": WINDOWS_MAX,
        "stamps": number_format.STAMPS,
        "stamp_words": STAMP_WORDS,
        "stamped": _stamped(run),
    }


def _filled(
    page: Callable[..., str],
    made: matrix.Matrix | None,
    run: Run,
    evidence: ExchangeReader | None,
) -> str:
    """The page with as many wire logs of requirements as it has room for."""
    again = {server.name: server.again for server in run.servers}
    if made is not None and made.whole and evidence is not None:
        made = matrix.with_logs(made, evidence, again, bytes_max=CHECK_BYTES_MAX)
        return page(matrix=made, logged=made.logged())
    page = functools.partial(page, logged={})
    text = page(matrix=made)
    if made is None:
        return text
    room = PAGE_BYTES_MAX - len(text.encode("utf-8"))
    wanted = _LOGS_BYTES_MIN if evidence is not None else 0
    if room < wanted:
        made = matrix.shortened(made, surplus_bytes=wanted - room)
        text = page(matrix=made)
        room = PAGE_BYTES_MAX - len(text.encode("utf-8"))
    if evidence is None:
        return text
    room = min(max(room, 0), matrix.LOGS_BYTES_MAX)
    return page(matrix=matrix.with_logs(made, evidence, again, bytes_max=room))
