"""Every case is fired at some server of images/: no row of the catalogue is judged nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from httpmark.harness.catalogue import loading, vocabulary
from httpmark.harness.catalogue.vocabulary import CAPABILITIES
from httpmark.harness.model.cases import STATIC_FILE_FACTS, Facts
from httpmark.harness.model.servers import CAPABILITIES as DECLARED
from httpmark.harness.model.servers import PARTS_OF_BEHAVE, Server
from httpmark.harness.servers import manifests

KNOWN = loading.load()

# Cases that no manifest makes applicable, and why.
NOWHERE: dict[str, str] = {}

# What no manifest says and every server with the capability shows when it is asked: its /hello
# answers any path, so that it is known what an unknown path gets, and its /early answers before the
# content.
FOUND_BY_ASKING = {"hello": ("catch_all", "own_answer"), "behave": ("early",)}


def facts_of(server: Server) -> Iterator[Facts]:
    """What is known of a server while suites are run, without and with TLS."""
    asked = tuple(found for one in server.capabilities for found in FOUND_BY_ASKING.get(one, ()))
    is_static = "static" in server.capabilities
    for scheme in ("http", "https") if "tls" in server.capabilities else ("http",):
        yield Facts(
            host="127.0.0.1:8080",
            scheme=scheme,
            capabilities=server.capabilities + asked,
            limits=server.limits | server.conformance.limits,
            timeouts=server.timeouts | server.conformance.timeouts,
            values=dict.fromkeys(STATIC_FILE_FACTS, "x") if is_static else {},
        )


def test_each_case_is_applicable_to_a_server_of_images_or_is_listed() -> None:
    able_first = sorted(manifests.servers(), key=lambda one: -len(one.capabilities))
    facts = [one for server in able_first for one in facts_of(server)]
    nowhere = {
        name: {KNOWN.inapplicable(name, one) for one in facts}
        for name in KNOWN.families
        if KNOWN.families[name].suite != "found"
        and all(KNOWN.inapplicable(name, one) is not None for one in facts)
    }
    assert nowhere.keys() == NOWHERE.keys(), nowhere


def test_each_capability_is_had_by_a_server_of_images() -> None:
    had = {word for server in manifests.servers() for word in server.capabilities}
    assert had >= set(DECLARED)
    assert set(DECLARED) | set(PARTS_OF_BEHAVE) | set(vocabulary.FOUND_BY_ASKING) == CAPABILITIES
    shown = {word for words in FOUND_BY_ASKING.values() for word in words}
    assert shown == set(vocabulary.FOUND_BY_ASKING)
