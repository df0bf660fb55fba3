"""The kinds of abuse: each is what its title says."""

from __future__ import annotations

import re

import pytest

from httpmark.harness.load.abuse_scenarios import BY_NAME, SCENARIOS, Needs, Scenario
from httpmark.harness.servers.abusive_clients import Manner
from httpmark.harness.tests.shared.repository import ROOT


def manner(name: str) -> Manner:
    return BY_NAME[name].manner(path="/there", host="127.0.0.1:1")


def test_each_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(SCENARIOS)


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.name)
def test_the_title_says_how_many_there_are(one: Scenario) -> None:
    wanted = one.per_second or (None if one.fills_descriptors else one.clients)
    assert wanted is None or f"{wanted:,.0f} " in one.title


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.name)
def test_path_and_host_are_those_of_the_target(one: Scenario) -> None:
    sent = one.manner(path="/there", host="127.0.0.1:1")
    octets = sent.opening + sent.repeated
    assert b"{" not in octets
    if b"Host: " in octets:
        assert b"Host: 127.0.0.1:1\r\n" in octets
        assert one.needs is Needs.WEBSOCKET or b" /there HTTP/1.1\r\n" in octets


def test_the_page_shows_each_of_them() -> None:
    page = (ROOT / "docs" / "abuse.md").read_text("utf-8")
    for one in SCENARIOS:
        assert f"| `{one.name}` | {one.title} |" in page


def test_a_slow_head_never_ends() -> None:
    sent = manner("slow-heads")
    assert b"\r\n\r\n" not in sent.opening
    assert b"\n" not in sent.repeated
    assert sent.every_s > 0


def test_100_000_fields_are_100_000() -> None:
    head = manner("many-fields").repeated
    assert head.endswith(b"\r\n\r\n")
    assert head.count(b"a:b\r\n") == 100_000


@pytest.mark.parametrize("name", ["tiny-chunks", "chunk-extensions"])
def test_each_chunk_is_well_formed_and_holds_one_byte(name: str) -> None:
    sent = manner(name)
    assert b"Transfer-Encoding: chunked\r\n" in sent.opening
    assert re.fullmatch(rb"(1(;[a-z]=[a-z]+)?\r\nx\r\n)+", sent.repeated)


def test_the_fragments_are_one_message_that_never_ends() -> None:
    sent = manner("websocket-fragments")
    assert sent.awaits_answer
    assert sent.beginning[0] == 0x01  # text, not the last
    frames = [sent.repeated[at : at + 7] for at in range(0, len(sent.repeated), 7)]
    for frame in (sent.beginning, *frames):
        assert frame[1] == 0x81  # masked, one byte
        assert len(frame) == 7
    assert {frame[0] for frame in frames} == {0x00}  # continued, not the last
