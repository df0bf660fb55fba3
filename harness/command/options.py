"""Options that several commands share, and how a command gets its options as one struct."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from httpmark.harness.command import configuration, known_commands
from httpmark.harness.command.run_argument import RunFolder
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import brought

_SOURCE = "httpmark.configuration"  # the key of click's context under which it is kept
Command = TypeVar("Command", bound=Callable[..., Any])
Words = TypeVar("Words", bound=msgspec.Struct)


class Number(click.FloatRange):
    """A number in a range; ``nan`` is refused, as it compares with nothing."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class ChoiceOf(click.Choice[str]):
    """One of some words that a heavy module holds: it is imported when they are needed."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self._known = known
        self.case_sensitive = True

    @functools.cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self._known())


def takes(words: type[Words]) -> Callable[[Callable[[Words], None]], Callable[..., None]]:
    """Hand a command its parameters as one struct, which has a field of each parameter's name."""

    def made(command: Callable[[Words], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            command(words(**given))

        return called

    return made


def configured(command: Command) -> Command:
    """Let a configuration file set what the command line leaves out."""

    def take(context: click.Context, _: click.Parameter, value: Path | None) -> None:
        found = configuration.read(value) if value else configuration.find(Path.cwd())
        context.meta[_SOURCE] = found
        if found is not None and context.info_name is not None:
            context.default_map = configuration.defaults(
                found, context.info_name, known_commands.configurable()
            )

    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=take,
        help="Read options from this file.  [default: the nearest httpmark.toml, or "
        "pyproject.toml with a [tool.httpmark] table]",
    )(command)


def field() -> brought.Field:
    """The servers that this call knows: by manifest, and by its configuration file.

    :raises HarnessError: the file is wrong.
    """
    context = click.get_current_context()
    known = _SOURCE in context.meta  # else the command takes no --config
    found = context.meta[_SOURCE] if known else configuration.find(Path.cwd())
    return brought.Field(configuration.stated(found) if found is not None else ())


def configuration_file() -> Path | None:
    """The configuration file of this call."""
    found: configuration.Source | None = click.get_current_context().meta.get(_SOURCE)
    return found.path if found is not None else None


def every_profile(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The word ``all`` stands for every profile there is."""
    if "all" not in names:
        return names
    from httpmark.harness.catalogue import loading

    return tuple(loading.load().plans)


def _engines() -> tuple[str, ...]:
    from httpmark.harness.load.engines import by_name

    return by_name.NAMES


def _rulesets() -> tuple[str, ...]:
    from httpmark.harness.gate import findings

    return findings.RULESETS


def _policies() -> tuple[str, ...]:
    from httpmark.harness.gate import findings

    return findings.INCONCLUSIVE


INCONCLUSIVE = ChoiceOf(_policies)

quick = click.option("--quick", is_flag=True, help="Measure fewer rounds with shorter windows.")
out = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the run into this new folder.  [default: httpmark-runs/<UTC time>-<short id>]",
)
serve = click.option(
    "--serve",
    metavar="COMMAND",
    help="Start this server, test it and stop it. COMMAND has {port} where its port goes, as "
    '"./server --port {port}".',
)
profile = click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    callback=every_profile,
    help="Use this load profile; 'all' means every profile. Repeatable. 'httpmark list profiles' "
    "shows the names.",
)
json_flag = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON instead of text."
)
colour = click.option(
    "--color",
    "colour",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour the text. 'auto' does so on a terminal, unless NO_COLOR is set.",
)
seed = click.option(
    "--seed",
    type=int,
    help="Seed of the random order of samples and of the confidence intervals.  "
    "[default: a random number, which the result names]",
)
runtime = click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice(["auto", "docker", "process"]),
    default="auto",
    help="How to start servers. 'auto' uses Docker if a daemon answers, else local processes.",
)


def cluster(*, default: str | None = None) -> Callable[[Command], Command]:
    """Where the workers are that take part."""
    return click.option(
        "--cluster",
        default=default,
        metavar="ADDRESS",
        help="Use the workers of this cluster: tcp://HOST:PORT of a Dask scheduler, "
        "ssh:HOST1,HOST2, or local:N for worker processes on this machine.",
    )


class _Generators(click.ParamType[int]):
    name = "generators"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return 0
        if isinstance(value, int):
            return value
        if not re.fullmatch(r"[1-9][0-9]{0,3}", str(value)):
            self.fail(f"{value!r} is neither auto nor a number from 1 to 9999", param, ctx)
        return int(value)


generators = click.option(
    "--generators",
    type=_Generators(),
    metavar="N|auto",
    help="With --cluster: how many workers make the load; auto adds some until the server is the "
    "bottleneck.  [default: all]",
)
engine = click.option(
    "--engine", type=ChoiceOf(_engines), default="native", help="The load generator to use."
)
wrk2 = click.option("--wrk2", metavar="PATH", help="Your wrk2 program. '--engine wrk2' needs it.")


def file(option: str, name: str, help_text: str) -> Callable[[Command], Command]:
    """An option that takes the path of a file or folder."""
    return click.option(option, name, type=click.Path(path_type=Path), help=help_text)


run = click.argument("folder", metavar="RUN", type=RunFolder())


def allow_remote(verb: str) -> Callable[[Command], Command]:
    """The user's word that a target on another machine may be tested."""
    return click.option(
        "--allow-remote",
        is_flag=True,
        help=f"Allow a target that is not on this machine. You must be allowed to {verb} it.",
    )


target_path = click.option(
    "--path",
    help="The path to request. GET must answer 2xx there, with any query.  [default: the path of "
    "TARGET, if it has one, else /hello, and / if that gets no 2xx]",
)
post_path = click.option(
    "--post-path",
    help="A path that takes POST of any short content. Cases with content go there; without one "
    "they are not asked.  [default: the path above, if it takes POST]",
)


load_path = click.option(
    "--path",
    help="Request this path of every server, instead of the profile's. GET must answer 2xx there.  "
    "[default: of an address the path in it, else /hello, and / if that gets no 2xx]",
)


def addressed(command: Command) -> Command:
    """What ``check`` and ``replay`` are told about a target besides its address.

    What is added here must be added to ``CheckOptions.again``, too.
    """
    for option in reversed(
        (
            file(
                "--manifest",
                "manifest",
                "Read the server's capabilities, limits and timeouts from this file, which has "
                "the keys of a server.toml.  [default: find them out by asking]",
            ),
            target_path,
            post_path,
            click.option("--host", help="Value of the Host field.  [default: that of TARGET]"),
            click.option(
                "--header",
                multiple=True,
                metavar="LINE",
                help="Send this field line with every request, as 'Name: value'. Repeatable.",
            ),
            file(
                "--cacert",
                "cacert",
                "Verify the certificate of an https TARGET with the certificates in this PEM "
                "file.  [default: do not verify]",
            ),
            allow_remote("test"),
            click.option(
                "--ruleset",
                type=ChoiceOf(_rulesets),
                default="rfc",
                help="What counts as a failure. rfc: a MUST or a control that is not met. "
                "hardened: also what is merely permitted, where the end of a message is at stake. "
                "realistic: only what every server should do. seed: each malformed request of the "
                "published families that is let through.",
            ),
        )
    ):
        command = option(command)
    return command


def is_configured(name: str) -> bool:
    """Whether a parameter has its value of the configuration file."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT_MAP


def is_quick(quick: bool, full: bool) -> bool:
    """Whether to be quick; an option of the command line beats one of the configuration file.

    :raises HarnessError: both are given in one place.
    """
    source = click.get_current_context().get_parameter_source
    from_file = click.core.ParameterSource.DEFAULT_MAP
    if quick and full and from_file not in (source("quick"), source("full")):
        raise HarnessError("--quick and --full exclude each other: leave one out")
    return quick and not (full and source("quick") is from_file)
