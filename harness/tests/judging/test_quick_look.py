"""What a quick look asks: the same cases everywhere, and what it leaves out is counted."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing import conformance, targets
from httpmark.harness.judging import quick_look, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.model.cases import Level
from httpmark.harness.model.verdicts import SuiteResult, Word
from httpmark.harness.tests.shared import peers

KNOWN = loading.load()
# A thinned family, a whole one, a program that binds and one that does not.
CHOSEN = {"get-plain", "path_offset", "host_port", "pipeline-split-everywhere", "reset-at-connect"}


def test_a_quick_look_thins_large_families_and_keeps_the_published_corpus() -> None:
    every = KNOWN.families.values()
    steps = {one.id: quick_look.step_of(one, quick=True) for one in every}
    assert {name for name, step in steps.items() if step == 31} == {"path_pair", "query_pair"}
    thinned = {one.id for one in every if steps[one.id] > 1}
    assert thinned == {one.id for one in every if one.count > 500 and one.suite != "seed"}
    assert not any(quick_look.step_of(one, quick=False) > 1 for one in every)
    for quick in (False, True):
        assert quick_look.size(KNOWN, ("seed",), lambda _: True, quick=quick) == 123_942 + 587
    chosen = {"path_pair": 2001, "path_offset": 93, "host-missing": 1}
    assert quick_look.size(KNOWN, ("rfc",), lambda one: one.id in chosen, quick=True) == sum(
        chosen.values()
    )


def test_a_thinned_family_still_has_every_byte_and_every_offset() -> None:
    """At least of what varies by itself: a step that divides a family shows a part of it only."""
    for family in KNOWN.families.values():
        step = quick_look.step_of(family, quick=True)
        if step > 1:
            tails = [slug[len(family.id) + 1 :] for slug in KNOWN.slugs(family.id)]
            some = [slug[len(family.id) + 1 :] for slug in KNOWN.slugs(family.id, step=step)]
            for part in range(len(tails[0].split("-"))):
                whole = {tail.split("-")[part] for tail in tails}
                if len(whole) <= len(some):
                    seen = {tail.split("-")[part] for tail in some}
                    assert len(seen) >= 0.6 * len(whole), (family.id, part)


def test_the_step_of_a_stored_run_follows_from_what_it_planned() -> None:
    for family in KNOWN.families.values():
        for quick in (False, True):
            planned = quick_look.cases_of(family, quick=quick)
            found = quick_look.stored_step(family.count, planned)
            assert found == quick_look.step_of(family, quick=quick), family.id
    assert quick_look.stored_step(179, 0) == 1


def test_what_is_left_out_is_counted() -> None:
    assert quick_look.left_out(KNOWN, ("rfc",), lambda one: one.id in CHOSEN) == (645 - 93, 1)
    assert quick_look.left_out(KNOWN, ("rfc",), lambda one: one.id == "host-missing") == (0, 0)


def looked(folder: Path, answer_s: float) -> SuiteResult:
    """A quick look at a server that takes this long to answer."""

    def slow(connection: socket.socket) -> None:
        time.sleep(answer_s)
        peers.naive(connection)

    with peers.peer(slow) as peer, Evidence(folder / "e.sqlite", create=True) as evidence:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a", jobs=16)
        evidence.set_facts("peer", target.facts())
        fired = suite_results.Fired()
        conformance.fire(
            KNOWN, "rfc", target, evidence, fired, progress=lambda _: None, quick=True,
            selected=lambda family: family.id in CHOSEN,
        )  # fmt: skip
        return suite_results.score_suite(KNOWN, "rfc", "peer", evidence, fired)


@pytest.mark.process
def test_a_quick_look_asks_a_slow_server_the_same(tmp_path: Path) -> None:
    asked = []
    for answer_s in (0.0, 0.05):
        (tmp_path / str(answer_s)).mkdir()
        said = looked(tmp_path / str(answer_s), answer_s)
        assert "reset-at-connect" not in said.cases
        assert said.cases["pipeline-split-everywhere"].word is not Word.VOID
        counts = {
            name: sum(sum(words.values()) for words in tally.words.values())
            for name, tally in said.generated.items()
        }
        assert not any(
            Word.VOID in words for t in said.generated.values() for words in t.words.values()
        )
        assert said.generated["path_offset"].words.keys() == {Level.SHOULD}
        asked.append(counts)
    assert asked[0] == asked[1] == {"path_offset": 93, "host_port": 67}
