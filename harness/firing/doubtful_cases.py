"""Asking again what is doubtful: cases that fail, what load may have caused, closes not seen.

The rules are those of docs/method.md: what load may have caused is asked again with few in flight,
whatever its verdict; what fails is asked three times, the last time nearly alone. A quick look
asks once more, and only what decides or ran out of time. Silence for which load may still be the
cause in the end proves nothing, and evidence says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec

from httpmark.harness.firing import asking_alone
from httpmark.harness.firing.case_stream import (
    AGAIN_IN_FLIGHT,
    CaseStream,
    Which,
    exhaust,
    patient,
    unhurried,
)
from httpmark.harness.firing.probe_frames import Play
from httpmark.harness.judging import second_process
from httpmark.harness.judging.family_results import LINGERING_MAX
from httpmark.harness.judging.response_rules import close_rules
from httpmark.harness.model.cases import Case
from httpmark.harness.model.exchanges import Attempt, Doubt, Exchange

# Load may be why time ran out among many in flight. All of that is asked again with few in flight,
# in lots, until most of a lot is silent again.
_LATE_LOT = 256
# Of the other doubts, the first few of each family are asked again. Where one of them ends in
# another way with few in flight, load was the cause, and the rest of the family is asked again.
_SAMPLE = 32
_QUICK_SAMPLE = 4
_FEWER = (128, 48)  # connections; whoever shows no sign of load with so many is believed
# A few at a time are no load, and share the 80 ms in which an answer too many is waited for.
_ALONE_IN_FLIGHT = 8
# Who closes again with few in flight is asked with hardly anyone, and not before the server is done
# with the crowd: it may go on closing for a while.
_HARDLY_ANY = 4
_CLOSES = (Doubt.RESET, Doubt.CLOSED_UNANNOUNCED)
_CLOSE_SLACK_MS = 500


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
    late = Doubt.TIME_RAN_OUT
    if stream.quick:
        doubts = _doubts(stream, families, second)
        heard = _ask_once_more(stream, doubts, doubted)
    else:
        _ask_late(stream, [which for which, why in doubted.items() if why is late])
        _ask_with_few(stream, {which: why for which, why in doubted.items() if why is not late})
        doubts = _doubts(stream, families, second)
        heard = _ask_three_times(stream, doubts)
    _say_what_proves_nothing(stream, set(families), heard)


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
        again = map(unhurried, stream.only(lot))
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

    _ask_until_few(stream, sample, compared, attempt=Attempt.LATE)
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
    _ask_until_few(stream, rest, keep, attempt=attempt)


def _ask_until_few(
    stream: CaseStream, wanted: set[Which], keep: Callable[[Exchange], bool], *, attempt: Attempt
) -> None:
    """Ask with few in flight, and who closes again with hardly anyone beside."""
    closing: set[Which] = set()
    _ask(stream, wanted, _sparing(closing, keep), attempt=attempt)
    _ask_the_closing(stream, closing, keep, attempt=attempt)


def _sparing(closing: set[Which], keep: Callable[[Exchange], bool]) -> Callable[[Exchange], bool]:
    """Keeps what ends in no close that a crowd may cause; the others are noted."""

    def spared(exchange: Exchange) -> bool:
        if exchange.doubt in _CLOSES:
            closing.add((exchange.family, exchange.case))
            return False
        return keep(exchange)

    return spared


def _ask_the_closing(
    stream: CaseStream, closing: set[Which], keep: Callable[[Exchange], bool], *, attempt: Attempt
) -> None:
    """Ask with hardly anyone beside, once the server is done with the crowd."""
    if closing:
        stream.aftermath.wait()
        _ask(stream, closing, keep, attempt=attempt, connections=_HARDLY_ANY)


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
        again = sorted(map(unhurried, stream.only(wanted)), key=lambda case: -case.deadline_ms)
        asked = stream.play(
            again, in_flight=connections or AGAIN_IN_FLIGHT, connections_max=connections,
            attempt=attempt, keep=keep,
        )  # fmt: skip
        exhaust(asked)


class _Heard(msgspec.Struct, frozen=True):
    """What asking again showed of those that ran out of time."""

    asked: set[Which]  # with few in flight
    again: set[Which]  # and ran out of time again
    alone: asking_alone.Alone


def _ask_three_times(stream: CaseStream, doubts: Doubts) -> _Heard:
    """Ask what fails three times, the last time nearly alone and with more patience."""
    both = doubts.answered | doubts.silent
    twice = (
        (unhurried(case), attempt)
        for attempt in (Attempt.DOUBTED, Attempt.DOUBTED_AGAIN)
        for case in stream.only(both)
    )
    stream.ask_again(3 * len(both) + min(len(doubts.lingering), LINGERING_MAX))
    silent: dict[Which, None] = {}
    exhaust(stream.play_all(twice, in_flight=AGAIN_IN_FLIGHT, keep=_noting(silent)))
    alone = asking_alone.ask(stream, list(silent))
    left = Doubts(doubts.answered - alone.asked, doubts.silent - alone.asked, doubts.lingering)
    exhaust(stream.play_all(_last_plays(stream, left), in_flight=_ALONE_IN_FLIGHT))
    return _Heard(doubts.silent, set(silent), alone)


def _say_what_proves_nothing(stream: CaseStream, families: set[str], heard: _Heard) -> None:
    """Tell evidence of which silence load may still be the cause.

    Who ran out of time and was not asked alone is believed where nearly all of the others ran out
    again; who was not even asked with few in flight, where those ran out again, too.
    """
    is_plain = heard.alone.is_plain
    is_plain_with_few = is_plain and len(heard.again) >= asking_alone.SHARE * len(heard.asked)
    still = {
        which
        for which, why in _doubted_by_load(stream, families).items()
        if why is Doubt.TIME_RAN_OUT and which not in heard.alone.asked
    }
    unproven = set() if is_plain_with_few else still - heard.asked
    if not is_plain:
        unproven.update(stream.binding(sorted(still & heard.asked)))
    for family in {family for family, _ in unproven}:  # these were counted already
        stream.fired.folded.pop(family, None)
    stream.evidence.doubt_silence(stream.target.name, unproven)


def _noting(silent: dict[Which, None]) -> Callable[[Exchange], bool]:
    """Keeps every exchange, and notes which cases ran out of time."""

    def noted(exchange: Exchange) -> bool:
        if exchange.ran_out:
            silent[exchange.family, exchange.case] = None
        return True

    return noted


def _last_plays(stream: CaseStream, doubts: Doubts) -> Iterator[Play]:
    """What is asked for the last time; those who wait long come first, and wait together."""
    # Whether a close that is announced comes at all is known after ten seconds (RESP-33).
    for case in stream.only(doubts.lingering[:LINGERING_MAX]):
        yield _to_the_end(case), Attempt.TO_THE_END
    for wanted in (doubts.silent, doubts.answered):
        for case in stream.only(wanted):
            yield patient(unhurried(case)), Attempt.ALONE


def _ask_once_more(stream: CaseStream, doubts: Doubts, doubted: dict[Which, Doubt]) -> _Heard:
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

    closing: set[Which] = set()
    spared = _sparing(closing, compared)
    asked, silent_asked = doubts.answered, set[Which]()
    for lot in asking_alone.lots(sorted(doubts.silent), _LATE_LOT):
        silent_asked.update(lot)
        _ask(stream, asked | set(lot), spared, attempt=Attempt.DOUBTED, connections=None)
        asked = set()
        if len(doubts.silent) > _LATE_LOT and 2 * sum(which in silent for which in lot) > len(lot):
            break
    _ask(stream, asked, spared, attempt=Attempt.DOUBTED, connections=None)
    _ask(stream, ended, spared, attempt=Attempt.DOUBTED)
    _ask_the_closing(stream, closing, compared, attempt=Attempt.DOUBTED)
    rest = {which for which in doubted.keys() - wanted - ended if which[0] in otherwise}
    for family in {family for family, _ in rest}:
        stream.fired.folded.pop(family, None)
    _ask_fewer_and_fewer(stream, rest, noting, attempt=Attempt.DOUBTED)
    alone = asking_alone.ask(stream, list(silent))
    return _Heard(silent_asked, set(silent), alone)


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


def _to_the_end(case: Case) -> Case:
    """The same case with time for a close that was announced to come late."""
    more = close_rules.CLOSE_LATE_US // 1000 + _CLOSE_SLACK_MS
    return msgspec.structs.replace(case, close_ms=more, deadline_ms=case.deadline_ms + more)
