"""Search: valid requests, and the same with one thing wrong, sent until a server and the grammar
disagree; what is found is shrunk and kept as a scenario.

The grammar is the harness's own reader of requests (``request_reader``). A disagreement is of one
of these kinds:

``refused``        a valid request is answered 400, 505 or a close
``misread``        a valid request is answered by the mirror as another
``accepted``       octets outside the grammar draw a 2xx
``hung``           a whole message, or one that no octet could mend, draws nothing
``out_of_sync``    the next request on the connection is not answered as itself
``malformed``      the answer is no HTTP response
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import msgspec
from hypothesis import strategies as st

from httpmark.harness import conformance, corpus, observation, request_reader, strategies
from httpmark.harness.model import Await, Case, Exchange, Op, Outcome, Step
from httpmark.harness.probe import Talker

_SURPLUS_MS = 5
_ANSWER_MS = 1000
_ROUND_EXAMPLES = 400
_BATCH_EXAMPLES = 40
_SHRINKING_S = 10.0
_REFUSALS = frozenset({400, 505})


class Kind(enum.StrEnum):
    """How a server and the grammar disagree."""

    REFUSED = "refused"
    MISREAD = "misread"
    ACCEPTED = "accepted"
    HUNG = "hung"
    OUT_OF_SYNC = "out_of_sync"
    MALFORMED = "malformed"


class Find(msgspec.Struct, frozen=True):
    """A disagreement, shrunk: the octets, where they leave the grammar, what came back."""

    kind: Kind
    part: str  # "request line", "field section", "content", or "valid"
    octets: bytes
    actual: str

    @property
    def slug(self) -> str:
        """The permanent id of the scenario it becomes."""
        digest = hashlib.sha256(self.octets).hexdigest()[:8]
        part = self.part.replace(" ", "-")
        return f"found-{self.kind.replace('_', '-')}-{part}-{digest}"


class Answer(msgspec.Struct, frozen=True):
    """What a server made of octets, in words that two servers can be compared by."""

    reading: str  # "accepted", "refused", "closed", "hung", "malformed"
    statuses: tuple[int, ...]
    understood: tuple[bytes, ...] = ()  # method, target, content, where a mirror shows them


class Searcher:
    """Plays octets against one target and says where it and the grammar disagree."""

    def __init__(self, target: conformance.Target, talker: Talker) -> None:
        self.facts = target.facts()
        self.place = b"/mirror" if "mirror" in target.capabilities else target.path.encode()
        self._talker = talker

    def play(self, octets: bytes) -> tuple[Case, Exchange]:
        """Send octets in one write, then a canary."""
        canary = corpus.canary(self.facts, "fuzz")
        case = Case(
            "fuzz",
            "fuzz",
            (
                Step(Op.SEND, octets),
                Step(Op.AWAIT, wait_ms=_ANSWER_MS, kind=Await.FINAL),
                Step(Op.WATCH, wait_ms=_SURPLUS_MS, if_open=True),
                Step(Op.SEND, canary, if_open=True),
                Step(Op.AWAIT, wait_ms=_ANSWER_MS, if_open=True),
            ),
            deadline_ms=3 * _ANSWER_MS,
            timeline=True,
            place="mirror" if self.place == b"/mirror" else "hello",
            methods=(octets.split(b" ", 1)[0] or b"GET",),
            canary=canary,
        )
        return case, self._talker.play(case)

    def disagreement(self, octets: bytes) -> tuple[Kind, str, str] | None:
        """Kind, part of the message and what came back; None where both agree, or nobody can
        say: the message is not whole, or holds more than one."""
        read = request_reader.read(octets)
        last = read.requests[-1] if read.requests else None
        if last is None or (last.valid and not last.whole):
            return None
        if len(read.requests) > 1 or last.end != len(octets):
            return None
        if last.valid and dict(last.fields).get(b"host") != self.facts.host.encode("latin-1"):
            return None  # a server may refuse the name of another
        case, exchange = self.play(octets)
        seen = observation.sight(case, exchange)
        part = "valid" if last.valid else _part(octets, last)
        actual = _described(seen)
        if seen.fault is not None:
            return Kind.MALFORMED, part, actual
        if exchange.outcome is Outcome.HUNG and (last.valid or b"\r\n\r\n" in octets):
            return Kind.HUNG, part, actual
        if not seen.answers:
            closed = exchange.outcome in (Outcome.CLOSED, Outcome.RESET)
            return (Kind.REFUSED, part, actual) if last.valid and closed else None
        final = seen.answers[0]
        status = final.response.status
        if not last.valid:
            return (Kind.ACCEPTED, part, actual) if 200 <= status < 300 else None
        if status in _REFUSALS:
            return Kind.REFUSED, part, actual
        if 200 <= status < 300 and last.method not in (b"HEAD", b"CONNECT"):
            shown = final.mirror if self.place == b"/mirror" else None
            differs = misread(octets, last, shown) if shown is not None else ()
            if differs:
                return Kind.MISREAD, part, f"{actual}, mirrored other {', '.join(differs)}"
        in_sync = len(seen.after) == 1 and 200 <= seen.after[0].response.status < 300
        if seen.canary_sent and not seen.closed and not in_sync:
            return Kind.OUT_OF_SYNC, part, actual
        return None

    def answer(self, octets: bytes) -> Answer:
        """What the target made of octets, for the grid."""
        case, exchange = self.play(octets)
        seen = observation.sight(case, exchange)
        statuses = tuple(final.response.status for final in seen.answers)
        if seen.fault is not None:
            return Answer("malformed", statuses)
        if not statuses:
            word = "hung" if exchange.outcome is Outcome.HUNG else "closed"
            return Answer(word, statuses)
        if statuses[0] >= 300:
            return Answer("refused", statuses[:1])
        shown = seen.answers[0].mirror
        understood = (
            ()
            if shown is None
            else (shown.method or b"", shown.target or b"", shown.content or b"")
        )
        return Answer("accepted", statuses[:1], understood)


# What frames a message, or is about the connection, a server may take out of the fields it hands on.
_CONSUMED = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"trailer", b"connection", b"expect")
)


def misread(
    octets: bytes, request: request_reader.Request, shown: observation.Mirror
) -> tuple[str, ...]:
    """What a mirror shows otherwise than it was sent; what it does not compute is not compared.

    Names without case, values exactly, as lists in order where a name stands more than once; how
    lines of different names are ordered means nothing (RFC 9110 5.2, 5.3).
    """
    told = {
        "method": shown.method in (None, request.method),
        "target": shown.target in (None, request.target),
        "content": shown.content in (None, request.content(octets)),
        "fields": shown.fields is None or _by_name(shown.fields) == _by_name(request.fields),
        "trailers": shown.trailers is None
        or _by_name(shown.trailers) == _by_name(request.trailers),
    }
    return tuple(name for name, same in told.items() if not same)


def _by_name(fields: tuple[tuple[bytes, bytes], ...]) -> dict[bytes, bytes]:
    lists: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        if name.lower() not in _CONSUMED:
            lists.setdefault(name.lower(), []).append(value)
    return {name: b", ".join(values) for name, values in lists.items()}


def _part(octets: bytes, request: request_reader.Request) -> str:
    if not request.line_valid:
        return "request line"
    return "field section" if not request.fields else "content"


def _described(seen: observation.Sight) -> str:
    statuses = ", ".join(str(final.response.status) for final in (*seen.answers, *seen.after))
    return statuses or str(seen.outcome)


def octets(searcher: Searcher) -> st.SearchStrategy[bytes]:
    """Valid requests, and the same with one thing wrong."""
    host = searcher.facts.host.encode("latin-1")
    valid = strategies.messages(host=host, place=searcher.place).map(lambda one: one.octets)
    wrong = strategies.mutated(host=host, place=searcher.place)
    return st.one_of(valid, wrong, wrong, wrong)


def search(
    searcher: Searcher,
    *,
    seconds: float,
    seed: int,
    tell: Callable[[Find], None],
    most: int | None = None,
) -> tuple[list[Find], int]:
    """Look for disagreements until the time is over, or ``most`` are found.

    :param tell: called with each find, shrunk, as it is made; one of each kind and part.
    :returns: the finds, and how many messages were sent.
    """
    end = time.monotonic() + seconds
    chance = random.Random(seed)
    found: dict[tuple[Kind, str], Find] = {}
    sent = 0
    while time.monotonic() < end and (most is None or len(found) < most):
        best: list[bytes] = []

        def disagrees(tried: bytes, best: list[bytes] = best) -> bool:
            nonlocal sent
            # What was found late may still be made smaller.
            if time.monotonic() > end + (_SHRINKING_S if best else 0.0):
                return False
            sent += 1
            told = searcher.disagreement(tried)
            if told is None or told[:2] in found:
                return False
            if not best or (len(tried), tried) < (len(best[0]), best[0]):
                best[:] = [tried]
            return True

        _smallest(octets(searcher), disagrees, chance)
        told = searcher.disagreement(best[0]) if best else None
        if told is None or told[:2] in found:
            continue
        find = Find(told[0], told[1], best[0], told[2])
        found[told[:2]] = find
        tell(find)
    return list(found.values()), sent


def _smallest(
    strategy: st.SearchStrategy[bytes],
    condition: Callable[[bytes], bool],
    chance: random.Random,
    *,
    examples: int = _ROUND_EXAMPLES,
) -> None:
    """Ask a condition about example after example; once it holds, about smaller ones."""
    with contextlib.suppress(hypothesis.errors.NoSuchExample, hypothesis.errors.Flaky):
        hypothesis.find(
            strategy,
            condition,
            settings=hypothesis.settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
            random=random.Random(chance.getrandbits(64)),
        )


def agreement(
    searchers: dict[str, Searcher], *, seconds: float, seed: int
) -> tuple[dict[tuple[str, str], tuple[int, int]], int]:
    """The same octets to several servers: for each pair, on how many they agree, and of how many.

    Two servers agree when their reading is the same and, where both show it, what they understood.
    """
    end = time.monotonic() + seconds
    first = next(iter(searchers.values()))
    agreed: Counter[tuple[str, str]] = Counter()
    compared: Counter[tuple[str, str]] = Counter()
    sent = 0
    for tried in _examples(octets(first), seed=seed):
        if time.monotonic() > end:
            break
        sent += 1
        made = {name: one.answer(tried) for name, one in searchers.items()}
        names = list(made)
        for number, a in enumerate(names):
            for b in names[number + 1 :]:
                compared[a, b] += 1
                agreed[a, b] += _same(made[a], made[b])
    return {pair: (agreed[pair], compared[pair]) for pair in compared}, sent


def _same(a: Answer, b: Answer) -> bool:
    rejected = {"refused", "closed"}
    if a.reading in rejected and b.reading in rejected:
        return True
    if a.reading != b.reading:
        return False
    return not (a.understood and b.understood) or a.understood == b.understood


def _examples(strategy: st.SearchStrategy[bytes], *, seed: int) -> Iterator[bytes]:
    """Examples without end, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        batch: list[bytes] = []

        def collect(tried: bytes, batch: list[bytes] = batch) -> bool:
            batch.append(tried)
            return False

        _smallest(strategy, collect, chance, examples=_BATCH_EXAMPLES)
        yield from batch


_PASS = {
    Kind.REFUSED: "PARSED",
    Kind.MISREAD: "ACC",
    Kind.ACCEPTED: "REJ",
    Kind.HUNG: "ONE', 'CLOSE",
    Kind.OUT_OF_SYNC: "ONE; sync",
    Kind.MALFORMED: "ONE', 'CLOSE",
}
_LEVEL = {Kind.REFUSED: "CTRL", Kind.MISREAD: "MUST"}


def scenario(find: Find, *, host: str, command: str) -> str:
    """A find as a scenario file; the Host value becomes the placeholder."""
    written = find.octets.split(host.encode("latin-1"))
    text = "{h}".join("".join(_written(octet) for octet in piece) for piece in written)
    number = int(hashlib.sha256(find.octets).hexdigest()[:7], 16)
    return (
        f"# Found by `{command}`.\n"
        'suite = "found"\n'
        'family = "FOUND"\n'
        'title = "what the search brought home"\n\n'
        "[[case]]\n"
        f'id = "{find.slug}"\n'
        f'ref = "FOUND-{number}"\n'
        f'title = "{find.kind}: {find.part}"\n'
        f'level = "{_LEVEL.get(find.kind, "SHOULD")}"\n'
        'clause = "RFC 9112 3"\n'
        f'why = "A server and the grammar disagreed: it answered {find.actual}."\n'
        f"send = '{text}'\n"
        f"pass = ['{_PASS[find.kind]}']\n"
    )


def _written(octet: int) -> str:
    named = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t"}
    if octet in named:
        return named[octet]
    # Quotes end the text, braces could be a placeholder, a backslash an escape.
    return chr(octet) if 0x20 <= octet < 0x7F and octet not in b"'\\{}" else f"\\x{octet:02x}"


def save(find: Find, folder: Path, *, host: str, command: str) -> Path:
    """Write a find as a scenario; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{find.slug}.toml"
    path.write_text(scenario(find, host=host, command=command), "utf-8")
    return path
