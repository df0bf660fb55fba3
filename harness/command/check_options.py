"""What a check is asked to do, and the words that ask for it again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from httpmark.harness.model.errors import HarnessError

MASK = "***"
"""What stands for the value of a field line, which may be a secret."""

# These fields are what the cases are about: an own one would spoil them.
_FRAMING = frozenset({
    "host", "connection", "content-length", "transfer-encoding", "trailer", "te", "expect",
    "upgrade",
})  # fmt: skip


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What to check, and how the target is addressed."""

    target: str
    suites: tuple[str, ...] = ()
    quick: bool = False
    full: bool = False  # every delivery, too
    path: str | None = None  # None: the path of the target's URL, else /hello, else /
    post_path: str | None = None  # takes POST; None: the path above does, or nothing
    host: str | None = None
    allow_remote: bool = False
    out: Path | None = None
    cases: tuple[str, ...] = ()  # selectors; none is all
    exclude: tuple[str, ...] = ()
    ruleset: str = "rfc"
    manifest: Path | None = None
    serve: str | None = None  # a command with {port}; started, tested and stopped
    cacert: Path | None = None  # what the certificate of an https target is verified with
    rerun: Path | None = None  # a run folder whose failures are taken
    jobs: int | None = None  # at most so many connections at once
    header: tuple[str, ...] = ()  # field lines that go after every Host line

    @property
    def again(self) -> tuple[str, ...]:
        """The words that say the same to ``check`` and ``replay`` (``ServerResult.again``)."""
        said = ["--serve", self.serve] if self.serve is not None else [self.target]
        for option, value in (
            ("--path", self.path),
            ("--post-path", self.post_path),
            ("--host", self.host),
            *(("--header", _masked(line)) for line in self.header),
            ("--cacert", self.cacert),
            ("--manifest", self.manifest),
        ):
            said += [option, str(value)] if value is not None else []
        said += ["--allow-remote"] * self.allow_remote
        said += ["--ruleset", self.ruleset] * (self.ruleset != "rfc")
        return tuple(said)


def _masked(line: str) -> str:
    return f"{line.partition(':')[0]}: {MASK}"


def field_lines(given: Iterable[str]) -> tuple[str, ...]:
    """The lines of ``--header``, each a field line that says nothing about framing or the target.

    This is where they come in, so their values are marked as secrets here.

    :raises HarnessError: another line, by its number: what is no field line may be a secret, too.
    """
    from httpmark.harness.http import grammar, masking

    lines = tuple(given)
    for number, line in enumerate(lines, 1):
        try:
            octets = line.encode("latin-1") + b"\r\n"
        except UnicodeEncodeError:
            octets = b""
        if grammar.FIELD_LINES.fullmatch(octets) is None or octets.count(b"\n") != 1:
            which = "it" if len(lines) == 1 else f"number {number}"
            raise HarnessError(f"--header: {which} is not a field line; write 'Name: value'")
        name, _, value = line.partition(":")
        if value.strip() and not value.strip(" \t*"):  # a mask of ours, copied
            raise HarnessError(f"--header: {name}: replace {MASK} by the value")
        if name.lower() in _FRAMING:
            raise HarnessError(f"--header: the cases themselves set {name}; leave it out")
    masking.mark(lines)
    return lines
