"""Runners against exchanges and processes made up for them: each can pass, and each can fail."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable

import msgspec
import pytest

from httpmark.harness import resources, runners, wire
from httpmark.harness.model import Case, End, Exchange, Facts, Op, Outcome, Step, Word

GET = b"GET /?id=%d HTTP/1.1\r\nHost: h\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

PAIR = Case(
    "pair",
    "pair",
    (
        Step(Op.SEND, GET % 0 + GET % 1),
        Step(Op.AWAIT, wait_ms=2000),
        Step(Op.AWAIT, wait_ms=2000, if_open=True),
    ),
    methods=(b"GET",),
)
ATTACK = msgspec.structs.replace(
    PAIR,
    steps=(
        Step(Op.SEND, b"POST / HTTP/1.1\r\nHost: h\r\n\r\nGET /smug HTTP/1.1\r\nHost: h\r\n\r\n"),
        Step(Op.AWAIT, wait_ms=2000),
    ),
)

Answer = Callable[[Case], tuple[bytes, End]]


def drew(case: Case, received: bytes, end: End) -> Exchange:
    records = [(1, len(case.sent)), (2, len(received))] + [(3, 0)] * (end is not End.OPEN)
    return Exchange(
        case.id, case.family, case.sent, received,
        Outcome.ANSWERED if received else Outcome.HUNG, end, 1, 1000, len(case.sent),
        delivery=case.delivery,
        timeline=b"".join(
            struct.pack("<BII", kind, at, octets) for at, (kind, octets) in enumerate(records)
        ),
    )  # fmt: skip


class Made:
    """A stage whose server answers as a function says; keeps what was played."""

    def __init__(self, case: Case, answer: Answer) -> None:
        self.played: list[Case] = []
        self.alive = True
        self.pids: list[int] = []
        self.flooded = (0, "stalled")
        self.answer = answer
        self.stage = runners.Stage(
            case=case,
            facts=Facts(host="h", path="/"),
            fire=self._fire,
            alive=lambda: self.alive,
            pids=lambda: self.pids,
            flood=self._flood,
        )

    def _fire(self, cases: list[Case], in_flight: int) -> list[Exchange]:
        assert in_flight > 0
        assert len({case.delivery for case in cases}) == len(cases), "evidence would keep only one"
        assert not {case.delivery for case in cases} & {case.delivery for case in self.played}
        self.played += cases
        return [drew(case, *self.answer(case)) for case in cases]

    def _flood(
        self, octets: bytes, total: int, stall_s: float, look: Callable[[], None]
    ) -> tuple[int, str]:
        look()
        return self.flooded


def test_a_pair_is_cut_at_every_octet() -> None:
    made = Made(PAIR, lambda _: (OK + OK, End.OPEN))
    assert runners.every_cut(made.stage).word is Word.PASS
    assert len(made.played) == len(PAIR.sent) - 1


@pytest.mark.parametrize(
    ("received", "end", "word"),
    [
        (OK, End.OPEN, Word.FAIL),
        (OK + BAD, End.OPEN, Word.FAIL),
        (OK + OK + OK, End.OPEN, Word.FAIL),
        (b"nonsense\r\n\r\n", End.OPEN, Word.FAIL),
        (b"", End.OPEN, Word.FAIL),
        (CLOSING, End.CLOSED, Word.WARN),
        (CLOSING, End.OPEN, Word.FAIL),
        (OK, End.CLOSED, Word.FAIL),
    ],
)
def test_one_bad_cut_is_enough(received: bytes, end: End, word: Word) -> None:
    made = Made(
        PAIR, lambda case: (received, end) if case.delivery == "two@40" else (OK + OK, End.OPEN)
    )
    found = runners.every_cut(made.stage)
    assert found.word is word
    assert word is Word.WARN or found.actual.startswith("two@40: ")


def test_clean_connections_are_ten_beside_ten() -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        return (OK + OK, End.OPEN) if b"clean" in case.sent else (BAD, End.CLOSED)

    made = Made(ATTACK, answer)
    assert runners.clean_neighbours(made.stage).word is Word.PASS
    assert sum(b"clean" in case.sent for case in made.played) == 10
    assert sum(case.sent.endswith(b"X-P: ") for case in made.played) == 5


@pytest.mark.parametrize(
    ("received", "end"),
    [(OK + OK + OK, End.OPEN), (BAD + OK, End.OPEN), (OK, End.OPEN), (b"", End.CLOSED)],
)
def test_one_touched_connection_is_enough(received: bytes, end: End) -> None:
    made = Made(
        ATTACK,
        lambda case: (received, end) if b"clean-7" in case.sent else (OK + OK, End.OPEN),
    )
    found = runners.clean_neighbours(made.stage)
    assert found.word is Word.FAIL
    assert found.actual.startswith("clean connection 8: ")


def test_resets_come_25_in_each_part() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.pids = [os.getpid()]
    assert runners.resets(made.stage).word is Word.PASS
    assert len(made.played) == 101
    assert all(case.steps[-1].op is Op.RESET for case in made.played)
    assert len({case.sent for case in made.played}) == 4


def test_two_hundred_connections_are_reset_at_once() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.pids = [os.getpid()]
    assert runners.resets_at_connect(made.stage).word is Word.PASS
    assert len(made.played) == 201
    assert all([step.op for step in case.steps] == [Op.RESET] for case in made.played)


def test_a_descriptor_that_stays_is_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "_SETTLE_S", 0.1)
    kept: list[int] = []

    def answer(case: Case) -> tuple[bytes, End]:
        kept.append(os.open(os.devnull, os.O_RDONLY))
        return b"", End.RESET

    made = Made(ATTACK, answer)
    made.pids = [os.getpid()]
    try:
        assert runners.resets_at_connect(made.stage).word is Word.FAIL
    finally:
        for descriptor in kept:
            os.close(descriptor)


def test_a_dead_server_fails_and_unknown_processes_prove_nothing() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    assert runners.resets(made.stage).word is Word.NOT_APPLICABLE
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.alive = False
    assert runners.resets(made.stage).word is Word.FAIL


@pytest.mark.parametrize(
    ("how", "word"), [("stalled", Word.PASS), ("closed", Word.WARN), ("sent", Word.FAIL)]
)
def test_a_client_that_never_reads_is_held_back(how: str, word: Word) -> None:
    made = Made(PAIR, lambda _: (b"", End.OPEN))
    made.pids = [os.getpid()]
    made.flooded = (1 << 20, how)
    assert runners.never_reading_client(made.stage).word is word
    made.alive = False
    assert runners.never_reading_client(made.stage).word is Word.FAIL
    made.alive, made.pids, made.flooded = True, [], (1 << 20, "stalled")
    assert runners.never_reading_client(made.stage).word is Word.NOT_APPLICABLE


def test_memory_that_grows_with_answers_nobody_reads_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figures = iter((1_000, 100_000))
    mine = resources.memory([os.getpid()])
    assert mine is not None

    def memory(_: object) -> object:
        return msgspec.structs.replace(mine, pss_kb=next(figures))

    made = Made(PAIR, lambda _: (b"", End.OPEN))
    monkeypatch.setattr(resources, "memory", memory)
    assert runners.never_reading_client(made.stage).word is Word.FAIL


def test_descriptors_are_counted() -> None:
    before = resources.descriptors([os.getpid()])
    assert before is not None
    with open(os.devnull) as _:
        assert resources.descriptors([os.getpid()]) == before + 1
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert resources.descriptors([gone.pid]) is None
    assert resources.descriptors([]) is None


def test_a_flood_stalls_where_nobody_reads_and_tells_of_a_close() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        looks: list[int] = []
        sent, how = wire.flood(
            "127.0.0.1", port, b"x" * 100, total=64 << 20, stall_s=0.2, look=lambda: looks.append(1)
        )
        assert how == "stalled"
        assert 0 < sent < 64 << 20
        assert looks == [1]

        def hang_up() -> None:
            listener.accept()[0].close()  # the one that stalled
            taken = listener.accept()[0]
            taken.recv(1000)
            taken.close()

        server = threading.Thread(target=hang_up)
        server.start()
        _, how = wire.flood(
            "127.0.0.1", port, b"x" * 100, total=64 << 20, stall_s=5, look=lambda: None
        )
        server.join()
        assert how == "closed"


def test_a_flood_is_whole_messages_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        taken = bytearray()

        def read() -> None:
            with listener.accept()[0] as talk:
                while piece := talk.recv(7777):
                    taken.extend(piece)
                    if len(taken) >= 300_000:
                        return

        server = threading.Thread(target=read)
        server.start()
        wire.flood(
            "127.0.0.1", port, b"0123456789", total=300_000, stall_s=5, look=lambda: server.join()
        )
        assert bytes(taken) == (b"0123456789" * len(taken))[: len(taken)]
