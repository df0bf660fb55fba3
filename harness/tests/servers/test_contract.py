"""The contract of capabilities: who keeps it is let through, each broken promise is told."""

from __future__ import annotations

import pytest

from httpmark.harness.model.servers import CAPABILITIES, PARTS_OF_BEHAVE
from httpmark.harness.servers import contract
from httpmark.harness.servers.contract import Broken, Place
from httpmark.harness.tests.shared import peers
from httpmark.harness.tests.shared.contract_server import FAULTS, contract_server

ASKED = [name for name in contract.CHECKS if name not in ("tls", "websocket")]


def test_every_capability_can_be_asked_for() -> None:
    assert set(contract.CHECKS) == {*CAPABILITIES, *PARTS_OF_BEHAVE}
    assert set(FAULTS.values()) == set(contract.CHECKS) - {"behave", "tls"}


def test_who_keeps_the_contract_is_let_through() -> None:
    with contract_server() as port:
        seen = {name: contract.check(name, Place("127.0.0.1", port)) for name in ASKED}
    assert seen["mirror"] == "all keys; null: authority"
    assert seen["behave"] == "8 places; /early before the content"
    assert seen["behave.204"] == "204"
    assert all(seen.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_each_broken_promise_is_told(fault: str) -> None:
    with contract_server(fault) as port, pytest.raises(Broken) as told:
        contract.check(FAULTS[fault], Place("127.0.0.1", port))
    path = FAULTS[fault].rpartition(".")[2]
    assert f"/{path}" in str(told.value) or str(told.value) == "GET /: 404 instead of 200"
    assert "\n" not in str(told.value)


def test_a_late_answer_to_early_keeps_behave_but_not_its_place() -> None:
    with contract_server("late early") as port:
        seen = contract.check("behave", Place("127.0.0.1", port))
    assert seen == "8 places; /early after the content"


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (peers.mute, "GET /hello: no whole answer: time ran out"),
        (peers.closing(b""), "GET /hello: the connection was closed without an answer"),
        (peers.closing(peers.OK[:-3]), "GET /hello: the connection was closed in mid-answer"),
        (peers.answering(b"HTTP/9\r\n\r\n"), "GET /hello: the answer is no HTTP: not a status"),
    ],
)
def test_what_is_no_answer_is_told(
    handler: peers.Handler, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "ASK_DEADLINE_S", 0.5)
    with peers.peer(handler) as peer, pytest.raises(Broken) as told:
        contract.check("hello", Place("127.0.0.1", peer.port))
    assert str(told.value).startswith(why)


def test_a_server_may_close_after_each_answer() -> None:
    with peers.peer(peers.closing(peers.OK)) as peer:
        seen = contract.check("hello", Place("127.0.0.1", peer.port))
    assert seen == "GET 200 (length), POST 200, of two requests in one write the first, and a close"


@pytest.mark.parametrize("manner", ["a close after each", "411 without a length"])
def test_a_mirror_may_close_after_each_answer_and_want_lengths(manner: str) -> None:
    with contract_server(manner) as port:
        seen = contract.check("mirror", Place("127.0.0.1", port))
    assert seen == "all keys; null: authority"


def test_of_a_server_of_files_no_other_path_is_asked() -> None:
    with contract_server("hello with 404 on other paths") as port:
        seen = contract.check("hello", Place("127.0.0.1", port, files_only=True))
    assert seen == "GET 200 (length), POST 200, two requests in one write"


def test_a_server_of_files_may_not_know_a_type_for_hello() -> None:
    with contract_server("hello without a type") as port:
        seen = contract.check("hello", Place("127.0.0.1", port, files_only=True))
    assert seen == "GET 200 (length), POST 200, two requests in one write"
    with contract_server("hello in HTML") as port, pytest.raises(Broken, match="not text/plain"):
        contract.check("hello", Place("127.0.0.1", port, files_only=True))


def test_nobody_there_is_told() -> None:
    with peers.peer(peers.mute) as peer:
        port = peer.port
    with pytest.raises(Broken, match=rf"no connection to 127\.0\.0\.1:{port}: Connection refused"):
        contract.check("hello", Place("127.0.0.1", port))
