"""`httpmark fuzz`: search for requests that a server handles wrongly."""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.progress import Interrupted, undisturbed

if TYPE_CHECKING:
    from httpmark.harness.firing import fuzz, targets


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the command, as click names them."""

    targets: tuple[str, ...]
    seconds: float
    seed: int | None
    path: str | None
    out: Path | None
    allow_remote: bool
    as_json: bool


@click.command("fuzz")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--seconds",
    type=options.Number(0.1, 86400),
    default=60.0,
    help="How long to search, in seconds.",
)
@click.option(
    "--seed",
    type=int,
    help="Seed of the search.  [default: a random number, which is printed]",
)
@options.target_path
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save what is found in this folder.  [default: the folder that $HTTPMARK_FOUND names, "
    "else scenarios/found]",
)
@options.allow_remote("test")
@click.option(
    "--json", "as_json", is_flag=True, help="Print what is found as JSON instead of text."
)
@options.takes(Words)
def command(words: Words) -> None:
    """Search for requests that a server handles wrongly.

    Generates valid and invalid requests from the grammar of HTTP and sends them. Where TARGET and
    the grammar disagree, the request is made as short as possible and saved as a scenario. The exit
    code is 1 if there is such a disagreement.

    With several TARGETs, the same requests go to all of them, and a table shows how often each pair
    of servers agrees.

    \b
    Examples:
      httpmark fuzz http://127.0.0.1:8080/ --seconds 60
      httpmark fuzz 127.0.0.1:8080 127.0.0.1:8081 --seconds 10
    """
    # Hypothesis takes a while to load, and no other command needs it.
    from httpmark.harness.catalogue import loading
    from httpmark.harness.command import check_options, named_target
    from httpmark.harness.firing import discovery, found_scenarios, fuzz
    from httpmark.harness.firing.probe import RunningProbe

    seed = secrets.randbits(32) if words.seed is None else words.seed
    folder = words.out or loading.found_folder()
    if len(set(words.targets)) == 1:
        found_scenarios.ready(folder)
    printing.echo(f"seed {seed}", err=words.as_json)
    asked = {
        text: named_target.asked(
            check_options.Options(target=text, path=words.path, allow_remote=words.allow_remote)
        )
        for text in words.targets
    }
    for text, one in asked.items():
        if why := discovery.cut_short(one):
            raise Unusable(f"{text}: {why}: httpmark check {text} tells more")
    with contextlib.ExitStack() as stack:
        searchers = {
            text: fuzz.Searcher(one, stack.enter_context(RunningProbe(one.probe(in_flight=1))))
            for text, one in asked.items()
        }
        if len(searchers) > 1:
            _compare(searchers, seconds=words.seconds, seed=seed, as_json=words.as_json)
            return
        [(text, searcher)] = searchers.items()
        has_found = _Search(words, text, asked[text], seed=seed, folder=folder).run(searcher)
    if has_found:
        raise SystemExit(1)


def _compare(
    searchers: dict[str, fuzz.Searcher], *, seconds: float, seed: int, as_json: bool
) -> None:
    """Print which servers agree with which."""
    from httpmark.harness.firing import server_agreement

    agreed, sent = server_agreement.agreement(searchers, seconds=seconds, seed=seed)
    names = list(searchers)
    if as_json:
        pairs = [
            {"servers": pair, "agreed": alike, "compared": compared}
            for pair, (alike, compared) in agreed.items()
        ]
        print_json({"seed": seed, "sent": sent, "servers": names, "pairs": pairs,
                    "grid": server_agreement.shares(names, agreed)})  # fmt: skip
        return
    printing.echo("\n".join(server_agreement.grid(names, agreed)))
    printing.echo(f"{sent} messages; two servers agree if both refuse, or both understand the same")


class _Search:
    """The search of one target, and what it prints."""

    def __init__(
        self, words: Words, text: str, target: targets.Target, *, seed: int, folder: Path
    ) -> None:
        from httpmark.harness.catalogue import loading
        from httpmark.harness.command import check_options

        self.words, self.target, self.seed, self.folder = words, target, seed, folder
        self.saved = 0
        self.again = check_options.Options(
            target=text, path=words.path, allow_remote=words.allow_remote
        ).again
        saved_to = ("--out", str(words.out)) if words.out is not None else ()
        self.command = shlex.join(
            ("httpmark", "fuzz", *self.again, "--seconds", f"{words.seconds:g}",
             "--seed", str(seed), *saved_to)
        )  # fmt: skip
        # A line that replays a find must say where it was saved, unless that is the default.
        named = words.out is not None
        self.place = f"{loading.FOUND_SET}={shlex.quote(str(words.out))} " if named else ""

    def run(self, searcher: fuzz.Searcher) -> bool:
        """Search, and print each find; whether there was one."""
        from httpmark.harness.firing import found_scenarios, fuzz

        def tell(find: fuzz.Find) -> None:
            lines = self._reproducers(find)
            lines[0] = self.place + lines[0]
            # What is saved is said, too.
            with undisturbed():
                saved = found_scenarios.save(
                    find, self.folder, host=searcher.facts.host, command=self.command, again=lines
                )
                self.saved += 1
                self._print(find, saved, lines)

        try:
            finds, sent = fuzz.search(
                searcher, seconds=self.words.seconds, seed=self.seed, tell=tell
            )
        except Interrupted as stop:
            kept = f"the finds until then are in {self.folder}" if self.saved else "nothing found"
            raise Interrupted(stop.code, kept) from None
        if self.words.as_json:
            listed = [
                {"kind": f.kind, "part": f.part, "about": sorted(f.about), "octets": f.octets,
                 "actual": f.actual, "id": f.slug, "reproducers": self._reproducers(f)}
                for f in finds
            ]  # fmt: skip
            told = {"seed": self.seed, "sent": sent, "command": self.command, "finds": listed}
            print_json(told)
        else:
            printing.echo(f"{sent} messages, {len(finds)} disagreements")
            printing.echo(f"to repeat this search: {self.command}")
        return bool(finds)

    def _reproducers(self, find: fuzz.Find) -> list[str]:
        from httpmark.harness.firing import found_scenarios

        return found_scenarios.reproducers(find, self.target, words=self.again)

    def _print(self, find: fuzz.Find, saved: Path, lines: Sequence[str]) -> None:
        from httpmark.harness.http import printable

        is_error = self.words.as_json
        told = f"{find.kind}: {find.part}: answered {find.actual}; saved as {saved}"
        printing.echo(told, err=is_error)
        printing.echo(printable.escaped_lines(find.octets), err=is_error)
        printing.echo("\n".join(f"  {line}" for line in lines), err=is_error)
