"""A generator that starved, lagged or died breaks a sample, which is taken again without it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from httpmark.harness.cluster import load_windows
from httpmark.harness.cluster.load_turn import GeneratorsLost
from httpmark.harness.cluster.load_windows import LoadCluster, troubled
from httpmark.harness.load.contestants import Contestant
from httpmark.harness.load.engines.launch import Measured
from httpmark.harness.load.engines.native import Native
from httpmark.harness.load.sampling import GeneratorWindow, Taken
from httpmark.harness.load.window_clocks import MachineUse
from httpmark.harness.load.windows import NotLoaded
from httpmark.harness.model.load import LoadPlan

PLAN = LoadPlan(name="p", title="t", why="w", connections=8, depth=1, duration_s=1.0)
HOST = MachineUse(steal_ratio=0.0, retransmit_ratio=None, dropped={})
MEASURED = Measured(
    requests=10, seconds=1.0, errors={}, established=1, server_ns_per_request=None,
    client_ns_per_request=1.0, server_on_cpu_ratio=None, client_on_cpu_ratio=0.1,
    run_delay_ratio=0.0, client_run_delay_ratio=0.0, littles_law_ratio=1.0, latency_us=None,
    latency_reason=None, histogram=None,
)  # fmt: skip


def generator(
    name: str, *, machine: MachineUse = HOST, late_us: float = 0.0, **changes: Any
) -> GeneratorWindow:
    measured = msgspec.structs.replace(MEASURED, **changes)
    return GeneratorWindow(
        name=name, host="h", connections=1, machine=machine, start_late_us=late_us,
        measured=measured,
    )  # fmt: skip


STARVED: dict[str, Any] = {"client_run_delay_ratio": 0.2}


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (generator("b", **STARVED), "starved: it waited for a CPU 20% of the time"),
        (
            generator("b", machine=msgspec.structs.replace(HOST, steal_ratio=0.1)),
            "starved: the hypervisor of its host took 10% of the CPU",
        ),
        (generator("b", late_us=80_000.0), "lagged: it began up to 80 ms after the first one"),
        (generator("b", lag_us={"p99": 20_000.0}), "lagged: it was late by 20 ms (p99)"),
    ],
)
def test_who_starved_or_lagged_is_named(one: GeneratorWindow, why: str) -> None:
    assert troubled((generator("a"), one), 1.0, 0.0) == {"b": why}


def test_who_alone_lost_all_its_connections_was_cut_off() -> None:
    cut = generator("b", errors={"timeout": 1})
    why = "was cut off: none of its 1 connections got an answer any more, and all of the others did"
    assert troubled((generator("a"), cut), 1.0, 0.0) == {"b": why}
    assert troubled((generator("a", errors={"timeout": 1}), cut), 1.0, 0.0) == {}, "the server's"
    assert troubled((cut,), 1.0, 0.0) == {}
    some = msgspec.structs.replace(cut, connections=2)
    assert troubled((generator("a"), some), 1.0, 0.0) == {}, "that may be the server's fault"


def test_a_start_counts_as_late_by_what_is_known_of_the_clocks() -> None:
    pair = (generator("a"), generator("b", late_us=30_000.0))
    assert troubled(pair, 1.0, 9_000.0) == {}
    assert troubled(pair, 1.0, 11_000.0).keys() == {"b"}
    assert troubled(pair[:1], 1.0, 1e9) == {}, "one alone shares its window with nobody"


class Scripted:
    """A cluster on which the generators that are named do as it is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: str, **does: object) -> None:
        self.lines: list[str] = []
        self.takers: list[str] = []  # the generators of each window
        self.dead: set[str] = set()
        self._names = names
        self._does = does
        monkeypatch.setattr(load_windows, "Roster", lambda cluster, say: self)
        monkeypatch.setattr(load_windows, "Waiting", lambda *words: None)
        monkeypatch.setattr(load_windows, "Turn", self._turn)
        self.made = LoadCluster(
            None, "run", say=self.lines.append, remember=lambda *words: None  # type: ignore[arg-type]
        )  # fmt: skip
        self.made.runtimes["null"] = "process"

    def generators(self) -> list[str]:
        return [name for name in self._names if name not in self.dead]

    def crew(self, plan: LoadPlan, count: int, without: set[str]) -> Any:
        there = [name for name in self.generators() if name not in without]
        return there[:count] or None

    def _turn(self, waiting: None, crew: list[str], ask: object) -> object:
        def take() -> tuple[Taken, None]:
            self.takers.append("".join(crew))
            lost = {one: "died" for one in crew if self._does.get(one) == "dies"}
            if lost:
                raise GeneratorsLost(lost)
            made = [
                generator(one, **(STARVED if self._does.get(one) == "starves" else {}))
                for one in crew
            ]
            return (
                Taken(measured=MEASURED, machine=HOST, is_pinned=True, generators=tuple(made)),
                None,
            )

        return SimpleNamespace(take=take)

    def take(self) -> Taken:
        return self.made(Contestant("null", lambda *words: None), PLAN, Native(), 1.0)  # type: ignore[arg-type]


def test_a_sample_without_trouble_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Scripted(monkeypatch, "abc")
    assert crew.take().measured.broken is None
    assert (crew.takers, crew.lines) == (["abc"], [])


def test_it_is_taken_again_without_who_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Scripted(monkeypatch, "abc", b="starves")
    taken = crew.take()
    assert crew.takers == ["abc", "ac"]
    assert taken.measured.broken is None
    assert taken.redone == 1
    (line,) = crew.lines
    assert line.startswith("null: generator b starved: ")
    assert crew.take().redone == 1, "who starved once is asked again"


def test_who_is_to_spare_takes_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Scripted(monkeypatch, "abc", a="starves")
    crew.made.count = 2
    crew.take()
    assert crew.takers == ["ab", "bc"]


def test_who_died_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = Scripted(monkeypatch, "abc", a="dies")
    crew.take()
    crew.take()
    assert crew.takers == ["abc", "bc", "bc"]
    assert crew.lines == ["null: generator a died; the sample is taken again without it"]


def test_where_none_is_left_the_sample_is_broken_with_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crew = Scripted(monkeypatch, "ab", a="starves", b="starves")
    broken = crew.take().measured.broken or ""
    assert broken.startswith("generator a starved: ")
    assert "; generator b starved: " in broken


def test_where_all_died_nothing_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotLoaded, match="no generator is left: generator a died"):
        Scripted(monkeypatch, "a", a="dies").take()
