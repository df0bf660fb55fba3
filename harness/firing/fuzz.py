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
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeGuard

import hypothesis
import msgspec
from hypothesis import strategies as st

from httpmark.harness.catalogue import generators
from httpmark.harness.firing import strategies, targets
from httpmark.harness.firing.probe import Talker
from httpmark.harness.http import printable, request_reader, shell_lines, tolerances
from httpmark.harness.http.request_reader import Broken
from httpmark.harness.judging import observation
from httpmark.harness.model.cases import Await, Case, Level, Op, Step
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.exchanges import Exchange, Outcome

FINDS_MAX = 64
"""More faults than that nobody reads; the first are the ones to mend."""

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
    """A disagreement, shrunk: the octets, where they leave the grammar, what came back.

    ``about`` tells the faults of one kind and part apart: the rule that is broken; of a message
    that is valid what the mirror shows otherwise, else what the message has that others lack.
    """

    kind: Kind
    part: str  # "request line", "field section", "content", or "valid"
    octets: bytes
    actual: str
    about: frozenset[str] = frozenset()

    def covers(self, other: Find) -> bool:
        """Whether another find is likely to be of the same fault."""
        same = (self.kind, self.part) == (other.kind, other.part)
        return same and self.about <= other.about

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

    def __init__(self, target: targets.Target, talker: Talker) -> None:
        self.facts = target.facts()
        self.place = b"/mirror" if "mirror" in target.capabilities else target.path.encode()
        self._talker = talker

    def play(self, octets: bytes) -> tuple[Case, Exchange]:
        """Send octets in one write, then a canary."""
        canary = generators.canary(self.facts, "fuzz")
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

    def disagreement(self, octets: bytes) -> Find | None:
        """Where the target and the grammar disagree; None where both agree, or nobody can
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
        broken = None if last.valid else tolerances.broken(octets)
        told = (
            self._of_valid(octets, last, seen)
            if broken is None
            else self._of_broken(octets, broken, seen)
        )
        if told is None:
            return None
        kind, about, actual = told
        part = "valid" if broken is None else tolerances.part(broken)
        return Find(kind, part, octets, actual, about)

    def _of_valid(
        self, octets: bytes, request: request_reader.Request, seen: observation.Sight
    ) -> tuple[Kind, frozenset[str], str] | None:
        shape, actual = _shape(octets, request), _described(seen)
        if seen.fault is not None:
            return Kind.MALFORMED, shape, actual
        if seen.outcome is Outcome.HUNG:
            return Kind.HUNG, shape, actual
        if not seen.answers:
            closed = seen.outcome in (Outcome.CLOSED, Outcome.RESET)
            return (Kind.REFUSED, shape, actual) if closed else None
        status = seen.answers[0].response.status
        if status in _REFUSALS:
            return Kind.REFUSED, shape, actual
        if 200 <= status < 300 and request.method not in (b"HEAD", b"CONNECT"):
            differs = self._misread(octets, request, seen)
            if differs:
                said = f"{actual}, mirrored other {', '.join(sorted(differs))}"
                return Kind.MISREAD, differs, said
        return (Kind.OUT_OF_SYNC, shape, actual) if _out_of_sync(seen) else None

    def _of_broken(
        self, octets: bytes, broken: Broken, seen: observation.Sight
    ) -> tuple[Kind, frozenset[str], str] | None:
        about, actual = frozenset({str(broken)}), _described(seen)
        if seen.fault is not None:
            return Kind.MALFORMED, about, actual
        if seen.outcome is Outcome.HUNG:
            # Without the end of its header section a message may be mended by what follows.
            first = request_reader.read(octets).requests[0].broken
            waits = not tolerances.MAY_WAIT.isdisjoint({first, broken})
            waits = waits or b"\r\n\r\n" not in octets
            return None if waits else (Kind.HUNG, about, actual)
        if not seen.answers or not 200 <= seen.answers[0].response.status < 300:
            return None
        allowed = tolerances.tolerance(octets)
        if allowed is None or allowed.allows:
            return Kind.ACCEPTED, about, actual
        if allowed.request is None:
            return None
        # To accept it is as right as to refuse it, but as what the texts take it for.
        differs = self._misread(allowed.octets, allowed.request, seen) - {"trailers"}
        if differs:
            said = f"{actual}, mirrored other {', '.join(sorted(differs))}"
            return Kind.MISREAD, about | differs, said
        return (Kind.OUT_OF_SYNC, about, actual) if _out_of_sync(seen) else None

    def _misread(
        self, octets: bytes, request: request_reader.Request, seen: observation.Sight
    ) -> frozenset[str]:
        shown = seen.answers[0].mirror if self.place == b"/mirror" else None
        return frozenset() if shown is None else frozenset(misread(octets, request, shown))

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


# What frames a message or is about the connection a server may take out of what it hands on.
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


def _shape(octets: bytes, request: request_reader.Request) -> frozenset[str]:
    """What a valid request has beyond the plainest."""
    own = [(name, value) for name, value in request.fields if name not in _CONSUMED]
    has = {
        "query": b"?" in request.target,
        "percent": b"%" in request.target,
        "field": bool(own),
        "obs-text": any(not value.isascii() for _, value in own),
        "empty value": any(not value for _, value in own),
        "content": bool(request.pieces),
        "chunked": any(name == b"transfer-encoding" for name, _ in request.fields),
        "trailer": bool(request.trailers),
    }
    method = {request.method.decode("latin-1")} - {"GET"}
    return frozenset({name for name, holds in has.items() if holds} | method)


def _out_of_sync(seen: observation.Sight) -> bool:
    in_sync = len(seen.after) == 1 and 200 <= seen.after[0].response.status < 300
    return seen.canary_sent and not seen.closed and not in_sync


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

    :param tell: called with each find, shrunk, as it is made; none is covered by an earlier one.
    :param most: at most :data:`FINDS_MAX`.
    :returns: the finds, and how many messages were sent.
    """
    end = time.monotonic() + seconds
    chance = random.Random(seed)
    found: list[Find] = []
    sent = 0
    most = FINDS_MAX if most is None else min(most, FINDS_MAX)

    def is_new(told: Find | None) -> TypeGuard[Find]:
        return told is not None and not any(known.covers(told) for known in found)

    while time.monotonic() < end and len(found) < most:
        best: list[bytes] = []

        def disagrees(tried: bytes, best: list[bytes] = best) -> bool:
            nonlocal sent
            # What was found late may still be made smaller.
            if time.monotonic() > end + (_SHRINKING_S if best else 0.0):
                return False
            sent += 1
            if not is_new(searcher.disagreement(tried)):
                return False
            if not best or (len(tried), tried) < (len(best[0]), best[0]):
                best[:] = [tried]
            return True

        _smallest(octets(searcher), disagrees, chance)
        find = searcher.disagreement(best[0]) if best else None
        if is_new(find):
            found.append(find)
            tell(find)
    return found, sent


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
        read = request_reader.read(tried)
        if not read.requests or (read.requests[-1].valid and not read.requests[-1].whole):
            continue  # all wait for the rest of it, and that for a second each
        sent += 1
        made = {name: one.answer(tried) for name, one in searchers.items()}
        names = list(made)
        for number, a in enumerate(names):
            for b in names[number + 1 :]:
                compared[a, b] += 1
                agreed[a, b] += _same(made[a], made[b])
    return {pair: (agreed[pair], compared[pair]) for pair in compared}, sent


_GRID_WIDTH = 80
_LABEL_WIDTH = 30


def grid(names: Sequence[str], agreed: dict[tuple[str, str], tuple[int, int]]) -> list[str]:
    """Who agrees with whom, servers as rows and as columns, in percent, 80 columns wide.

    :param agreed: for each pair of names, on how many they agree, and of how many.
    """
    letters = [_letter(number) for number in range(len(names))]
    label = min(max(len(name) for name in names), _LABEL_WIDTH)
    columns = (_GRID_WIDTH - label - 4) // 8
    lines: list[str] = []
    for start in range(0, len(names), columns):
        chosen = range(start, min(start + columns, len(names)))
        head = "".join(f"{letters[number]:>8}" for number in chosen)
        lines.append(f"{'':{label + 4}}{head}")
        for row, name in enumerate(names):
            shown = name if len(name) <= label else "…" + name[1 - label :]
            cells = (_cell(name, names[number], agreed) for number in chosen)
            lines.append(f"{letters[row]:>3} {shown:{label}}{''.join(cells)}")
    return lines


def shares(
    names: Sequence[str], agreed: dict[tuple[str, str], tuple[int, int]]
) -> list[list[float | None]]:
    """The same as numbers: rows and columns in the order of ``names``; None where none compared."""

    def share(a: str, b: str) -> float | None:
        alike, compared = agreed.get((a, b)) or agreed.get((b, a)) or (0, 0)
        return alike / compared if compared else None

    return [[share(a, b) for b in names] for a in names]


def _letter(number: int) -> str:
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _cell(a: str, b: str, agreed: dict[tuple[str, str], tuple[int, int]]) -> str:
    if a == b:
        return f"{'-':>8}"
    [[_, share], _] = shares((a, b), agreed)
    return f"{'none':>8}" if share is None else f"{100 * share:>6.1f} %"


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


# Of a valid message: where what is asked for stands.
_CLAUSE = {
    Kind.REFUSED: "RFC 9112 2.2, 3",
    Kind.MISREAD: "RFC 9112 3, 6.3, RFC 9110 5.5",
    Kind.HUNG: "RFC 9112 6.3",
    Kind.OUT_OF_SYNC: "RFC 9112 9.3",
    Kind.MALFORMED: "RFC 9110 2.2",
}
_LEVEL = {Kind.REFUSED: Level.CTRL}


class Asked(msgspec.Struct, frozen=True):
    """What a find, as a scenario, asks for from then on."""

    clause: str
    level: Level
    passes: tuple[str, ...]
    allows: tuple[str, ...] = ()
    framing: bool = False


def asked(find: Find) -> Asked:
    """By the rule that the octets break, and as the catalogue asks for it; what the catalogue
    tolerates is tolerated here, too."""
    [*_, request] = request_reader.read(find.octets).requests
    if request.broken is None:
        return Asked(
            _CLAUSE.get(find.kind, "RFC 9112 3"),
            _LEVEL.get(find.kind, Level.MUST),
            _passes(find, request),
        )
    rule = tolerances.rule(find.octets) or tolerances.RULES[request.broken]
    allowed = tolerances.tolerance(find.octets)
    if find.kind is Kind.MISREAD and allowed is not None and allowed.request is not None:
        understood = _understood(find.about, allowed.octets, allowed.request)
        return Asked(rule.clause, Level.MUST, ("REJ", understood), framing=rule.framing)
    if find.kind is not Kind.ACCEPTED:
        passes = ("REJ", "ACC") if allowed is not None else _passes(find, request)
        return Asked(rule.clause, rule.level, passes, framing=rule.framing)
    allows = () if allowed is None else allowed.allows
    return Asked(rule.clause, rule.level, (rule.word,), allows, rule.framing)


def _passes(find: Find, request: request_reader.Request) -> tuple[str, ...]:
    match find.kind:
        case Kind.REFUSED:
            return ("PARSED",)
        case Kind.MISREAD:
            return (_understood(find.about, find.octets, request),)
        case Kind.OUT_OF_SYNC:
            return ("ONE; sync",)
        case _:
            return ("ONE", "CLOSE")


def _understood(about: frozenset[str], octets: bytes, request: request_reader.Request) -> str:
    """The acceptance of a message, with what was misread once as demands."""
    said = "ACC"
    for what in ("method", "target"):
        if what in about:
            said += f"; {what} {tolerances.text(getattr(request, what))}"
    if "content" in about:
        content = tolerances.text(request.content(octets))
        said += f"; content {content}" if content else "; empty"
    for what, sent in (("fields", request.fields), ("trailers", request.trailers)):
        if what in about:
            said += "".join(
                f"; {what[:-1]} {tolerances.text(name)} = {tolerances.text(value)}"
                for name, value in _by_name(sent).items()
            )
    return said


_BY_HAND_OCTETS_MAX = 8192  # no shell line is longer


def scenario(find: Find, *, host: str, command: str, again: Sequence[str] = ()) -> str:
    """A find as a scenario file; the Host value becomes the placeholder.

    :param command: the whole command of the search, told in a comment.
    :param again: lines of shell that send the octets again, likewise.
    """
    written = find.octets.split(host.encode("latin-1"))
    # A quote would end the text, and braces could be a placeholder.
    text = "{h}".join(printable.escaped(piece, also=b"'{}") for piece in written)
    number = int(hashlib.sha256(find.slug.encode()).hexdigest()[:7], 16)
    rule = asked(find)
    about = f" ({', '.join(sorted(find.about))})" if find.about else ""
    lines = [
        f"# Found by: {shell_lines.commented(command)}",
        *(f"# Again: {shell_lines.commented(line)}" for line in again),
        'suite = "found"',
        'family = "FOUND"',
        'title = "what the search brought home"',
        "",
        "[[case]]",
        f'id = "{find.slug}"',
        f'ref = "FOUND-{number}"',
        f'title = "{find.kind}: {find.part}{about}"',
        f'level = "{rule.level}"',
        f'clause = "{rule.clause}"',
        f'why = "A server and the grammar disagreed: it answered {find.actual}."',
        f"send = '{text}'",
        f"pass = {_listed(rule.passes)}",
    ]
    if rule.allows:
        lines.append(f"allow = {_listed(rule.allows)}")
    if rule.framing:
        lines.append("framing = true")
    return "\n".join(lines) + "\n"


def _listed(texts: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def reproducers(find: Find, target: targets.Target, *, words: Sequence[str]) -> list[str]:
    """Lines of shell that send the octets again: to replay the saved scenario, and by hand.

    :param words: the target as ``httpmark`` was told it, with its options.
    """
    line = shell_lines.command(find.slug, "found", words)
    if len(find.octets) > _BY_HAND_OCTETS_MAX:
        return [line]
    where = shell_lines.place(target.facts())
    return [
        line,
        shell_lines.scripted(find.octets, where=where),
        shell_lines.piped(find.octets, where),
    ]


def ready(folder: Path) -> None:
    """Make sure that finds can be saved, before there are any; leaves nothing behind.

    :raises HarnessError: nothing can be written there.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HarnessError(f"--out {folder}: {error.strerror}; name a folder for finds") from None
    finally:
        for one in missing:
            with contextlib.suppress(OSError):
                one.rmdir()


def save(find: Find, folder: Path, *, host: str, command: str, again: Sequence[str] = ()) -> Path:
    """Write a find as a scenario; returns the file.

    :raises HarnessError: it cannot be written.
    """
    path = folder / f"{find.slug}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(scenario(find, host=host, command=command, again=again), "utf-8")
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}; name another folder with --out") from None
    return path
