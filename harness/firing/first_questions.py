"""What has to be asked of a target before cases are sent: limits, static files, patience."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable

import msgspec

from httpmark.harness.catalogue import case_builder
from httpmark.harness.catalogue.catalogue import Catalogue
from httpmark.harness.firing import discovery, limit_search, timeout_search, yardstick
from httpmark.harness.firing.targets import FEW_IN_FLIGHT, Target, hello
from httpmark.harness.http import response_reader
from httpmark.harness.judging.answer_words import PARSED
from httpmark.harness.model.cases import Case, Facts, Op, Step
from httpmark.harness.model.exchanges import Exchange, Outcome
from httpmark.harness.servers import static_files

_LIMIT = re.compile(r"limit\.([a-z_]+)")
_ASK_S = 2.0


def answered(
    catalogue: Catalogue,
    families: Iterable[str],
    target: Target,
    known: Facts | None,
    *,
    has_time: bool = False,
) -> Target:
    """The target with what has to be asked: what its application answers to good requests, limits
    that cases name, the files that it serves, and whether it answers before the content came.

    :param known: the answers of an earlier suite; they are not asked again, but for the files.
    :param has_time: look for timeouts that cases need, too, which takes half a minute.
    """
    slowest_ms = known.slowest_ms if known is not None else _slowest_ms(target)
    if slowest_ms is None:
        return msgspec.structs.replace(target, at_once=FEW_IN_FLIGHT)  # it answers nothing
    target = yardstick.applied(msgspec.structs.replace(target, slowest_ms=slowest_ms), known)
    facts = target.facts()
    deadline_s = case_builder.patience_ms(round(_ASK_S * 1000), facts) / 1000

    def ask(octets: bytes) -> bytes | None:
        return target.ask(octets, deadline_s=deadline_s)

    named: set[str] = set()
    answered: set[str] = set()
    for family in families:
        answered.update(catalogue.families[family].needs)
        rule = catalogue.rules[family]
        named |= set(
            _LIMIT.findall(" ".join((*rule.sends, *rule.steps, *rule.passes, *rule.allows)))
        )
    limits = dict(known.limits) if known is not None else {}
    limits |= {name: limit for name, limit in target.limits.items() if limit is not None}
    limits |= limit_search.found(
        ask, facts, sorted(named - limits.keys()), in_pieces=functools.partial(_in_pieces, target)
    )
    # Each start plants the files anew, and an ETag may name the file itself (its inode).
    values = static_files.learned(ask, facts)
    if known is not None:
        values = known.values | values
    capabilities = target.capabilities
    for name, shows in _FOUND_BY_ASKING.items():
        if (known is not None and name in known.capabilities) or (
            name in answered and shows(ask, facts)
        ):
            capabilities = (*capabilities, name)
    target = _with_timeouts(target, known, answered if has_time else set())
    return msgspec.structs.replace(
        target, limits=limits, values=target.values | values, capabilities=capabilities
    )


def _with_timeouts(target: Target, known: Facts | None, needs: set[str]) -> Target:
    """The target with timeouts that an earlier suite found, or that cases need and it shows."""
    if known is not None and known.timeouts_found:
        names = known.timeouts_found
        found = {name: seconds for name in names if (seconds := known.timeouts[name])}
    else:
        wanted = [
            name
            for name in timeout_search.NAMES
            if f"timeout.{name}" in needs and target.timeouts.get(name) is None
        ]
        found = timeout_search.found(functools.partial(_played, target), target.facts(), wanted)
    return msgspec.structs.replace(
        target, timeouts=target.timeouts | found, timeouts_found=tuple(found)
    )


def _played(target: Target, cases: list[Case]) -> list[Exchange]:
    with target.probe(in_flight=len(cases)) as probe:
        return [exchange for batch in probe.fire(cases) for exchange in batch]


PLAIN_S = 5.0  # to answer a plain request
_PLAIN_ASKED = 3


def _slowest_ms(target: Target) -> int | None:
    """The longest of a few plain requests, one after the other; None if one gets no answer of HTTP,
    or one without an end: the deadline of each question would be the time that it goes on.

    Silence until the deadline is judged, so no deadline may be shorter than a slow server's answer
    (docs/method.md: deadlines are stretched for slow targets, never shortened).
    """
    slowest = 0.0
    for number in range(_PLAIN_ASKED):
        began = time.monotonic()
        answer = hello(target, deadline_s=PLAIN_S) or b""
        slowest = max(slowest, time.monotonic() - began)
        if not response_reader.final_status(answer):
            return None
        if number == 0 and discovery.without_end(target, answer):
            return None
    return round(slowest * 1000)


def _catches_all(ask: Callable[[bytes], bytes | None], facts: Facts) -> bool:
    """Whether a GET of any path and query gets a 2xx."""
    return all(status is not None and status // 100 == 2 for status in _elsewhere(facts))


def _answers_as_itself(ask: Callable[[bytes], bytes | None], facts: Facts) -> bool:
    """Whether what an unknown path and a query get shows that the request was understood.

    Then a refusal can be told from the answer of a router.
    """
    return all(status in PARSED for status in _elsewhere(facts))


def _elsewhere(facts: Facts) -> tuple[int | None, int | None]:
    return facts.own.unknown_path, facts.own.query


def _answers_early(ask: Callable[[bytes], bytes | None], facts: Facts) -> bool:
    """Whether ``/early`` is answered before the content came.

    A server that reads the content before it calls a handler cannot do so.
    """
    if not {"behave", "behave.early"}.intersection(facts.capabilities):
        return False
    octets = ask(
        f"POST /early HTTP/1.1\r\n{facts.host_lines}Content-Length: 10\r\n\r\n".encode("latin-1")
    )
    return response_reader.final_status(octets) // 100 == 2


_FOUND_BY_ASKING: dict[str, Callable[[Callable[[bytes], bytes | None], Facts], bool]] = {
    "catch_all": _catches_all,
    "own_answer": _answers_as_itself,
    "early": _answers_early,
}

_PIECE_MS = 15  # between two pieces, so that the server reads them apart


def _in_pieces(target: Target, octets: bytes) -> bytes | None:
    """What comes back for one request that arrives in three pieces."""
    third = len(octets) // 3
    wait_ms = case_builder.patience_ms(round(_ASK_S * 1000), target.facts())
    steps = [Step(Op.SEND, octets[:third])]
    for piece in (octets[third:-1], octets[-1:]):
        steps += [Step(Op.PAUSE, wait_ms=_PIECE_MS), Step(Op.SEND, piece, if_open=True)]
    steps.append(Step(Op.AWAIT, wait_ms=wait_ms))
    case = Case("pieces", "pieces", tuple(steps), deadline_ms=2 * wait_ms)
    with target.probe(in_flight=1) as probe:
        for batch in probe.fire([case]):
            return batch[0].received if batch[0].outcome is not Outcome.REFUSED else None
    return None
