"""What the strategies make: valid by the harness's own reader, and what they say they mean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpmark.harness.firing import strategies
from httpmark.harness.http import grammar, request_reader

MESSAGES = strategies.messages(host=b"a:1", place=b"/mirror")


@given(MESSAGES)
def test_a_message_is_one_valid_whole_request(message: strategies.Message) -> None:
    read = request_reader.read(message.octets)
    [request] = read.requests
    assert request.valid
    assert request.whole
    assert (request.method, request.target) == (message.method, message.target)
    assert request.end == len(message.octets)
    own = tuple((name.lower(), value) for name, value in message.fields)
    told = tuple(
        (name, value)
        for name, value in request.fields
        if name not in (b"host", b"content-length", b"transfer-encoding")
    )
    assert told == own
    assert request.content(message.octets) == message.content
    assert request.trailers == tuple((name.lower(), v) for name, v in message.trailers)


@given(MESSAGES, MESSAGES)
def test_two_messages_one_after_the_other_are_two(
    first: strategies.Message, second: strategies.Message
) -> None:
    read = request_reader.read(first.octets + second.octets)
    assert [request.method for request in read.requests] == [first.method, second.method]


@given(MESSAGES, st.data())
def test_a_prefix_is_never_whole(message: strategies.Message, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(message.octets) - 1))
    read = request_reader.read(message.octets[:cut])
    assert all(request.valid for request in read.requests)
    assert not any(request.whole for request in read.requests)


@settings(max_examples=300)
@given(strategies.mutated(host=b"a:1", place=b"/mirror"))
def test_a_mutation_gives_bytes(octets: bytes) -> None:
    assert octets


@given(strategies.targets(b"/p"))
def test_a_target_is_at_its_place(target: bytes) -> None:
    assert target == b"/p" or target.startswith(b"/p?")
    assert set(target) <= grammar.TARGET | {ord("%")}


@pytest.mark.process
def test_a_search_leaves_nothing_where_the_user_stands(tmp_path: Path) -> None:
    code = (
        "import random; from httpmark.harness.firing import strategies as s\n"
        "requests = s.requests(host=b'a:1', place=b'/')\n"
        "s.smallest(requests, lambda tried: False, random.Random(1), examples=3)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=True)
    assert not list(tmp_path.iterdir())
