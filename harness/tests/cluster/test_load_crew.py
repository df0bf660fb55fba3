"""Who takes part in a load: one worker for the server, the others generate."""

from __future__ import annotations

import msgspec
import pytest

from httpmark.harness.cluster import worker_facts
from httpmark.harness.cluster.connecting import ROLES, Worker
from httpmark.harness.cluster.load_crew import Place, Roster, WorkerLost
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan

PLAN = LoadPlan(name="p", title="t", why="w", connections=3, depth=1, duration_s=1.0)


class Workers:
    """A cluster of workers by name: their hosts and roles."""

    def __init__(self, **known: tuple[str, tuple[str, ...]]) -> None:
        self.known = known

    def workers(self) -> list[Worker]:
        return [
            Worker(address=f"tcp://{name}:1", name=name, roles=roles)
            for name, (_, roles) in self.known.items()
        ]

    def ask(self, function: object, *words: object, of: list[str]) -> dict[str, object]:
        own = worker_facts.facts()
        hosts = {f"tcp://{name}:1": host for name, (host, _) in self.known.items()}
        return {one: msgspec.structs.replace(own, host=hosts[one]) for one in of}


def roster(cluster: Workers) -> Roster:
    return Roster(cluster)  # type: ignore[arg-type]


def test_who_is_only_for_servers_runs_them() -> None:
    made = roster(Workers(a=("x", ROLES), b=("y", ("server",)), c=("z", ("generator",))))
    assert made.server.name == "b"
    assert [one.name for one in made.generators()] == ["a", "c"]


def test_generators_are_told_whom_they_share_their_host_with() -> None:
    made = roster(Workers(s=("x", ("server",)), a=("x", ROLES), b=("y", ROLES), c=("y", ROLES)))
    crew = made.crew(PLAN, 9, set())
    assert crew is not None
    assert crew.places() == [Place(0, 1, True), Place(0, 2, False), Place(1, 2, False)]
    assert crew.beside_server == 1


def test_no_more_take_part_than_there_are_connections() -> None:
    cluster = Workers(s=("x", ("server",)), **dict.fromkeys("abcde", ("y", ROLES)))
    crew = roster(cluster).crew(PLAN, 9, {"b"})
    assert crew is not None
    assert [one.name for one in crew.generators] == ["a", "c", "d"]


def test_the_dead_take_no_part_and_without_anybody_there_is_no_crew() -> None:
    made = roster(Workers(s=("x", ("server",)), a=("x", ROLES), b=("y", ROLES)))
    made.dead.add("a")
    assert [one.name for one in made.generators()] == ["b"]
    assert made.crew(PLAN, 1, {"b"}) is None


def test_a_server_that_is_gone_is_told() -> None:
    cluster = Workers(s=("x", ("server",)), a=("x", ("generator",)))
    made = roster(cluster)
    del cluster.known["s"]
    with pytest.raises(WorkerLost, match="the worker s, which ran the servers, is gone"):
        made.crew(PLAN, 1, set())


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"a": ("x", ("generator",))}, "no worker of the cluster may run the server of a load"),
        ({"a": ("x", ("server",))}, "no worker of the cluster may generate load"),
        ({"a": ("x", ROLES)}, "one worker, and a load needs two"),
    ],
)
def test_roles_that_nobody_has_are_told(
    known: dict[str, tuple[str, tuple[str, ...]]], told: str
) -> None:
    with pytest.raises(Unusable, match=told):
        roster(Workers(**known))
