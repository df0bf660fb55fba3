"""Asking again what is doubtful: cases that fail, what load may have caused, closes not seen.

The rules are those of docs/method.md: what load may have caused is asked again with few in flight,
whatever its verdict; what fails is asked three times, the last time nearly alone. A quick look
asks once more, and only what decides or ran out of time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec

from httpmark.harness.firing import room_for_others
from httpmark.harness.firing.case_stream import (
    AGAIN_IN_FLIGHT,
    CaseStream,
    Which,
    exhaust,
    patient,
)
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.judging import second_process
from httpmark.harness.judging.family_results import LINGERING_MAX
from httpmark.harness.judging.response_rules import close_rules
from httpmark.harness.model.cases import Await, Case
from httpmark.harness.model.exchanges import Attempt, Doubt, Exchange

# Load may be why time ran out among many in flight. All of that is asked again with few in flight,
# in lots, until most of a lot is silent again.
_LATE_LOT = 256
# Of the other doubts, the first few of each family are asked again. Where one of them ends in
# another way with few in flight, load was the cause, and the rest of the family is asked again.
_SAMPLE = 32
_QUICK_SAMPLE = 4
_FEWER = (128, 48)  # connections; whoever shows no sign of load with so many is believed
# How long an answer to the first of two writes is waited for: load made the shorter wait run out.
_LOOK_MS = 250
# A few at a time are no load, and share the 80 ms in which an answer too many is waited for.
_ALONE_IN_FLIGHT = 8
_ALONE_FEW = 6  # each may take its whole deadline
_TOGETHER = AGAIN_IN_FLIGHT - 1  # and a plain request beside them
_CLOSE_SLACK_MS = 500
_LOOKS = (Await.LOOK_FINAL, Await.LOOK_ANY)


class Doubts(msgspec.Struct, frozen=True):
    """What is to be asked again."""

    answered: set[Which]  # fails, and an answer came
    silent: set[Which]  # fails, and time ran out
    lingering: list[Which]  # a close was announced and did not come


def ask_again(
    stream: CaseStream,
    families: list[str],
    *,
    second: second_process.SecondProcess,
) -> None:
    """Ask again what is doubtful in families that were asked."""
    doubted = _doubted_by_load(stream, set(families))
    if stream.quick:
        _ask_once_more(stream, _doubts(stream, families, second), doubted)
        return
    late = Doubt.TIME_RAN_OUT
    _ask_late(stream, [which for which, why in doubted.items() if why is late])
    _ask_with_few(stream, {which: why for which, why in doubted.items() if why is not late})
    _ask_three_times(stream, _doubts(stream, families, second))


def _doubted_by_load(stream: CaseStream, families: set[str]) -> dict[Which, Doubt]:
    """What load may have caused, and how."""
    return {
        (family, case): why
        for family, case, why in stream.evidence.doubtful(stream.target.name)
        if family in families
    }


def _ask_late(stream: CaseStream, late: list[Which]) -> None:
    """Ask again with few in flight what ran out of time."""
    stream.ask_again(len(late))
    for begin in range(0, len(late), _LATE_LOT):
        lot = late[begin : begin + _LATE_LOT]
        again = map(_unhurried, stream.only(lot))
        asked = stream.play(again, in_flight=AGAIN_IN_FLIGHT, attempt=Attempt.LATE)
        if 2 * sum(1 for _ in asked) > len(lot):
            break


def _ask_with_few(stream: CaseStream, doubted: dict[Which, Doubt]) -> None:
    """Ask again with few in flight what ended as load makes it end, whatever its verdict is."""
    sample: set[Which] = set()
    for _, group in itertools.groupby(doubted, key=lambda which: which[0]):
        sample.update(itertools.islice(group, _SAMPLE))
    otherwise: set[str] = set()

    def compared(exchange: Exchange) -> bool:
        if exchange.doubt is not doubted[exchange.family, exchange.case]:
            otherwise.add(exchange.family)
        return True

    _ask(stream, sample, compared)
    rest = {which for which in doubted.keys() - sample if which[0] in otherwise}
    _ask_fewer_and_fewer(stream, rest, lambda exchange: True, attempt=Attempt.LATE)


def _ask_fewer_and_fewer(
    stream: CaseStream, rest: set[Which], keep: Callable[[Exchange], bool], *, attempt: Attempt
) -> None:
    """Ask with fewer and fewer connections, until one shows no sign of load."""

    def settles(exchange: Exchange) -> bool:
        if exchange.doubt is not None:
            return False
        rest.discard((exchange.family, exchange.case))
        return keep(exchange)

    for connections in _FEWER:
        _ask(stream, set(rest), settles, attempt=attempt, connections=connections)
    _ask(stream, rest, keep, attempt=attempt)


def _ask(
    stream: CaseStream,
    wanted: set[Which],
    keep: Callable[[Exchange], bool],
    *,
    attempt: Attempt = Attempt.LATE,
    connections: int | None = AGAIN_IN_FLIGHT,
) -> None:
    """Those who may wait longest come first, and the others are asked meanwhile.

    :param connections: at most, those that wait included; None: only those that do not wait.
    """
    if wanted:
        stream.ask_again(len(wanted))
        again = sorted(map(_unhurried, stream.only(wanted)), key=lambda case: -case.deadline_ms)
        asked = stream.play(
            again, in_flight=connections or AGAIN_IN_FLIGHT, connections_max=connections,
            attempt=attempt, keep=keep,
        )  # fmt: skip
        exhaust(asked)


def _ask_three_times(stream: CaseStream, doubts: Doubts) -> None:
    """Ask what fails three times, the last time nearly alone and with more patience."""
    both = doubts.answered | doubts.silent
    twice = (
        (_unhurried(case), attempt)
        for attempt in (Attempt.DOUBTED, Attempt.DOUBTED_AGAIN)
        for case in stream.only(both)
    )
    stream.ask_again(3 * len(both) + min(len(doubts.lingering), LINGERING_MAX))
    silent: dict[Which, None] = {}
    exhaust(stream.play_all(twice, in_flight=AGAIN_IN_FLIGHT, keep=_noting(silent)))
    alone = _ask_alone(stream, list(silent))
    left = Doubts(doubts.answered - alone, doubts.silent - alone, doubts.lingering)
    exhaust(stream.play_all(_last_plays(stream, left), in_flight=_ALONE_IN_FLIGHT))


def _noting(silent: dict[Which, None]) -> Callable[[Exchange], bool]:
    """Keeps every exchange, and notes which cases ran out of time."""

    def noted(exchange: Exchange) -> bool:
        if exchange.ran_out:
            silent[exchange.family, exchange.case] = None
        return True

    return noted


def _ask_alone(stream: CaseStream, silent: list[Which]) -> set[Which]:
    """Ask what binds and ran out of time so that no other case can be why.

    A few from all over the list are asked, and the others if one of the few is in time now. Those
    who wait do so together, as long as the server has room for others meanwhile. Else cases that
    never end may hold all its workers, and each is asked with nothing else in flight.

    :param silent: what ran out of time, whatever its level.
    :returns: those that were asked.
    """
    silent = stream.binding(silent)
    if not silent:
        return set()
    few = _few(silent, _TOGETHER)
    late = _late_together(stream, few)
    if late is None:
        return _ask_one_by_one(stream, silent)
    if late == len(few):
        return set(few)
    rest = [which for which in silent if which not in few]
    for begin in range(0, len(rest), _TOGETHER):
        lot = rest[begin : begin + _TOGETHER]
        if _late_together(stream, lot) is None:
            return {*few, *rest[:begin], *_ask_one_by_one(stream, rest[begin:])}
    return set(silent)


def _few(cases: list[Which], most: int) -> list[Which]:
    """A few from all over a list; all of a short one."""
    return cases if len(cases) <= most else cases[:: len(cases) // _ALONE_FEW]


def _late_together(stream: CaseStream, cases: list[Which]) -> int | None:
    """Ask cases together; returns how many run out of time again.

    None where one may have waited because of another: then nothing is kept.
    """
    target = stream.target
    room_for = min(target.jobs or AGAIN_IN_FLIGHT, target.at_once or AGAIN_IN_FLIGHT)
    if len(cases) >= room_for:  # one place is for the plain requests
        return None
    kept: list[Exchange] = []

    def held(exchange: Exchange) -> bool:
        kept.append(exchange)
        return False

    with room_for_others.RoomForOthers(target) as room:
        late = _late_alone(stream, cases, in_flight=len(cases), keep=held)
    if any(exchange.ran_out for exchange in kept) and not room.is_shown:
        return None
    stream.evidence.add(target.name, kept)
    return late


def _ask_one_by_one(stream: CaseStream, silent: list[Which]) -> set[Which]:
    """The same with nothing else in flight."""
    few = _few(silent, 2 * _ALONE_FEW - 1)
    if _late_alone(stream, few) == len(few):
        return set(few)
    _late_alone(stream, [which for which in silent if which not in few])
    return set(silent)


def _late_alone(
    stream: CaseStream,
    cases: list[Which],
    *,
    in_flight: int = 1,
    keep: Callable[[Exchange], bool] = lambda exchange: True,
) -> int:
    """Ask cases, one by one or few at a time; returns how many run out of time again."""
    if not cases:
        return 0
    stream.ask_again(len(cases))
    again = map(_unhurried, stream.only(cases))
    if not stream.quick:
        again = map(patient, again)
    asked = stream.play(
        again, in_flight=in_flight, connections_max=in_flight, attempt=Attempt.ALONE, keep=keep
    )
    return sum(exchange.ran_out for exchange in asked)


def _last_plays(stream: CaseStream, doubts: Doubts) -> Iterator[Play]:
    """What is asked for the last time; those who wait long come first, and wait together."""
    # Whether a close that is announced comes at all is known after ten seconds (RESP-33).
    for case in stream.only(doubts.lingering[:LINGERING_MAX]):
        yield _to_the_end(case), Attempt.TO_THE_END
    for wanted in (doubts.silent, doubts.answered):
        for case in stream.only(wanted):
            yield patient(_unhurried(case)), Attempt.ALONE


def _ask_once_more(stream: CaseStream, doubts: Doubts, doubted: dict[Which, Doubt]) -> None:
    """Ask once more what fails and decides, what ran out of time, and what load may have ended.

    Of a generated family the first few are asked. Where one of them ends in another way now, load
    was the cause, and what else of the family may have ended by load is asked, too. Everything else
    is judged by its first answer.

    :param doubted: what ended as load makes it end, whatever its verdict.
    """
    wanted = doubts.answered | doubts.silent
    ended = _sampled(stream, doubted) - wanted
    for family in {family for family, _ in ended}:  # these were counted already
        stream.fired.folded.pop(family, None)
    silent: dict[Which, None] = {}
    noting = _noting(silent)
    otherwise: set[str] = set()

    def compared(exchange: Exchange) -> bool:
        why = doubted.get((exchange.family, exchange.case))
        if why is not None and exchange.doubt is not why:
            otherwise.add(exchange.family)
        return noting(exchange)

    _ask(stream, wanted, compared, attempt=Attempt.DOUBTED, connections=None)
    _ask(stream, ended, compared, attempt=Attempt.DOUBTED)
    rest = {which for which in doubted.keys() - wanted - ended if which[0] in otherwise}
    for family in {family for family, _ in rest}:
        stream.fired.folded.pop(family, None)
    _ask_fewer_and_fewer(stream, rest, noting, attempt=Attempt.DOUBTED)
    _ask_alone(stream, list(silent))


def _sampled(stream: CaseStream, doubted: dict[Which, Doubt]) -> set[Which]:
    """Of what load may have ended: every single case, and a few of each generated family."""
    sample: set[Which] = set()
    for family, group in itertools.groupby(doubted, key=lambda which: which[0]):
        generated = stream.catalogue.families[family].generated
        sample.update(itertools.islice(group, _QUICK_SAMPLE if generated else None))
    return sample


def _doubts(
    stream: CaseStream, families: list[str], second: second_process.SecondProcess
) -> Doubts:
    """Judge what came, and say what of it is to be asked again.

    What the other cases say goes into ``fired.folded``.
    """
    found = Doubts(set(), set(), [])
    judged = second_process.judged_with(second, stream.stored, families, quick=stream.quick)
    for family in families:
        folded, doubted, lingering = judged[family]
        stream.fired.folded[family] = folded
        found.lingering.extend((family, case) for case in lingering)
        for case, late in doubted:
            (found.silent if late else found.answered).add((family, case))
    return found


def _unhurried(case: Case) -> Case:
    """The same case with more time for an answer before the next write."""
    replace = msgspec.structs.replace
    steps = tuple(
        replace(step, wait_ms=max(step.wait_ms, _LOOK_MS)) if step.kind in _LOOKS else step
        for step in case.steps
    )
    more = sum(step.wait_ms for step in steps) - sum(step.wait_ms for step in case.steps)
    return replace(case, steps=steps, deadline_ms=case.deadline_ms + more)


def _to_the_end(case: Case) -> Case:
    """The same case with time for a close that was announced to come late."""
    more = close_rules.CLOSE_LATE_US // 1000 + _CLOSE_SLACK_MS
    return msgspec.structs.replace(case, close_ms=more, deadline_ms=case.deadline_ms + more)
