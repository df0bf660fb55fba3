"""Runners against exchanges and processes made up for them: each can pass, and each can fail."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

import msgspec
import pytest

from httpmark.harness.catalogue import loading
from httpmark.harness.firing.programs import (
    bad_requests,
    held_resources,
    neighbours,
    pipelining,
    reflections,
    resets,
    slow_clients,
    table,
)
from httpmark.harness.firing.programs.stage import Found, Negative, Program, Stage
from httpmark.harness.model.cases import SECRET_TEXT, Case, Facts, Op, Step
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.timeline import EVENT_RECORD
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import memory_use, open_connections, sockets

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

SILENT = {End.OPEN: Outcome.HUNG, End.CLOSED: Outcome.CLOSED, End.RESET: Outcome.RESET}
Answer = Callable[[Case], tuple[bytes, End]]


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the made-up servers hold; this process opens and closes others meanwhile."""
    names: list[str] = []
    monkeypatch.setattr(open_connections, "descriptors", lambda pids: len(names) if pids else None)
    return names


def drew(case: Case, received: bytes, end: End) -> Exchange:
    records = [(1, len(case.sent)), (2, len(received))] + [(3, 0)] * (end is not End.OPEN)
    return Exchange(
        case.id, case.family, case.sent, received,
        Outcome.ANSWERED if received else SILENT[end], end, 1, 1000, len(case.sent),
        delivery=case.delivery,
        timeline=b"".join(
            EVENT_RECORD.pack(kind, at, octets) for at, (kind, octets) in enumerate(records)
        ),
    )  # fmt: skip


class Made:
    """A stage whose server answers as a function says; keeps what was played."""

    def __init__(self, case: Case, answer: Answer) -> None:
        self.played: list[Case] = []
        self.alive = True
        self.pids: list[int] = []
        self.flooded = (0, "stalled")
        self.stall_s = 0.0
        self.late = (b"", b"", sockets.Ending.STUCK)
        self.negatives: list[Negative] = []
        self.answer = answer
        self.in_flight: list[int] = []
        self.stage = Stage(
            case=case,
            facts=Facts(host="h", path="/"),
            fire=self._fire,
            alive=lambda: self.alive,
            pids=lambda: self.pids,
            flood=self._flood,
            trickle=self._trickle,
            read_late=self._read_late,
            negatives=lambda: self.negatives,
        )

    def _fire(self, cases: list[Case], in_flight: int) -> list[Exchange]:
        assert in_flight > 0
        self.in_flight.append(in_flight)
        assert len({case.delivery for case in cases}) == len(cases), "evidence would keep only one"
        assert not {case.delivery for case in cases} & {case.delivery for case in self.played}
        self.played += cases
        return [drew(case, *self.answer(case)) for case in cases]

    def _read_late(
        self,
        octets: bytes,
        is_whole: Callable[[bytearray], bool],
        quiet_s: float,
        patience_s: float,
        opening: bytes,
    ) -> sockets.ReadLate:
        assert octets
        assert quiet_s < patience_s
        head, received, ending = self.late
        is_whole(bytearray(received))
        return sockets.ReadLate(head, received, ending)

    def _trickle(
        self, octets: bytes, clients: int, seconds: float, look: Callable[[], None]
    ) -> int:
        look()
        return clients

    def _flood(
        self, octets: bytes, total: int, stall_s: float, look: Callable[[], None]
    ) -> tuple[int, str]:
        look()
        self.stall_s = stall_s
        return self.flooded


def test_a_pair_is_cut_at_every_byte() -> None:
    made = Made(PAIR, lambda _: (OK + OK, End.OPEN))
    assert pipelining.every_cut(made.stage).word is Word.PASS
    assert len(made.played) == len(PAIR.sent) - 1


@pytest.mark.parametrize(("at_once", "most"), [(None, 6), (16, 16), (512, 64)])
def test_cuts_are_played_as_many_at_once_as_the_target_bears(
    at_once: int | None, most: int
) -> None:
    """Where nobody asked, a listen queue of five must not drop one of them."""
    made = Made(PAIR, lambda _: (OK + OK, End.OPEN))
    facts = msgspec.structs.replace(made.stage.facts, at_once=at_once)
    pipelining.every_cut(msgspec.structs.replace(made.stage, facts=facts))
    assert made.in_flight == [most]


@pytest.mark.parametrize(
    ("received", "end", "word"),
    [
        (OK, End.OPEN, Word.FAIL),
        (OK + BAD, End.OPEN, Word.FAIL),
        (OK + OK + OK, End.OPEN, Word.FAIL),
        (b"nonsense\r\n\r\n", End.OPEN, Word.FAIL),
        (b"", End.OPEN, Word.FAIL),
        (CLOSING, End.CLOSED, Word.WARN),
        (CLOSING, End.OPEN, Word.WARN),  # no clause says how soon the close has to come
        (OK, End.CLOSED, Word.FAIL),
    ],
)
def test_one_bad_cut_is_enough(received: bytes, end: End, word: Word) -> None:
    made = Made(
        PAIR,
        lambda case: (
            (received, end) if case.delivery in ("two@40", "alone@0") else (OK + OK, End.OPEN)
        ),
    )
    found = pipelining.every_cut(made.stage)
    assert found.word is word
    assert word is Word.WARN or found.actual.startswith("two@40: ")


def test_a_cut_that_fails_only_in_the_crowd_is_no_fault() -> None:
    made = Made(
        PAIR,
        lambda case: (
            (b"", End.OPEN) if case.delivery in ("two@3", "two@40") else (OK + OK, End.OPEN)
        ),
    )
    found = pipelining.every_cut(made.stage)
    assert found == Found(Word.PASS, f"two answers in order in all {len(PAIR.sent) - 1} cuts")
    assert made.in_flight[1:] == [1, 1]
    assert [case.delivery for case in made.played[-2:]] == ["alone@0", "alone@1"]


def test_clean_connections_are_ten_beside_ten() -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        return (OK + OK, End.OPEN) if b"clean" in case.sent else (BAD, End.CLOSED)

    made = Made(ATTACK, answer)
    assert neighbours.clean_neighbours(made.stage).word is Word.PASS
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
    found = neighbours.clean_neighbours(made.stage)
    assert found.word is Word.FAIL
    assert found.actual.startswith("clean connection 8: ")


def test_resets_come_25_in_each_part() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.pids = [os.getpid()]
    assert resets.resets(made.stage).word is Word.PASS
    assert len(made.played) == 101
    assert all(case.steps[-1].op is Op.RESET for case in made.played)
    assert len({case.sent for case in made.played}) == 4


def test_two_hundred_connections_are_reset_at_once() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.pids = [os.getpid()]
    assert resets.resets_at_connect(made.stage).word is Word.PASS
    assert len(made.played) == 201
    assert all([step.op for step in case.steps] == [Op.RESET] for case in made.played)


def test_a_descriptor_that_stays_is_a_leak(
    monkeypatch: pytest.MonkeyPatch, held: list[str]
) -> None:
    monkeypatch.setattr(held_resources, "_SETTLE_S", 0.1)

    def answer(case: Case) -> tuple[bytes, End]:
        held.append(case.id)
        return b"", End.RESET

    made = Made(ATTACK, answer)
    made.pids = [os.getpid()]
    assert resets.resets_at_connect(made.stage).word is Word.FAIL


def test_a_dead_server_fails_and_unknown_processes_prove_nothing() -> None:
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    assert resets.resets(made.stage).word is Word.NOT_APPLICABLE
    made = Made(ATTACK, lambda _: (b"", End.RESET))
    made.alive = False
    assert resets.resets(made.stage).word is Word.FAIL


@pytest.mark.parametrize(
    ("how", "word"), [("stalled", Word.PASS), ("closed", Word.WARN), ("sent", Word.WARN)]
)
def test_a_client_that_never_reads_is_held_back(how: str, word: Word) -> None:
    made = Made(PAIR, lambda _: (b"", End.OPEN))
    made.pids = [os.getpid()]
    made.flooded = (1 << 20, how)
    assert slow_clients.never_reading_client(made.stage).word is word
    made.alive = False
    assert slow_clients.never_reading_client(made.stage).word is Word.FAIL
    made.alive, made.pids, made.flooded = True, [], (1 << 20, "stalled")
    assert slow_clients.never_reading_client(made.stage).word is Word.NOT_APPLICABLE
    made.flooded = (64 << 20, "sent")
    assert slow_clients.never_reading_client(made.stage).word is Word.FAIL


def test_a_slow_server_has_longer_before_it_counts_as_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made(PAIR, lambda _: (b"", End.OPEN))
    for took_s, stall_s in ((0.001, 0.5), (0.01, 1.0), (3.0, 2.0)):
        clock = iter((0.0, took_s))
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: next(clock))
        slow_clients.never_reading_client(made.stage)
        assert made.stall_s == stall_s


MIB = 1024  # in KiB


@pytest.mark.parametrize(
    ("growth_mib", "how", "word"),
    [
        ((2, 1), "stalled", Word.PASS),
        ((90, 1), "stalled", Word.PASS),  # what a server needs once does not count
        ((90, 40, 1), "stalled", Word.PASS),  # nor what it needs twice, as it grows its heap
        ((90, 40, 40), "stalled", Word.FAIL),  # each client costs as much
        ((0, 70, 70), "sent", Word.FAIL),  # the first was kept in memory of before
        ((2, 1), "sent", Word.WARN),  # nothing of it is kept
        ((2, 1), "closed", Word.WARN),
    ],
)
def test_memory_counts_that_grows_with_each_client_that_never_reads(
    growth_mib: tuple[int, ...], how: str, word: Word, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = memory_use.memory([os.getpid()])
    assert mine is not None
    at_kb, looked = 1000, False
    grown = iter(growth_mib)

    def memory(_: object) -> object:
        nonlocal at_kb, looked
        at_kb += next(grown) * MIB if looked else 0
        looked = not looked
        return msgspec.structs.replace(mine, pss_kb=at_kb)

    made = Made(PAIR, lambda _: (b"", End.OPEN))
    made.flooded = (1 << 20, how)
    monkeypatch.setattr(memory_use, "memory", memory)
    assert slow_clients.never_reading_client(made.stage).word is word
    assert list(grown) == []


def negative(id: str, group: str = "CL") -> Negative:
    def word(exchange: Exchange) -> Word:
        return Word.PASS if exchange.received == BAD else Word.FAIL

    case = Case(id, id, (Step(Op.SEND, b"bad " + id.encode()), Step(Op.AWAIT, wait_ms=9)))
    return Negative(group, case, word)


NEGATIVES = [negative(f"bad-{number}", f"G{number % 3}") for number in range(9)]


def stage_of(answer: Answer, case: Case = PAIR) -> Made:
    made = Made(case, answer)
    made.negatives = NEGATIVES
    made.pids = [os.getpid()]
    return made


LIVENESS = [
    bad_requests.alive_after_each_family,
    bad_requests.not_restarted,
    bad_requests.gives_back,
    bad_requests.thousand_bad_requests,
    bad_requests.limit_sized_requests,
]


@pytest.mark.parametrize("runner", [*LIVENESS, neighbours.same_verdicts_at_64])
def test_a_server_that_lives_passes(runner: Program) -> None:
    made = stage_of(lambda _: (BAD, End.CLOSED))
    assert runner(made.stage).word is Word.PASS
    assert made.played


@pytest.mark.parametrize(
    "runner", [*LIVENESS, slow_clients.slow_readers, neighbours.same_verdicts_at_64]
)
def test_a_server_that_does_not_answer_afterwards_fails(
    runner: Program,
) -> None:
    made = stage_of(lambda _: (BAD, End.CLOSED))
    made.alive = False
    assert runner(made.stage).word is Word.FAIL


def test_a_crash_is_charged_to_its_family() -> None:
    made = stage_of(lambda _: (BAD, End.CLOSED))

    def answer(case: Case) -> tuple[bytes, End]:
        made.alive = made.alive and case.id != "bad-1"
        return BAD, End.CLOSED

    made.answer = answer
    assert bad_requests.alive_after_each_family(made.stage).actual.endswith("after G1")


def test_a_replaced_process_is_a_restart() -> None:
    made = stage_of(lambda _: (BAD, End.CLOSED))

    def answer(case: Case) -> tuple[bytes, End]:
        made.pids = [1, 2]
        return BAD, End.CLOSED

    made.answer = answer
    assert bad_requests.not_restarted(made.stage).word is Word.FAIL
    made.answer, made.pids, made.played = lambda _: (BAD, End.CLOSED), [], []
    assert bad_requests.not_restarted(made.stage).word is Word.NOT_APPLICABLE


def test_memory_or_descriptors_that_stay_fail(
    monkeypatch: pytest.MonkeyPatch, held: list[str]
) -> None:
    monkeypatch.setattr(held_resources, "_SETTLE_S", 0.1)
    made = stage_of(lambda _: (BAD, End.CLOSED))

    def answer(case: Case) -> tuple[bytes, End]:
        held.append(case.id)
        return BAD, End.CLOSED

    made.answer = answer
    found = bad_requests.gives_back(made.stage)
    assert (found.word, found.actual) == (Word.FAIL, "9 descriptors before, 18 after")
    for runner in (
        bad_requests.gives_back,
        bad_requests.limit_sized_requests,
        slow_clients.slow_readers,
    ):
        for figures, word in (((1, 100_000), Word.FAIL), ((1, 100), Word.PASS)):
            told = iter(figures)
            monkeypatch.setattr(held_resources, "memory_kb", lambda _, told=told: next(told))
            assert runner(stage_of(lambda _: (BAD, End.CLOSED)).stage).word is word
        monkeypatch.setattr(held_resources, "memory_kb", lambda _: None)
        found = runner(stage_of(lambda _: (BAD, End.CLOSED)).stage)
        assert found.word is Word.NOT_APPLICABLE


def test_a_verdict_that_hangs_on_neighbours_fails() -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        return (OK if case.delivery.startswith("among") else BAD), End.OPEN

    assert neighbours.same_verdicts_at_64(stage_of(answer).stage).word is Word.FAIL


def test_one_verdict_of_many_that_hangs_on_neighbours_is_enough() -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        spoiled = case.delivery.startswith("among") and case.id == "bad-333"
        return (OK if spoiled else BAD), End.OPEN

    made = stage_of(answer)
    made.negatives = [negative(f"bad-{number}") for number in range(600)]
    found = neighbours.same_verdicts_at_64(made.stage)
    assert (found.word, "bad-333" in found.actual) == (Word.FAIL, True)
    assert len(made.played) < 600 + 2 * 120, "not all of them alone"


@pytest.mark.parametrize(
    ("received", "end", "word"),
    [
        (OK, End.OPEN, Word.PASS),
        (CLOSING, End.CLOSED, Word.PASS),
        (BAD, End.OPEN, Word.FAIL),
        (OK + OK + OK, End.OPEN, Word.FAIL),
        (b"", End.OPEN, Word.FAIL),
        (b"", End.CLOSED, Word.FAIL),
        (b"nonsense\r\n\r\n", End.OPEN, Word.FAIL),
    ],
)
def test_one_valid_request_that_is_harmed_is_enough(received: bytes, end: End, word: Word) -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        if b"valid-4 " in case.sent:
            return received, end
        return (OK if b"valid" in case.sent else BAD), End.OPEN

    assert neighbours.valid_load_among_bad_requests(stage_of(answer).stage).word is word


@pytest.mark.parametrize(
    ("late", "word"),
    [((), Word.PASS), (("load",), Word.PASS), (("load", "again"), Word.FAIL)],
)
def test_a_valid_answer_that_is_late_among_bad_requests_twice_fails(
    late: tuple[str, ...], word: Word
) -> None:
    made = stage_of(lambda case: (OK if b"valid" in case.sent else BAD, End.OPEN))

    def fire(cases: list[Case], in_flight: int) -> list[Exchange]:
        return [
            msgspec.structs.replace(
                exchange,
                first_us=1_500_000
                if exchange.delivery.startswith(late) and b"valid-4 " in exchange.sent
                else 2_000,
            )
            for exchange in made.stage.fire(cases, in_flight)
        ]

    found = neighbours.valid_load_among_bad_requests(msgspec.structs.replace(made.stage, fire=fire))
    assert found.word is word
    assert "alone in 2 ms" in found.actual


HTML = b"HTTP/1.1 400 Bad\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"


def test_markup_that_comes_back_in_a_page_fails() -> None:
    def page(text: bytes) -> bytes:
        return HTML % (len(text), text)

    def reflects(case: Case) -> tuple[bytes, End]:
        return page(b"<p>no " + case.sent.split(b" ")[0] + b" here"), End.CLOSED

    found = reflections.markup_in_every_place(stage_of(reflects).stage)
    assert found.word is Word.FAIL
    assert found.actual.startswith("the method")
    escaped = page(b"<p>no &quot;&gt;&lt;script&gt; here")
    found = reflections.markup_in_every_place(stage_of(lambda _: (escaped, End.CLOSED)).stage)
    assert found.word is Word.PASS
    found = reflections.markup_in_every_place(stage_of(lambda _: (b"", End.OPEN)).stage)
    assert found.word is Word.FAIL


SECRET = SECRET_TEXT.encode()


def found_at(place: bytes) -> bytes:
    return b"HTTP/1.1 301 x\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % place


@pytest.mark.parametrize(
    ("received", "followed", "word"),
    [
        (OK, OK, Word.PASS),
        (BAD, OK, Word.PASS),
        (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SECRET), SECRET), OK, Word.FAIL),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nroot:x:0:0:x:/", OK, Word.FAIL),
        (b"nonsense\r\n\r\n", OK, Word.FAIL),
        (b"", OK, Word.FAIL),
        (found_at(b"/a"), OK, Word.PASS),
        (found_at(b"/a"), b"HTTP/1.1 200 OK\r\n\r\n" + SECRET, Word.FAIL),
        (found_at(b"http://h/a"), b"HTTP/1.1 200 OK\r\n\r\n" + SECRET, Word.FAIL),
        (found_at(b"http://h/a"), OK, Word.PASS),
        (found_at(b"http://elsewhere/a"), OK, Word.FAIL),
        (found_at(b"//etc/passwd"), OK, Word.FAIL),
        (found_at(b"a"), OK, Word.PASS),
    ],
)  # fmt: skip
def test_a_path_stays_in_its_folder(received: bytes, followed: bytes, word: Word) -> None:
    def answer(case: Case) -> tuple[bytes, End]:
        return (followed if case.delivery.startswith("followed") else received), End.OPEN

    assert reflections.follow_redirect(stage_of(answer).stage).word is word


def test_a_close_without_an_answer_gives_nothing_away() -> None:
    assert (
        reflections.follow_redirect(stage_of(lambda _: (b"", End.CLOSED)).stage).word is Word.PASS
    )


def test_a_reader_that_is_held_beyond_the_write_timeout_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = iter((10, 74, 10, 10))
    monkeypatch.setattr(open_connections, "descriptors", lambda _: next(held))
    made = stage_of(lambda _: (b"", End.OPEN))
    stage = msgspec.structs.replace(
        made.stage, facts=Facts(host="h", path="/", timeouts={"write_s": 1})
    )
    assert slow_clients.slow_readers(stage).word is Word.WARN
    assert slow_clients.slow_readers(stage).word is Word.PASS


def test_a_trickle_reads_a_byte_a_second_and_counts_who_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        asked: list[bytes] = []
        kept: list[socket.socket] = []

        def serve() -> None:
            for number in range(3):
                talk = listener.accept()[0]
                asked.append(talk.recv(100))
                if number == 0:
                    talk.close()
                else:
                    talk.sendall(b"x" * 100)
                    kept.append(talk)

        server = threading.Thread(target=serve)
        server.start()
        looks: list[int] = []
        left = sockets.trickle(
            "127.0.0.1", port, b"GET", clients=3, seconds=1.5, look=lambda: looks.append(1)
        )
        server.join()
        assert (left, looks, asked) == (2, [1], [b"GET"] * 3)
        for talk in kept:
            talk.close()


def test_every_runner_of_a_scenario_is_there() -> None:
    for family in loading.load().families.values():
        if family.runner is not None:
            assert family.runner in table.PROGRAMS, family.id


def test_a_flood_stalls_where_nobody_reads_and_tells_of_a_close() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        looks: list[int] = []
        sent, how = sockets.flood(
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
        _, how = sockets.flood(
            "127.0.0.1", port, b"x" * 100, total=64 << 20, stall_s=5, look=lambda: None
        )
        server.join()
        assert how == "closed"


def test_a_flood_sees_a_close_although_the_other_side_reads_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        held: list[socket.socket] = []

        def close_its_side() -> None:
            taken = listener.accept()[0]
            taken.shutdown(socket.SHUT_WR)
            held.append(taken)

        server = threading.Thread(target=close_its_side)
        server.start()
        _, how = sockets.flood(
            "127.0.0.1", port, b"x" * 100, total=64 << 20, stall_s=0.2, look=lambda: None
        )
        server.join()
        held[0].close()
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
        sockets.flood(
            "127.0.0.1", port, b"0123456789", total=300_000, stall_s=5, look=lambda: server.join()
        )
        assert bytes(taken) == (b"0123456789" * len(taken))[: len(taken)]
