"""Connections beside bad ones: what happens on one must not show on another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import msgspec

from httpmark.harness.catalogue import delivery_modes
from httpmark.harness.catalogue.case_builder import SURPLUS_MS
from httpmark.harness.catalogue.placeholder_values import marked_request
from httpmark.harness.firing.programs.stage import (
    Found,
    Stage,
    bad_cases,
    is_success,
    mirrored_targets,
    numbered,
    request_and_answer,
    with_steps,
)
from httpmark.harness.judging import observation
from httpmark.harness.judging.observation import Sight
from httpmark.harness.model.cases import Case, Op, Step
from httpmark.harness.model.exchanges import Exchange, Outcome
from httpmark.harness.model.verdicts import Word

_NEIGHBOURS = 10
_IN_FLIGHT = 64
# Alone is slow, and silence is slowest: so many of the others, and so many of those that wait.
_ALONE_MAX = 120
_SILENT_MAX = 8
# A valid answer among bad requests may take so long, or ten times the slowest answer without them.
_TIMELY_MS = 1000
_TIMELY_TIMES = 10
_VALID_ALONE = 64


def clean_neighbours(stage: Stage) -> Found:
    """Ten poisoned connections beside ten clean ones: the clean ones see nothing of the others."""
    case = stage.case

    def clean(number: int) -> Case:
        request = marked_request(stage.facts, f"clean-{number}")
        steps = request_and_answer(stage, request)
        steps += [Step(Op.PAUSE, wait_ms=5), Step(Op.SEND, request, if_open=True)]
        steps += [Step(Op.AWAIT, wait_ms=stage.answer_ms, if_open=True)]
        steps += [Step(Op.WATCH, wait_ms=SURPLUS_MS, if_open=True)]
        return msgspec.structs.replace(with_steps(case, steps), methods=(b"GET",))

    # Half of them leave a whole request unread, half the beginning of one.
    prefix = b"GET /404 HTTP/1.1\r\nX-P: "
    whole = delivery_modes.message(case)
    poisons = [
        with_steps(case, request_and_answer(stage, octets))
        for octets in (whole, whole[: whole.index(b"GET /smug")] + prefix)
    ]
    turns = itertools.chain.from_iterable(
        (poisons[number % 2], clean(number)) for number in range(_NEIGHBOURS)
    )
    cases = numbered(turns)
    exchanges = stage.fire(cases, len(cases))
    for number in range(_NEIGHBOURS):
        made, exchange = cases[2 * number + 1], exchanges[2 * number + 1]
        if told := fault(observation.sight(made, exchange), b"clean-%d" % number):
            return Found(Word.FAIL, f"clean connection {number + 1}: {told}")
    return Found(Word.PASS, "all clean connections are answered as themselves")


def fault(sight: Sight, mark: bytes) -> str:
    """What is wrong with the answers to a clean connection; empty if they are its own."""
    if sight.outcome is not Outcome.ANSWERED:
        return f"{sight.outcome}"
    if sight.fault is not None:
        return f"no HTTP response: {sight.fault}"
    if len(sight.answers) > 2:
        return f"{len(sight.answers)} answers to two requests"
    for final, target in zip(sight.answers, mirrored_targets(sight), strict=True):
        if not is_success(final):
            return f"{final.response.status} to a valid request"
        if target is not None and not target.endswith(mark):
            return "the answer to another request"
    closed = sight.closed and sight.answers[-1].response.announces_close
    return "" if len(sight.answers) == 2 or closed else "a request is not answered"


def same_verdicts_at_64(stage: Stage) -> Found:
    """Bad requests get the same verdicts 64 at a time as alone."""
    all_of_them = stage.negatives()
    among = stage.fire(numbered((one.case for one in all_of_them), "among"), _IN_FLIGHT)
    by_case = {exchange.case: exchange for exchange in among}
    # Of those that pass in the crowd a part is asked alone, of the others as many again.
    wrong = [one for one in all_of_them if one.word(by_case[one.case.id]) is not Word.PASS]
    silent = [one for one in wrong if by_case[one.case.id].outcome is Outcome.HUNG]
    spoken = [one for one in wrong if by_case[one.case.id].outcome is not Outcome.HUNG]
    step = max(1, len(all_of_them) // _ALONE_MAX)
    doubted = {one.case.id for one in (*spoken[:_ALONE_MAX], *silent[:_SILENT_MAX])}
    chosen = [
        one
        for number, one in enumerate(all_of_them)
        if number % step == 0 or one.case.id in doubted
    ]
    alone = stage.fire(numbered((one.case for one in chosen), "alone"), 1)
    if not stage.alive():
        # A dead server is silent alone and in the crowd, which is no agreement.
        return Found(Word.FAIL, "the server does not answer any more")
    others = [
        one.case.id
        for one, exchange in zip(chosen, alone, strict=True)
        if one.word(exchange) is not one.word(by_case[one.case.id])
    ]
    if others:
        return Found(
            Word.FAIL, f"{len(others)} of {len(chosen)} verdicts differ, {others[0]} among them"
        )
    return Found(
        Word.PASS, f"{len(chosen)} verdicts are the same alone and among {len(all_of_them)}"
    )


def valid_load_among_bad_requests(stage: Stage) -> Found:
    """Valid requests among the bad ones are answered in time, each as itself."""

    def valid(number: int) -> Case:
        steps = request_and_answer(stage, marked_request(stage.facts, f"valid-{number}"))
        return msgspec.structs.replace(with_steps(stage.case, steps), methods=(b"GET",))

    def slowest_ms(exchanges: Iterable[Exchange]) -> float:
        return max((exchange.first_us or 0 for exchange in exchanges), default=0) / 1000

    alone_ms = slowest_ms(
        stage.fire(numbered(map(valid, range(_VALID_ALONE)), "alone"), _IN_FLIGHT)
    )
    limit_ms = max(_TIMELY_MS, _TIMELY_TIMES * alone_ms)
    bad = bad_cases(stage)
    turns = [one for n, negative in enumerate(bad) for one in (negative, valid(n))]
    beside_ms = 0.0
    for name in ("load", "again"):  # a busy machine may be why it is late once
        cases = numbered(turns, name)
        exchanges = stage.fire(cases, _IN_FLIGHT)
        for number in range(len(bad)):
            made, exchange = cases[2 * number + 1], exchanges[2 * number + 1]
            sight = observation.sight(made, exchange)
            told = fault(sight, b"valid-%d" % number) if sight.answers else f"{exchange.outcome}"
            if told and told != "a request is not answered":
                told = f"valid request {number + 1} beside {bad[number].id}: {told}"
                return Found(Word.FAIL, told)
        beside_ms = slowest_ms(exchanges[1::2])
        if beside_ms <= limit_ms:
            break
    times = f"the slowest in {beside_ms:.0f} ms, alone in {alone_ms:.0f} ms"
    word = Word.FAIL if beside_ms > limit_ms else Word.PASS
    return Found(word, f"{len(bad)} valid requests answered as themselves, {times}")
