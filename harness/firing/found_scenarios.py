"""What fuzzing found, saved as a scenario file, so that later checks ask it again."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from httpmark.harness.firing import targets
from httpmark.harness.firing.fuzz import Find, Kind, by_name
from httpmark.harness.http import printable, request_reader, shell_lines, tolerances
from httpmark.harness.model.cases import Level, Op, Step
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.progress import undisturbed

# The clause that a server breaks with a valid message.
_CLAUSE = {
    Kind.REFUSED: "RFC 9112 2.2, 3",
    Kind.MISREAD: "RFC 9112 3, 6.3, RFC 9110 5.5",
    Kind.HUNG: "RFC 9112 6.3",
    Kind.OUT_OF_SYNC: "RFC 9112 9.3",
    Kind.MALFORMED: "RFC 9110 2.2",
}
_LEVEL = {Kind.REFUSED: Level.CTRL}


class Demand(msgspec.Struct, frozen=True):
    """What a server has to do with a find, as the scenario says it."""

    clause: str
    level: Level
    passes: tuple[str, ...]
    allows: tuple[str, ...] = ()
    framing: bool = False


def demand(find: Find) -> Demand:
    """What the rule that the bytes break asks of a server, with the catalogue's tolerances."""
    [*_, request] = request_reader.read(find.octets).requests
    if request.broken is None:
        return Demand(
            _CLAUSE.get(find.kind, "RFC 9112 3"),
            _LEVEL.get(find.kind, Level.MUST),
            _passes(find, request),
        )
    rule = tolerances.rule(find.octets) or tolerances.RULES[request.broken]
    allowed = tolerances.tolerance(find.octets)
    if find.kind is Kind.MISREAD and allowed is not None and allowed.request is not None:
        understood = _understood(find.about, allowed.octets, allowed.request)
        return Demand(rule.clause, Level.MUST, ("REJ", understood), framing=rule.framing)
    if find.kind is not Kind.ACCEPTED:
        passes = ("REJ", "ACC") if allowed is not None else _passes(find, request)
        return Demand(rule.clause, rule.level, passes, framing=rule.framing)
    allows = () if allowed is None else allowed.allows
    return Demand(rule.clause, rule.level, (rule.word,), allows, rule.framing)


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
    """The word for accepting a message, with a demand for each thing that was misread."""
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
                for name, value in by_name(sent).items()
            )
    return said


_BY_HAND_BYTES_MAX = 8192  # longer shell lines are hard to copy


def scenario(find: Find, *, host: str, command: str, again: Sequence[str] = ()) -> str:
    """A find as a scenario file; the Host value becomes the placeholder.

    :param command: the whole command of the search, for a comment.
    :param again: shell lines that send the bytes again, for comments.
    """
    written = find.octets.split(host.encode("latin-1"))
    # A quote would end the text, and a brace could begin a placeholder.
    text = "{h}".join(printable.escaped(piece, also=b"'{}") for piece in written)
    number = int(hashlib.sha256(find.slug.encode()).hexdigest()[:7], 16)
    rule = demand(find)
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
    """Shell lines that send the bytes again: one replays the saved scenario, two work by hand.

    :param words: the target and the options as the user gave them.
    """
    line = shell_lines.command(find.slug, "found", words)
    if len(find.octets) > _BY_HAND_BYTES_MAX:
        return [line]
    where = shell_lines.place(target.facts())
    return [
        line,
        shell_lines.scripted([Step(Op.SEND, find.octets)], where),
        shell_lines.piped(find.octets, where),
    ]


def ready(folder: Path) -> None:
    """Check that finds can be saved before the search begins; creates nothing that stays.

    :raises HarnessError: nothing can be written there.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HarnessError(
            f"--out {folder}: {error.strerror}; name a folder that finds can be saved in"
        ) from None
    finally:
        for one in missing:
            with contextlib.suppress(OSError):
                one.rmdir()


def save(find: Find, folder: Path, *, host: str, command: str, again: Sequence[str] = ()) -> Path:
    """Write a find as a scenario, whole or not at all: half a one would be a mistake in the
    catalogue. Returns the file.

    :raises HarnessError: it cannot be written.
    """
    path = folder / f"{find.slug}.toml"
    fresh = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with undisturbed():
            fresh.write_text(scenario(find, host=host, command=command, again=again), "utf-8")
            fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise HarnessError(f"{path}: {error.strerror}; name another folder with --out") from None
    return path
