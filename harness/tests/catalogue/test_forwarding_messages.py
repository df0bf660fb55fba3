"""The messages that are sent to proxies alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.catalogue import forwarding_messages, loading
from httpmark.harness.http import request_reader
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError

FACTS = Facts(host="h.example:81")


def test_each_is_one_valid_request_to_the_proxy() -> None:
    cases = forwarding_messages.cases(FACTS)
    assert len(cases) > 30
    for case in cases:
        (request,) = request_reader.read(case.sent).requests
        assert request.whole, case.id
        assert b"h.example:81" in case.sent
        assert case.id.encode() in request.target


def test_no_case_has_the_id_of_a_message() -> None:
    ids = {message.id for message in forwarding_messages.messages()}
    assert not ids & set(loading.load().families)
    assert all(message.title for message in forwarding_messages.messages())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[message]]\nid = "a"\ntitle = "t"\n', "forwarding.toml: Object missing required field"),
        ("[[mesage]]\n", "forwarding.toml: Object contains unknown field"),
        (
            '[[message]]\nid = "a"\ntitle = "t"\nsend = "s"\n' * 2,
            "message 'a': there are two of that id",
        ),
    ],
)
def test_a_mistake_names_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "forwarding.toml"
    path.write_text(text)
    with pytest.raises(HarnessError) as told:
        forwarding_messages.messages(path)
    assert complaint in str(told.value)
