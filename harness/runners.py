"""What one exchange cannot show: cases that a small program plays (``runner`` in scenarios).

Each runner plays its talks, looks at the server's processes where it must, and says what it found.
What needs them is not applicable where they are not known (another machine, no leave to look).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable

import msgspec

from httpmark.harness import corpus, delivery, observation, resources
from httpmark.harness.model import Case, Exchange, Facts, Op, Outcome, Step, Word
from httpmark.harness.observation import Final, Sight

_SETTLE_S = 5.0  # until a server has taken notice of resets and given back what they held
_POLL_S = 0.05


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner has to work with: the entry's case, and doors to the server."""

    case: Case
    facts: Facts
    # fire(cases, in_flight): plays them, keeps the exchanges, returns them in the order of cases
    fire: Callable[[list[Case], int], list[Exchange]]
    alive: Callable[[], bool]  # whether a plain request is answered
    pids: Callable[[], list[int]]  # the server's processes; none where they are not known
    # flood(octets, total, stall_s, look): sends again and again, reads nothing; looks while it is
    # still connected; the octets sent, and "stalled", "closed" or "sent"
    flood: Callable[[bytes, int, float, Callable[[], None]], tuple[int, str]]


class Found(msgspec.Struct, frozen=True):
    """What a runner says."""

    word: Word
    actual: str


Runner = Callable[[Stage], Found]


def _named(cases: Iterable[Case], name: str = "runner") -> list[Case]:
    """Each under a delivery of its own, so that all are kept beside each other."""
    return [
        msgspec.structs.replace(case, delivery=f"{name}@{number}", timeline=True)
        for number, case in enumerate(cases)
    ]


def _is_success(final: Final) -> bool:
    return 200 <= final.response.status < 300


def _targets(sight: Sight) -> list[bytes | None]:
    """The targets that the mirror understood, None where it is not shown."""
    return [final.mirror.target if final.mirror else None for final in sight.answers]


# --- pipelining ----------------------------------------------------------------------------------


def every_cut(stage: Stage) -> Found:
    """Two requests in one go, cut at every octet: two answers in order, whatever the cut."""
    cuts = list(delivery.deliveries(stage.case, "two", delivery.Known()))
    early = 0
    exchanges = stage.fire(cuts, 64)
    for cut, exchange in zip(cuts, exchanges, strict=True):
        sight = observation.sight(cut, exchange)
        told = _out_of_order(sight)
        if told == "early":
            early += 1
        elif told:
            return Found(Word.FAIL, f"{cut.delivery}: {told}")
    if early:
        return Found(Word.WARN, f"{early} of {len(cuts)} cuts end with an announced close")
    return Found(Word.PASS, f"two answers in order in all of {len(cuts)} cuts")


def _out_of_order(sight: Sight) -> str:
    """Why two answers are not in order; "early" where the first announced a close."""
    if sight.fault is not None:
        return f"no HTTP response: {sight.fault}"
    for number, (final, target) in enumerate(zip(sight.answers, _targets(sight), strict=True)):
        if not _is_success(final):
            return f"{final.response.status} to the request number {number + 1}"
        if target is not None and not target.endswith(b"id=%d" % number):
            return "an answer out of order"
    if len(sight.answers) == 2:
        return ""
    announced = bool(sight.answers) and sight.answers[-1].response.announces_close
    if len(sight.answers) == 1 and announced and sight.closed:
        return "early"
    return f"{len(sight.answers)} answers instead of 2"


_FLOOD_OCTETS = 64 << 20
_STALL_S = 2.0
_GROWTH_KB = 32 << 10


def never_reading_client(stage: Stage) -> Found:
    """64 MiB of requests to a server whose answers nobody reads: it stops reading in time."""
    pids = stage.pids()
    before = _memory_kb(pids)
    grown: list[int] = []

    def look() -> None:
        after = _memory_kb(pids)
        if before is not None and after is not None:
            grown.append(after - before)

    sent, how = stage.flood(delivery.message(stage.case), _FLOOD_OCTETS, _STALL_S, look)
    told = f"{how} after {sent / (1 << 20):.1f} MiB"
    growth = grown[0] if grown else None
    if growth is not None:
        told += f", memory grew by {max(growth, 0) / 1024:.1f} MiB"
    if not stage.alive():
        return Found(Word.FAIL, f"{told}; the server does not answer any more")
    if how == "sent":
        return Found(Word.FAIL, f"{told}: all of it was taken, and no answer read")
    if growth is None:
        return Found(Word.NOT_APPLICABLE, f"{told}; the server's memory is not known")
    if growth > _GROWTH_KB:
        return Found(Word.FAIL, told)
    return Found(Word.WARN if how == "closed" else Word.PASS, told)


def _memory_kb(pids: list[int]) -> int | None:
    """The memory of processes, what they share counted once; None where it is not known."""
    found = resources.memory(pids)
    return found.pss_kb if found is not None else None


# --- resets --------------------------------------------------------------------------------------


def resets(stage: Stage) -> Found:
    """Resets in request line, fields, content and answer, 25 of each."""
    octets = delivery.message(stage.case)
    line = octets.index(b"\r\n")
    head = octets.index(b"\r\n\r\n") + 4
    parts = [octets[: line // 2], octets[: line + 5], octets[: head + 2], octets]
    looks: list[list[Step]] = [[], [], [], [Step(Op.AWAIT, wait_ms=2000, kind=4)]]
    made = [
        _talk(stage.case, [Step(Op.SEND, part), *look, Step(Op.RESET)])
        for part, look in zip(parts, looks, strict=True)
        for _ in range(25)
    ]
    return _without_leak(stage, made)


def resets_at_connect(stage: Stage) -> Found:
    """Two hundred connections that are reset as soon as they stand."""
    return _without_leak(stage, [_talk(stage.case, [Step(Op.RESET)])] * 200)


def _talk(case: Case, steps: list[Step]) -> Case:
    return msgspec.structs.replace(
        case,
        steps=tuple(steps),
        canary=b"",
        deadline_ms=sum(step.wait_ms for step in steps) + 2000,
    )


def _without_leak(stage: Stage, cases: list[Case]) -> Found:
    """Plays cases; the server answers afterwards and holds no more descriptors than before."""
    # The first of its kind may make a server open what it keeps for good.
    stage.fire(_named(cases[:1], "before"), 1)
    pids = stage.pids()
    before = _settled(pids, None)
    stage.fire(_named(cases), 32)
    if not stage.alive():
        return Found(Word.FAIL, f"the server does not answer after {len(cases)} resets")
    if before is None:
        return Found(
            Word.NOT_APPLICABLE, "the server lives; its descriptors are not to be seen from here"
        )
    after = _settled(pids, before)
    if after is None:
        return Found(Word.FAIL, "a process of the server has gone")
    told = f"{before} descriptors before {len(cases)} resets, {after} after them"
    return Found(Word.PASS if after <= before else Word.FAIL, told)


def _settled(pids: list[int], wanted: int | None) -> int | None:
    """The descriptors of processes once they do not fall any more, or are as few as wanted."""
    deadline = time.monotonic() + _SETTLE_S
    held = resources.descriptors(pids)
    while held is not None and time.monotonic() < deadline:
        if wanted is not None and held <= wanted:
            break
        time.sleep(_POLL_S)
        now = resources.descriptors(pids)
        if wanted is None and now == held:
            break
        held = now
    return held


# --- desynchronisation ---------------------------------------------------------------------------


def clean_neighbours(stage: Stage) -> Found:
    """Ten poisoned connections in parallel with ten clean ones: these see nothing of those."""
    facts, case = stage.facts, stage.case
    place = "/mirror" if "mirror" in facts.capabilities else facts.path
    mark = "&" if "?" in place else "?"

    def clean(number: int) -> Case:
        request = (
            f"GET {place}{mark}clean-{number} HTTP/1.1\r\nHost: {facts.host}\r\n\r\n"
        ).encode("latin-1")
        steps = [Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=corpus.ANSWER_MS)]
        steps += [Step(Op.PAUSE, wait_ms=5), Step(Op.SEND, request, if_open=True)]
        steps += [Step(Op.AWAIT, wait_ms=corpus.ANSWER_MS, if_open=True)]
        steps += [Step(Op.WATCH, wait_ms=corpus.SURPLUS_MS, if_open=True)]
        return msgspec.structs.replace(_talk(case, steps), methods=(b"GET",))

    # Half of them leave a request behind, half the beginning of one, for whoever comes next.
    prefix = b"GET /404 HTTP/1.1\r\nX-P: "
    whole = delivery.message(case)
    poisons = [
        _talk(case, [Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=corpus.ANSWER_MS)])
        for octets in (whole, whole[: whole.index(b"GET /smug")] + prefix)
    ]
    turns = itertools.chain.from_iterable(
        (poisons[number % 2], clean(number)) for number in range(10)
    )
    cases = _named(turns)
    exchanges = stage.fire(cases, len(cases))
    for number in range(10):
        made, exchange = cases[2 * number + 1], exchanges[2 * number + 1]
        if told := _touched(observation.sight(made, exchange), b"clean-%d" % number):
            return Found(Word.FAIL, f"clean connection {number + 1}: {told}")
    return Found(Word.PASS, "all clean connections are answered as themselves")


def _touched(sight: Sight, mark: bytes) -> str:
    """What is wrong with the answers to a clean connection; nothing where they are its own."""
    if sight.outcome is not Outcome.ANSWERED:
        return f"{sight.outcome}"
    if sight.fault is not None:
        return f"no HTTP response: {sight.fault}"
    if len(sight.answers) > 2:
        return f"{len(sight.answers)} answers to two requests"
    for final, target in zip(sight.answers, _targets(sight), strict=True):
        if not _is_success(final):
            return f"{final.response.status} to a valid request"
        if target is not None and not target.endswith(mark):
            return "the answer to another request"
    closed = sight.closed and sight.answers[-1].response.announces_close
    return "" if len(sight.answers) == 2 or closed else "a request is not answered"


RUNNERS: dict[str, Runner] = {
    "clean_neighbours": clean_neighbours,
    "every_cut": every_cut,
    "never_reading_client": never_reading_client,
    "resets": resets,
    "resets_at_connect": resets_at_connect,
}
