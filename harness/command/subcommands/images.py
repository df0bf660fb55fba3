"""`httpmark images`: the folders of servers: begun, built, and held to their contract."""

from __future__ import annotations

from pathlib import Path

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import HarnessError


@click.group("images")
def command() -> None:
    """Begin, build and verify the folders of servers."""


@command.command("build")
@click.argument("names", nargs=-1, metavar="[SERVER]...")
@click.option("--all", "is_all", is_flag=True, help="Build all servers. So it is without a SERVER.")
@click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice(["docker", "process", "auto"]),
    default="docker",
    help="Build container images, or what servers need to run as local processes. 'auto' builds "
    "what a run would use.",
)
@click.option(
    "--timeout-s",
    type=click.FloatRange(min=0, min_open=True),
    default=1800,
    help="End a build that takes longer than this.",
)
@options.json_flag
def build(
    names: tuple[str, ...], is_all: bool, runtime_name: str, timeout_s: float, as_json: bool
) -> None:
    """Build these servers, or all.

    A SERVER is a name of 'httpmark list servers'. A build that fails or does not end does not
    stop the others. What was built before is not built again.

    The exit code is 3 if a build failed, or if a server that you named is unavailable.
    """
    from httpmark.harness.command import image_builds, progress_display
    from httpmark.harness.model.errors import Unusable
    from httpmark.harness.servers import manifests

    if is_all and names:
        raise HarnessError("images build: --all goes without names: leave one out")
    chosen = [manifests.server(name) for name in names] or manifests.servers()
    with progress_display.display() as events:
        builds = image_builds.build_all(chosen, runtime_name, deadline_s=timeout_s, events=events)
    if as_json:
        print_json({"builds": builds})
    else:
        for one in builds:
            printing.echo(image_builds.line(one))
        printing.echo(image_builds.summary(builds))
    bad = [one for one in builds if image_builds.is_bad(one, is_named=bool(names))]
    if bad:
        raise Unusable(f"{bad[0].name}: {bad[0].because}" + _and_more(len(bad)))


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


@command.command("prune")
@click.option(
    "--days",
    type=options.Number(min=0),
    help="Remove what was not used for so many days.  [default: 30]",
)
@click.option(
    "--gib",
    type=options.Number(min=0),
    help="Remove the least recently used while all builds together take more than this.  "
    "[default: the variable HTTPMARK_CACHE_GIB, else 40]",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing, and say what would be removed.")
@options.json_flag
def prune(days: float | None, gib: float | None, dry_run: bool, as_json: bool) -> None:
    """Remove builds that were not used for long: local builds and container images.

    A build that is removed is made again when it is needed.
    """
    import time

    from httpmark.harness.command import build_pruning
    from httpmark.harness.servers import kept_builds

    bound = kept_builds.bound_gib() if gib is None else gib
    days = kept_builds.DAYS if days is None else days
    done = build_pruning.prune(days=days, gib=bound, now=time.time(), dry_run=dry_run)
    if as_json:
        print_json(done)
    else:
        printing.echo("\n".join(build_pruning.lines(done)))


@command.command("new")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Make the folder of the server in this one.  [default: the current folder]",
    show_default=False,
)
def new(name: str, folder: Path) -> None:
    """Write the skeleton of a server's folder.

    It holds a server.toml that explains its keys, and a Dockerfile. Nothing is overwritten.
    """
    import shlex

    from httpmark.harness.command import image_skeleton

    made = image_skeleton.write(name, folder)
    printing.echo(f"made {made}: fill in server.toml and Dockerfile, then verify it:")
    above = shlex.quote(str(made.parent))
    printing.echo(f"HTTPMARK_IMAGES={above} httpmark images verify {name}")


@command.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Verify all servers that can be had here, and name those that cannot.",
)
@options.runtime
@options.json_flag
def verify(names: tuple[str, ...], is_all: bool, runtime_name: str, as_json: bool) -> None:
    """Prove that servers keep the contract of their folders.

    Builds each server, starts it with one and with two workers, asks for every capability that
    its server.toml declares, and stops it. A NAME is a name of 'httpmark list servers'.

    The exit code is 1 if a promise is broken, and 3 if a server cannot be built or started. With
    --all, one whose toolchain or image is missing is named, and does not count.
    """
    from httpmark.harness.command import image_verification, progress_display
    from httpmark.harness.servers import manifests

    if is_all == bool(names):
        raise HarnessError("images verify: name servers, or give --all")
    chosen = [manifests.server(name) for name in dict.fromkeys(names)]
    if is_all:
        chosen, lacking = image_verification.at_hand(manifests.servers(), runtime_name)
        for name, why in lacking.items():
            printing.echo(f"{name} is unavailable, because {why}", err=True)
    with progress_display.display() as events:
        found = image_verification.verify_all(chosen, runtime_name, events=events)
    if as_json:
        print_json({"servers": image_verification.as_values(found)})
    else:
        for row in image_verification.lines(found):
            printing.echo(row)
    code = image_verification.exit_code(found)
    if code:
        raise SystemExit(code)
