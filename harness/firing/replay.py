"""One case sent again: both sides of the wire, the outcome and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from httpmark.harness.catalogue import (
    delivery_modes,
    expectation_words,
    loading,
)
from httpmark.harness.catalogue.catalogue import Planned
from httpmark.harness.catalogue.expectation_words import with_words
from httpmark.harness.catalogue.lookup import find
from httpmark.harness.catalogue.step_words import own_steps, played_in_words
from httpmark.harness.firing import first_questions, shrinking, targets
from httpmark.harness.firing.probe import RunningProbe
from httpmark.harness.http import masking, shell_lines
from httpmark.harness.http.masking import Mask
from httpmark.harness.http.printable import escaped_lines
from httpmark.harness.judging import (
    answer_difference,
    delivery_comparison,
    family_results,
    judge,
    published_rule,
)
from httpmark.harness.judging.response_rules.collector import Collector
from httpmark.harness.model.cases import (
    Case,
    Facts,
    Family,
    Op,
    Step,
)
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import Word


class Replayed(msgspec.Struct, frozen=True):
    """What there is to show of a case that was sent again, and its verdict.

    Rules that hold of every answer are shown and have no part in the verdict: a server that sends
    no Date would fail each case.
    """

    text: str
    word: Word


def replay(name: str, target: targets.Target, *, hardened: bool = False) -> Replayed:
    """Send one case and show both sides of the wire, the outcome and the verdict.

    :param hardened: judge by the ruleset of that name.
    :raises HarnessError: there is no such case.
    """
    family, planned, facts = _addressed(name, target)
    if family.runner is not None:
        raise HarnessError(
            f"{planned.case.id} is played by a program and cannot be sent alone; run "
            f"httpmark check TARGET --suite {family.suite} --case {planned.case.id}"
        )
    exchange = _sent(planned.case, target)
    if planned.expectation is None:
        verdict = published_rule.verdict_by_word(family, exchange, facts)
    else:
        verdict = judge.Judge(facts, hardened=hardened).judge(planned, exchange)
    verdict = family_results.strict(verdict, family) if hardened else verdict
    text = "\n".join(
        (
            f"{planned.case.id} to {target.place}",
            "sent:",
            escaped_lines(Mask(target.header).sent(exchange.sent[: exchange.sent_octets])),
            *_came("received", exchange, target),
            f"expected: {with_words(verdict.expected)}",
            f"actual:   {expectation_words.came(verdict.actual)}",
            f"verdict:  {verdict.word}",
            *_of_every_answer(planned.case, exchange, target.facts()),
        )
    )
    return Replayed(text, verdict.word)


def replay_cut(name: str, target: targets.Target, cut: str) -> Replayed:
    """Send a case in one write, and in the cut that is named, and show how the answers differ.

    The verdict is a failure if they do, every time.

    :param cut: the name of a delivery as findings show it, such as ``two@17``.
    :raises HarnessError: there is no such case, or no such cut of it.
    """
    family, planned, facts = _addressed(name, target)
    case = planned.case
    if not delivery_modes.is_delivered(family, case.id):
        raise HarnessError(f"{case.id}: this message is only sent whole; leave the cut out")
    whole = delivery_modes.one(case)
    exchanges = [_sent(whole, target), _sent(whole, target)]
    alone = tuple(answer_difference.compared(whole, exchange) for exchange in exchanges)
    known = delivery_comparison.depends(case, facts, alone, delivery_modes.BUFFERS)
    shown = [
        f"{case.id} to {target.place}",
        "sent:",
        escaped_lines(Mask(target.header).sent(delivery_modes.message(case))),
        *_came("received, in one write", exchanges[0], target),
    ]
    if known is None:
        why = "in one write it got two different answers, so cuts cannot be compared"
        return Replayed("\n".join((*shown, why)), Word.UNSTABLE)
    mode = delivery_modes.mode_of(cut)
    made = delivery_modes.deliveries(case, mode, known) if mode in delivery_modes.MODES else ()
    chosen = next((one for one in made if one.delivery == cut), None)
    if chosen is None:
        raise HarnessError(f"{case.id}: it has no delivery {cut!r}; name one like two@17")
    cuts = [_sent(chosen, target) for _ in range(_TIMES)]
    told = [delivery_comparison.unlike(family, alone[0], chosen, exchange) for exchange in cuts]
    differing = [one for one in told if one]
    own = [step for step in own_steps(chosen) if step.op in (Op.SEND, Op.PAUSE)]
    writes = sum(step.op is Op.SEND for step in own)
    if writes <= _WRITES_SHOWN:
        shown += played_in_words(_masked(own, Mask(target.header)))
    differs = (
        f"differs: {differing[-1]} ({len(differing)}" if differing else f"is the same ({_TIMES}"
    )
    text = "\n".join(
        (
            *shown,
            *_came(f"received, cut as {cut} in {writes} writes", cuts[-1], target),
            f"the answer {differs} of {_TIMES} times)",
        )
    )
    always = Word.FAIL if len(differing) == _TIMES else Word.UNSTABLE
    return Replayed(text, always if differing else Word.PASS)


def _masked(steps: Sequence[Step], mask: Mask) -> Iterator[Step]:
    """The same steps without the user's own values, even where a cut divides one."""
    rest = mask.sent(b"".join(step.data for step in steps))
    for step in steps:
        data, rest = rest[: len(step.data)], rest[len(step.data) :]
        yield msgspec.structs.replace(step, data=data)


_TIMES = 3  # a cut counts if it differs every time
_WRITES_SHOWN = 6


def _came(what: str, exchange: Exchange, target: targets.Target) -> list[str]:
    """What came back, under a heading."""
    return [
        f"{what} ({exchange.outcome}, connection {exchange.end}, {exchange.end_us} us):",
        escaped_lines(Mask(target.header).received(exchange.received)) or "(nothing)",
    ]


def _sent(case: Case, target: targets.Target) -> Exchange:
    """The exchange of a case that is played alone, as it may be shown."""
    with RunningProbe(target.probe(in_flight=1)) as probe:
        return masking.exchange(probe.play(case))


def _addressed(name: str, target: targets.Target) -> tuple[Family, Planned, Facts]:
    """A case for a target, which is asked first for what the case needs to know, and what it said.

    :raises HarnessError: there is no such case.
    """
    known = loading.load()
    family, _ = find(name)
    facts = first_questions.answered(known, [family.id], target, None).facts()
    return *find(name, facts), facts


def _of_every_answer(case: Case, exchange: Exchange, facts: Facts) -> list[str]:
    """What the rules on every answer find wrong with this one."""
    answers = Collector(facts)
    answers.add(case, exchange)
    return [
        f"{number}:  {failed.actual}"
        for number, tally in answers.tallies().items()
        for failed in tally.failures
    ]


def minimised(name: str, target: targets.Target, *, hardened: bool = False) -> Replayed:
    """The smallest request that breaks the same rule and gets the same verdict as a case, with a
    reproducer. Of several writes, the first one gets smaller.

    :param hardened: judge by the ruleset of that name.
    :raises HarnessError: there is no such case, or it does not begin with a write.
    """
    family, planned, facts = _addressed(name, target)
    case = planned.case
    if planned.expectation is None or not shrinking.begins_with_a_write(planned):
        raise HarnessError(f"{case.id}: only a case that begins with a write can be made smaller")
    exchange = _sent(case, target)
    verdict = judge.Judge(facts, hardened=hardened).judge(planned, exchange)
    word = (family_results.strict(verdict, family) if hardened else verdict).word
    if word not in (Word.FAIL, Word.WARN):
        return Replayed(f"{case.id}: {word}; there is nothing to make smaller", word)
    whole = len(delivery_modes.message(case))
    one = shrinking.subject(family, planned, exchange, facts, hardened=hardened)
    if one is None:
        told = f"{case.id}: {word}; only the whole request shows it, all {whole} bytes"
        return Replayed(told, word)
    found = [
        small for _, small in shrinking.smallest([one], target) if not masking.leaves_a_part(small)
    ]
    if not found:
        return Replayed(f"{case.id}: {word}, with all {whole} bytes: fewer do not show it", word)
    small = msgspec.structs.replace(found[0], sent=Mask(target.header).sent(found[0].sent))
    left = shell_lines.own(small)
    line = shell_lines.by_hand(small, target.facts(), with_canary=False)
    told = "\n".join(
        (
            f"{case.id}: {word}, with {len(left)} of {whole} bytes:",
            escaped_lines(left),
            line or shell_lines.piped(left, shell_lines.place(target.facts())),
        )
    )
    return Replayed(told, word)
