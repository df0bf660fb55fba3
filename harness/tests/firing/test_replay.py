"""A case sent again: its exit code is the verdict, so that a search by commits can ask for it."""

from __future__ import annotations

import socket

import pytest
from click.testing import CliRunner

from httpmark.harness.command import cli
from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared import peers

pytestmark = pytest.mark.process


def replayed(handler: peers.Handler, case: str, *words: str) -> tuple[int, str]:
    with peers.peer(handler) as peer:
        done = CliRunner().invoke(
            cli.httpmark, ["replay", case, f"127.0.0.1:{peer.port}", "--path", "/hello", *words]
        )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def by_host(connection: socket.socket) -> None:
    """Refuses a request without Host, as it must."""
    while request := peers.head(connection):
        connection.sendall(peers.OK if b"Host:" in request else peers.BAD)
        if b"Host:" not in request:
            return


def test_a_case_that_passes_is_0_and_one_that_fails_is_1() -> None:
    code, said = replayed(by_host, "host-missing")
    assert (code, "verdict:  pass" in said) == (0, True), said
    code, said = replayed(peers.answering(peers.OK), "host-missing")
    assert (code, "verdict:  fail" in said) == (1, True), said


def test_a_case_that_only_warns_is_0() -> None:
    code, said = replayed(peers.answering(peers.OK), "host-nul")
    assert (code, "verdict:  warn" in said) == (0, True), said


def test_a_rule_on_every_answer_is_shown_and_decides_nothing() -> None:
    """Else no case could be searched for on a server that sends no Date."""
    code, said = replayed(peers.answering(peers.OK), "get-plain")
    assert "RESP-20:  no Date on 200" in said
    assert code == 0, said


def test_a_smaller_request_and_a_cut_have_the_same_exit_codes() -> None:
    assert replayed(peers.answering(peers.OK), "host-missing", "--minimise")[0] == 1
    assert replayed(by_host, "host-missing", "--minimise")[0] == 0
    assert replayed(peers.answering(peers.OK), "get-plain", "--delivery", "byte")[0] == 0


@pytest.mark.parametrize(("server", "code"), [("server", 0), ("null", 1)])
def test_a_server_may_be_started_for_one_case(server: str, code: int) -> None:
    serve = f"{binaries.need(server)} --address 127.0.0.1 --port {{port}}"
    done = CliRunner().invoke(cli.httpmark, ["replay", "host-missing", "--serve", serve])
    assert done.exit_code == code, done.output
    port = int(done.output.partition("to 127.0.0.1:")[2].split()[0])
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", port)) != 0, "it is stopped again"


@pytest.mark.parametrize("words", [(), ("127.0.0.1:1", "--serve", "./server {port}")])
def test_a_server_is_named_in_one_way(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli.httpmark, ["replay", "host-missing", *words])
    assert done.exit_code != 0
    assert "name one of TARGET and --serve" in str(done.exception)
