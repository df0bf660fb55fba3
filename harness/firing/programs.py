"""What one exchange cannot show: cases that a small program plays (``runner`` in scenarios).

Each runner plays its talks, looks at the server's processes where it must, and says what it found.
What needs them is not applicable where they are not known (another machine, no leave to look).
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable

import msgspec

from httpmark.harness.catalogue import delivery_modes, generators
from httpmark.harness.judging import observation, response_rules
from httpmark.harness.judging.observation import Final, Sight
from httpmark.harness.model.cases import SECRET_TEXT, Case, Facts, Op, Step
from httpmark.harness.model.exchanges import Exchange, Outcome
from httpmark.harness.model.verdicts import Word
from httpmark.harness.servers import memory_use, open_connections

_SETTLE_S = 5.0  # until a server has taken notice of resets and given back what they held
_POLL_S = 0.05


class Negative(msgspec.Struct, frozen=True):
    """A case of another entry, and how it is judged."""

    group: str  # the catalogue's family
    case: Case
    word: Callable[[Exchange], Word]


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
    # trickle(octets, clients, seconds, look): clients that ask and read an octet a second; looks
    # at the end; how many the server has still not closed
    trickle: Callable[[bytes, int, float, Callable[[], None]], int]
    negatives: Callable[[], list[Negative]]  # cases that a server may refuse, and that do not wait

    @property
    def answer_ms(self) -> int:
        """How long an answer of this server is waited for."""
        return generators.patience_ms(generators.ANSWER_MS, self.facts)


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
    cuts = list(delivery_modes.deliveries(stage.case, "two", delivery_modes.Known()))
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
# How long a server takes nothing until it counts as stalled: so many plain answers, within bounds.
_STALL_ANSWERS = 100
_STALL_S_MIN = 0.5
_STALL_S_MAX = 2.0
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

    sent, how = stage.flood(
        delivery_modes.message(stage.case), _FLOOD_OCTETS, _stall_s(stage), look
    )
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


def _stall_s(stage: Stage) -> float:
    """A deadline that fits the target: a hundred times what a plain answer takes."""
    started = time.monotonic()
    stage.alive()
    took = time.monotonic() - started
    return min(max(_STALL_ANSWERS * took, _STALL_S_MIN), _STALL_S_MAX)


def _memory_kb(pids: list[int]) -> int | None:
    """The memory of processes, what they share counted once; None where it is not known."""
    found = memory_use.memory(pids)
    return found.pss_kb if found is not None else None


# --- resets --------------------------------------------------------------------------------------


def resets(stage: Stage) -> Found:
    """Resets in request line, fields, content and answer, 25 of each."""
    octets = delivery_modes.message(stage.case)
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
    held = open_connections.descriptors(pids)
    while held is not None and time.monotonic() < deadline:
        if wanted is not None and held <= wanted:
            break
        time.sleep(_POLL_S)
        now = open_connections.descriptors(pids)
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
        request = (f"GET {place}{mark}clean-{number} HTTP/1.1\r\n{facts.host_lines}\r\n").encode(
            "latin-1"
        )
        steps = [Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=stage.answer_ms)]
        steps += [Step(Op.PAUSE, wait_ms=5), Step(Op.SEND, request, if_open=True)]
        steps += [Step(Op.AWAIT, wait_ms=stage.answer_ms, if_open=True)]
        steps += [Step(Op.WATCH, wait_ms=generators.SURPLUS_MS, if_open=True)]
        return msgspec.structs.replace(_talk(case, steps), methods=(b"GET",))

    # Half of them leave a request behind, half the beginning of one, for whoever comes next.
    prefix = b"GET /404 HTTP/1.1\r\nX-P: "
    whole = delivery_modes.message(case)
    poisons = [
        _talk(case, [Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=stage.answer_ms)])
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


# --- limits, slow readers ------------------------------------------------------------------------

_BOUND_KB = 64 << 10
_LARGE_OCTETS = 64 << 20


def _grown(told: str, before: int | None, after: int | None) -> Found:
    """What a server holds more than before, against the bound of 64 MiB."""
    if before is None or after is None:
        return Found(Word.NOT_APPLICABLE, f"{told}; the server's memory is not known")
    told += f", memory grew by {max(after - before, 0) / 1024:.1f} MiB"
    return Found(Word.FAIL if after - before > _BOUND_KB else Word.PASS, told)


def limit_sized_requests(stage: Stage) -> Found:
    """1000 requests of the largest size in turn: memory grows by 64 MiB at most."""
    octets = delivery_modes.message(stage.case)
    number = min(1000, max(1, _LARGE_OCTETS // len(octets)))
    turn = [
        Step(Op.SEND, octets, if_open=True),
        Step(Op.AWAIT, wait_ms=stage.answer_ms, if_open=True),
    ]
    before = _memory_kb(pids := stage.pids())
    made = [_talk(stage.case, turn * 10) for _ in range(max(1, number // 10))]
    stage.fire(_named(made), 1)
    if not stage.alive():
        return Found(Word.FAIL, f"the server does not answer after {len(made) * 10} requests")
    return _grown(f"{len(made) * 10} requests of {len(octets)} octets", before, _memory_kb(pids))


_READERS = 64
_READING_S = 4.0
_LINGER_S = 3.0  # how long a closed connection may be kept to take what is under way (9112 9.6)


def slow_readers(stage: Stage) -> Found:
    """64 clients that read an octet a second: memory grows by 64 MiB at most."""
    if stage.facts.scheme == "https":
        return Found(Word.NOT_APPLICABLE, "played without TLS only")
    write_s = stage.facts.timeouts.get("write_s") or 0
    seconds = max(1.2 * write_s, write_s + 2) + _LINGER_S if write_s else _READING_S
    pids = stage.pids()
    before, memory = open_connections.descriptors(pids), _memory_kb(pids)
    seen: list[tuple[int | None, int | None]] = []
    stage.trickle(
        delivery_modes.message(stage.case), _READERS, seconds,
        lambda: seen.append((open_connections.descriptors(pids), _memory_kb(pids))),
    )  # fmt: skip
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    held, after = seen[0] if seen else (None, None)
    told = f"{_READERS} readers for {seconds:.0f} s"
    if before is not None and held is not None:
        told += f", {held - before} connections held"
    found = _grown(told, memory, after)
    if write_s and before is not None and held is not None and held > before:
        # An octet a second is some progress: not every write timeout is meant to end it.
        word = Word.WARN if found.word is Word.PASS else found.word
        return Found(word, f"{found.actual}; its write timeout is {write_s:g} s")
    return found


# --- static files --------------------------------------------------------------------------------

_OUTSIDE = (SECRET_TEXT.encode(), b"root:x:0:0:")
_AUTHORITY = re.compile(rb"(?i)(?:https?:)?//([^/?#]*)([^#]*)")


def follow_redirect(stage: Stage) -> Found:
    """Never what stands outside of the folder, nor a redirect to it or to elsewhere."""
    case = stage.case
    exchange = stage.fire(_named([case]), 1)[0]
    if told := _outside(case, exchange):
        return Found(Word.FAIL, told)
    sight = observation.sight(case, exchange)
    if not sight.answers:
        return Found(Word.PASS, "closed without an answer")
    response = sight.answers[0].response
    places = response.values(b"location")
    told = f"{response.status}"
    if not 300 <= response.status < 400 or not places:
        return Found(Word.PASS, told)
    told += f" to {places[0].decode('latin-1')}"
    elsewhere = _AUTHORITY.match(places[0])
    if elsewhere is not None and elsewhere[1] != stage.facts.host.encode("latin-1"):
        return Found(Word.FAIL, f"{told}: another host")
    target = (elsewhere[2] if elsewhere is not None else places[0].partition(b"#")[0]) or b"/"
    if not target.startswith(b"/"):
        return Found(Word.PASS, told)  # relative to what was asked: a client stays below it
    lines = stage.facts.host_lines.encode("latin-1")
    request = b"GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)
    steps = [Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=stage.answer_ms)]
    followed = _talk(case, steps)
    after = stage.fire(_named([followed], "followed"), 1)[0]
    if why := _outside(followed, after):
        return Found(Word.FAIL, f"{told}: {why}")
    return Found(Word.PASS, f"{told}, which gives nothing away")


def _outside(case: Case, exchange: Exchange) -> str:
    """What is wrong with an answer of a file server; nothing where it stays in its folder."""
    if any(text in exchange.received for text in _OUTSIDE):
        return "gives what stands outside of the folder"
    sight = observation.sight(case, exchange)
    if exchange.outcome is Outcome.HUNG:
        return "silence"
    return f"no HTTP response: {sight.fault}" if sight.fault is not None else ""


# --- liveness and isolation ----------------------------------------------------------------------

_GROUP_MAX = 40


def alive_after_each_family(stage: Stage) -> Found:
    """A plain request is answered after the bad requests of each family."""
    groups: dict[str, list[Case]] = {}
    for one in stage.negatives():
        groups.setdefault(one.group, []).append(one.case)
    for name, cases in groups.items():
        stage.fire(_named(cases[:_GROUP_MAX], f"after-{name}"), 64)
        if not stage.alive():
            return Found(Word.FAIL, f"the server does not answer after {name}")
    return Found(Word.PASS, f"answers after each of {len(groups)} families")


def not_restarted(stage: Stage) -> Found:
    """The processes that took the bad requests are those that were there before."""
    before = set(stage.pids())
    stage.fire(_named(_cases(stage), "restart"), 64)
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    after = set(stage.pids())
    if not before or not after:
        return Found(Word.NOT_APPLICABLE, "the server's processes are not to be seen from here")
    gone = len(before - after)
    told = f"{gone} of {len(before)} processes were replaced" if gone else "the same processes"
    return Found(Word.FAIL if gone else Word.PASS, told)


def gives_back(stage: Stage) -> Found:
    """After all bad requests memory is 64 MiB larger at most, and no descriptor is held."""
    stage.fire(_named(_cases(stage)[:_GROUP_MAX], "warm"), 64)
    pids = stage.pids()
    before, memory = _settled(pids, None), _memory_kb(pids)
    cases = _named(_cases(stage), "give")
    stage.fire(cases, 64)
    if not stage.alive():
        return Found(Word.FAIL, "the server does not answer any more")
    after = _settled(pids, before)
    if before is not None and after is not None and after > before:
        return Found(Word.FAIL, f"{before} descriptors before, {after} after")
    held = f", {after} descriptors" if after is not None else ""
    return _grown(f"{len(cases)} requests{held}", memory, _memory_kb(pids))


def _cases(stage: Stage) -> list[Case]:
    return [one.case for one in stage.negatives()]


_ALONE_MAX = 120
_SILENT_MAX = 8


def same_verdicts_at_64(stage: Stage) -> Found:
    """Bad requests draw 64 at a time what they draw alone."""
    all_of_them = stage.negatives()
    among = stage.fire(_named((one.case for one in all_of_them), "among"), 64)
    by_case = {exchange.case: exchange for exchange in among}
    # Alone is slow, and silence is slowest: of those that are right in the crowd a part, of those
    # that are not as many again.
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
    alone = stage.fire(_named((one.case for one in chosen), "alone"), 1)
    if not stage.alive():
        # Silence is like silence.
        return Found(Word.FAIL, "the server does not answer any more")
    others = [
        one.case.id
        for one, exchange in zip(chosen, alone, strict=True)
        if one.word(exchange) is not one.word(by_case[one.case.id])
    ]
    if others:
        return Found(Word.FAIL, f"{len(others)} of {len(chosen)} differ, {others[0]} among them")
    return Found(Word.PASS, f"{len(chosen)} verdicts alike alone and among {len(all_of_them)}")


_TIMELY_MS = 1000  # and ten times the slowest alone: so late may a valid answer be among bad ones
_ALONE = 64


def valid_load_among_bad_requests(stage: Stage) -> Found:
    """Between all bad requests, valid ones are answered in time, each as itself."""
    place = "/mirror" if "mirror" in stage.facts.capabilities else stage.facts.path
    mark = "&" if "?" in place else "?"

    def valid(number: int) -> Case:
        request = (
            f"GET {place}{mark}valid-{number} HTTP/1.1\r\n{stage.facts.host_lines}\r\n"
        ).encode("latin-1")
        steps = [Step(Op.SEND, request), Step(Op.AWAIT, wait_ms=stage.answer_ms)]
        return msgspec.structs.replace(_talk(stage.case, steps), methods=(b"GET",))

    def slowest_ms(exchanges: Iterable[Exchange]) -> float:
        return max((exchange.first_us or 0 for exchange in exchanges), default=0) / 1000

    alone_ms = slowest_ms(stage.fire(_named(map(valid, range(_ALONE)), "alone"), 64))
    limit_ms = max(_TIMELY_MS, 10 * alone_ms)
    bad = _cases(stage)
    turns = [one for n, negative in enumerate(bad) for one in (negative, valid(n))]
    beside_ms = 0.0
    for name in ("load", "again"):  # what is late once may be late by a busy machine
        cases = _named(turns, name)
        exchanges = stage.fire(cases, 64)
        for number in range(len(bad)):
            made, exchange = cases[2 * number + 1], exchanges[2 * number + 1]
            sight = observation.sight(made, exchange)
            told = _touched(sight, b"valid-%d" % number) if sight.answers else f"{exchange.outcome}"
            if told and told != "a request is not answered":
                told = f"valid request {number + 1} beside {bad[number].id}: {told}"
                return Found(Word.FAIL, told)
        beside_ms = slowest_ms(exchanges[1::2])
        if beside_ms <= limit_ms:
            break
    times = f"the slowest in {beside_ms:.0f} ms, alone in {alone_ms:.0f} ms"
    word = Word.FAIL if beside_ms > limit_ms else Word.PASS
    return Found(word, f"{len(bad)} valid requests answered as themselves, {times}")


def thousand_bad_requests(stage: Stage) -> Found:
    """After 1000 bad requests on 1000 connections a good one is answered."""
    octets = delivery_modes.message(stage.case)
    steps = [Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=stage.answer_ms)]
    stage.fire(_named([_talk(stage.case, steps)] * 1000), 64)
    if not stage.alive():
        return Found(Word.FAIL, "the next good request is not answered")
    return Found(Word.PASS, "the next good request is answered")


_MARKUP = b'"><script>alert(1)</script>'


def markup_in_every_place(stage: Stage) -> Found:
    """A script in target, method, field name, Host or Expect comes back escaped, or not at all."""
    path = stage.facts.path.encode("latin-1")
    line = b" HTTP/1.1\r\n" + stage.facts.host_lines.encode("latin-1")
    messages = {
        "the target": b"GET /" + _MARKUP + line + b"\r\n",
        "the method": _MARKUP + b" " + path + line + b"\r\n",
        "a field name": b"GET " + path + line + _MARKUP + b": a\r\n\r\n",
        "Host": b"GET " + path + b" HTTP/1.1\r\nHost: " + _MARKUP + b"\r\n\r\n",
        "Expect": b"GET " + path + line + b"Expect: " + _MARKUP + b"\r\n\r\n",
    }
    made = [
        _talk(stage.case, [Step(Op.SEND, octets), Step(Op.AWAIT, wait_ms=stage.answer_ms)])
        for octets in messages.values()
    ]
    made = _named(made)
    silent = 0
    for place, case, exchange in zip(messages, made, stage.fire(made, 8), strict=True):
        found = response_rules.check(response_rules.talk(case, exchange))
        if any(one.check == "RESP-32" for one in found.found):
            return Found(Word.FAIL, f"{place} comes back as it was sent, in a page of HTML")
        silent += exchange.outcome is Outcome.HUNG
    if silent == len(made):
        return Found(Word.FAIL, "silence")
    return Found(Word.PASS, "nothing comes back as it was sent")


# What opens hundreds of connections at once, which a short listen queue makes seconds of.
BURSTS = (resets, resets_at_connect)

RUNNERS: dict[str, Runner] = {
    "alive_after_each_family": alive_after_each_family,
    "clean_neighbours": clean_neighbours,
    "every_cut": every_cut,
    "follow_redirect": follow_redirect,
    "gives_back": gives_back,
    "limit_sized_requests": limit_sized_requests,
    "markup_in_every_place": markup_in_every_place,
    "never_reading_client": never_reading_client,
    "not_restarted": not_restarted,
    "resets": resets,
    "resets_at_connect": resets_at_connect,
    "same_verdicts_at_64": same_verdicts_at_64,
    "slow_readers": slow_readers,
    "thousand_bad_requests": thousand_bad_requests,
    "valid_load_among_bad_requests": valid_load_among_bad_requests,
}
