"""Every server of images/ starts and answers what its manifest says it can."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import msgspec
import pytest

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.servers import ContainerRecipe, ProcessRecipe, Server, Tls
from httpmark.harness.servers import certificates, manifests, starting, verification
from httpmark.harness.servers.certificates import Pair
from httpmark.harness.servers.verification import Seen
from httpmark.harness.tests.shared.ports import own_port
from httpmark.harness.tests.shared.pytest_rules import required

SERVERS = {one.name: one for one in manifests.servers()}
BROUGHT = {"kourier", "lithium", "ring"}  # manifests only: the user brings them
UNTRIED = {name for name, one in SERVERS.items() if not one.tried}  # published images alone
BUILT = sorted(set(SERVERS) - BROUGHT - UNTRIED)
# Debian 13, which images are made from, has no package of these.
PROCESS_ALONE = {"h2o", "trafficserver"}
# From 0 to 7: only that eighth of the servers that no run uses by default (make field-eighth).
EIGHTH = os.environ.get("HTTPMARK_EIGHTH")


def test_the_six_servers_are_there_and_one_is_the_control() -> None:
    assert set(BUILT) >= {
        "reference", "null", "go_net_http", "rust_hyper", "qhttpserver", "nginx",
    }  # fmt: skip
    assert [name for name in BUILT if SERVERS[name].control] == ["null"]


def test_what_cannot_be_had_here_is_not_called_tried() -> None:
    assert {"envoy", "iis", "kestrel", "openlitespeed", "traefik"} == UNTRIED
    for name in UNTRIED:
        one = SERVERS[name]
        assert one.container is not None
        assert one.container.image is not None
        reason = str(starting.availability(one, "docker"))
        assert f"no image {one.container.image}: docker tag" in reason or "Docker daemon" in reason


@pytest.mark.parametrize("name", sorted(set(SERVERS) - UNTRIED))
def test_each_server_can_be_started_both_ways(name: str) -> None:
    one = SERVERS[name]
    assert one.process is not None
    recipes: list[tuple[ProcessRecipe | ContainerRecipe, tuple[str, ...]]]
    recipes = [(one.process, one.process.start)]
    if name in PROCESS_ALONE:
        assert one.container is None
    else:
        assert one.container is not None
        recipes.append((one.container, one.container.start or one.container.args))
    for recipe, words in recipes:
        texts = " ".join([*words, *recipe.files.values(), *recipe.env.values()])
        told = "{endpoint}" in texts or ("{address}" in texts and "{port}" in texts)
        assert told or recipe.port is not None
        assert "{workers}" in texts or one.workers == "one"


def test_who_shares_an_engine_shares_that_of_a_server_that_is_here() -> None:
    shared = {name: one.engine for name, one in SERVERS.items() if one.engine}
    assert shared
    for name, engine in shared.items():
        assert engine != name
        assert SERVERS[engine].engine == "", f"{name}: name the engine itself"


@pytest.mark.parametrize("name", sorted(BROUGHT))
def test_a_server_the_user_brings_says_what_to_bring(name: str) -> None:
    reason = starting.availability(SERVERS[name], "process")
    assert reason is True or f"{name}-server not found: put " in str(reason)


# What reads the content before it calls a handler cannot answer without it.
CONTENT_FIRST = {
    "cheroot", "cohttp", "fasthttp", "hertz", "hunchentoot", "libevent", "puma", "qhttpserver",
    "racket", "tornado", "twisted", "waitress", "yaws",
}  # fmt: skip


def unavailable(server: Server, how: str) -> str | None:
    """Why the server cannot be tried here; fails where HTTPMARK_REQUIRE says it must be."""
    reason = starting.availability(server, how)
    if reason is True:
        return None
    needs = {"docker"} if how == "docker" else set()
    if how == "process" and server.process is not None:
        needs = {need.command for need in server.process.needs if need.command}
    ours = any(need.startswith("httpmark-") for need in needs) and "CI" in os.environ
    if needs & required() or ours:
        pytest.fail(f"{server.name} must be available here: {reason}")
    return str(reason)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A certificate for this machine, of an authority of its own."""
    return certificates.make(tmp_path_factory.mktemp("certificate"), address="127.0.0.1")


# Their images take minutes to build: they are nightly, and the images of the others prove the
# same of containers on each change.
BUILT_FOR_MINUTES = {"go_net_http", "qhttpserver", "rust_hyper"}
# Of the servers that no run uses by default, those that need no build prove on each change what the
# others prove nightly.
BUILT_FROM_NOTHING = {"node", "python_http_server"}


def verified() -> list[str]:
    """The servers that are verified: all, or an eighth of those that no run uses by default."""
    if EIGHTH is None:
        return BUILT
    rest = [name for name in BUILT if not SERVERS[name].by_default]
    return rest[int(EIGHTH) :: 8]


def runtimes_of(name: str) -> list[Any]:
    """A server as a process, as a container or as both, as its manifest says: parameters."""
    rest = not SERVERS[name].by_default
    nightly = [pytest.mark.nightly]
    process = nightly if rest and name not in BUILT_FROM_NOTHING else []
    docker = [pytest.mark.needs("docker"), *(nightly if rest or name in BUILT_FOR_MINUTES else [])]
    marks = {"process": process, "docker": docker}
    told = {"process": SERVERS[name].process, "docker": SERVERS[name].container}
    return [pytest.param(name, how, marks=marks[how]) for how in marks if told[how] is not None]


@pytest.mark.first
@pytest.mark.timeout(900)  # it may build what another test waits for, on a machine that is busy
@pytest.mark.process
@pytest.mark.parametrize(("name", "how"), [one for name in verified() for one in runtimes_of(name)])
def test_a_server_keeps_what_its_manifest_says(name: str, how: str, certificate: Pair) -> None:
    server = SERVERS[name]
    if reason := unavailable(server, how):
        pytest.skip(reason)
    starting.prepare(server, how, say=lambda line: None)
    found = verification.verify(
        server, verification.Start(how, "127.0.0.1", f"images{os.getpid()}", certificate)
    )
    assert {row.name: row for row in found.rows if row.verdict == Seen.BROKEN} == {}
    assert found.verdict == Seen.KEPT
    rows = {row.name: row for row in found.rows}
    assert set(rows) == {
        "ready", "version", "HTTP/1.0", "SIGTERM", "workers", *server.capabilities,
    }  # fmt: skip
    if "behave" in rows:
        late = rows["behave"].seen.endswith("/early after the content")
        assert late is (name in CONTENT_FIRST)
    if server.by_default:
        assert rows["hello"].seen == "GET 200 (length), POST 200, two requests in one write"
        assert "mirror" not in rows or "refused" not in rows["mirror"].seen
    # No version is asked of null; whether a container with it ends at SIGTERM is up to its kernel.
    unseen = {row.name for row in found.rows if row.verdict == Seen.NOT_SEEN}
    assert unseen <= {"workers", "SIGTERM"} | ({"version"} if name == "null" else set())


@pytest.mark.parametrize(
    "how", ["process", pytest.param("docker", marks=pytest.mark.needs("docker"))]
)
def test_a_server_without_tls_is_not_asked_for_it(how: str, certificate: Pair) -> None:
    tls = Tls(port=0, cert=certificate.certificate, key=certificate.key)
    plain = msgspec.structs.replace(SERVERS["null"], capabilities=("hello",))
    with pytest.raises(HarnessError, match="null has no TLS"):
        starting.start(
            plain, how, address="127.0.0.1", port=own_port(), workers=1, cpus=None,
            run_id="x", tls=tls,
        )  # fmt: skip


@pytest.mark.process
def test_the_limits_declared_for_the_reference_are_those_it_prints() -> None:
    server = SERVERS["reference"]
    if reason := unavailable(server, "process"):
        pytest.skip(reason)
    path = starting.binary(server)
    assert path is not None
    told = subprocess.run(
        [path, "--print-limits"], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    printed = {line.split()[0]: int(line.split()[1]) for line in told.splitlines()}
    assert server.limits == {
        "request_target_bytes": printed["target-max"],
        "head_bytes": printed["head-max"],
        "fields": printed["field-lines-max"],
        "content_bytes": printed["body-max"],
    }
    assert server.timeouts == {
        "head_s": printed["head-timeout-ms"] / 1000,
        "content_s": printed["body-timeout-ms"] / 1000,
        "idle_s": printed["idle-timeout-ms"] / 1000,
        "write_s": printed["write-timeout-ms"] / 1000,
    }
