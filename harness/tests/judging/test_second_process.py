"""A second process judges as the first would, and where it does not the first judges all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from httpmark.harness.catalogue import loading, lookup
from httpmark.harness.firing import conformance, targets
from httpmark.harness.judging import second_process, suite_results
from httpmark.harness.judging.evidence import Evidence
from httpmark.harness.judging.family_results import StoredServer
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.pytest_rules import starts_process

KNOWN = loading.load()

_NAMES = [
    family.id
    for family in KNOWN.of_suite("rfc")
    if family.group == "CL" and lookup.has_octets(KNOWN, family.id)
]
_FORGETS = (
    "import sys; from multiprocessing.connection import Connection;"
    "pipe = Connection(int(sys.argv[1])); pipe.recv(); pipe.send({})"
)


@pytest.fixture(scope="module")
@starts_process
def fired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Content-Length drew from a naive server."""
    path = tmp_path_factory.mktemp("fired") / "evidence.sqlite"
    with peers.peer(peers.naive) as peer, Evidence(path, create=True) as evidence:
        target = targets.Target(name="peer", address="127.0.0.1", port=peer.port, host="a")
        conformance.fire(
            KNOWN, "rfc", target, evidence, suite_results.Fired(),
            progress=lambda _: None, selected=lambda one: one.id in _NAMES,
        )  # fmt: skip
    return path


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "code"),
    [
        (sys.executable, second_process._PROGRAM),
        (sys.executable, _FORGETS),
        (sys.executable, "raise SystemExit(1)"),
        ("/bin/false", ""),
    ],
    ids=["whole", "forgets-and-ends", "ends", "is-none"],
)
def test_a_second_process_judges_as_the_first_would(
    fired: Path, monkeypatch: pytest.MonkeyPatch, program: str, code: str
) -> None:
    """What it does not bring, because it cannot, is judged here."""
    second_process_program = second_process._PROGRAM
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(second_process, "_PROGRAM", code)
    monkeypatch.setattr(second_process, "_SHARE_FROM", 1)
    found = []
    with Evidence(fired) as evidence:
        facts = evidence.facts("peer")
        assert facts is not None
        for is_worth_it in (False, True):
            with second_process.SecondProcess() as second:
                second.start(second_process._START_FROM if is_worth_it else 0)
                assert second.free is is_worth_it
                stored = StoredServer(KNOWN, facts, evidence, "peer")
                judged = second_process.judged_with(second, stored, _NAMES, quick=False)
                # It brought all that it was asked for, or it ended and was given up.
                assert second.free is (is_worth_it and code == second_process_program)
            found.append(
                {
                    name: (
                        one.count.tally(),
                        one.first,
                        one.exchanges,
                        one.answers.tallies(),
                        one.left,
                        lingering,
                        doubted,
                    )
                    for name, (one, doubted, lingering) in judged.items()
                }
            )
    assert found[0].keys() == set(_NAMES)
    assert any(doubted for *_, doubted in found[0].values())
    assert found[0] == found[1]
