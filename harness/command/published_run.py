"""The run behind `httpmark published`: the published profiles, over the servers of the posts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from httpmark.harness.catalogue import loading
from httpmark.harness.command import printing, progress_display, run_options, run_session
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.run import Run
from httpmark.harness.report import published_tables
from httpmark.harness.servers import brought, starting

OURS = "reference"


def made(
    wanted: Sequence[str],
    *,
    names: tuple[str, ...],
    field: brought.Field,
    runtime: str,
    quick: bool,
    out: Path | None,
    seed: int | None,
) -> Run:
    """Measure what is wanted: names of :data:`published_tables.PROFILES`, or compliance.

    :raises Unusable: no server could be used.
    """
    profiles = tuple(
        profile for name, profile in published_tables.PROFILES.items() if name in wanted
    )
    options = run_options.Options(
        suites=(published_tables.SUITE,) if published_tables.COMPLIANCE in wanted else (),
        profiles=profiles,
        servers=names or _at_hand(profiles, field, runtime),
        field=field,
        runtime=runtime,
        quick=quick,
        out=out,
        seed=seed,
    )
    with progress_display.display() as events:
        runner = run_session.Runner(options, events)
        run = runner.run()
    printing.echo(f"run: {runner.folder}", err=True)
    return run


def _at_hand(profiles: Sequence[str], field: brought.Field, runtime: str) -> tuple[str, ...]:
    """The reference, and who stands in the published tables and can be had here."""
    known = loading.load()
    posted = {
        name
        for profile in profiles
        for one in known.plan(profile).posted
        for name in one.requests_per_second
    } | set(known.published)
    found = []
    for name in (OURS, *sorted(posted - {OURS})):
        try:
            starting.for_server(field.server(name), runtime)
        except Unusable as error:
            printing.echo(f"{name} is left out: {error}", err=True)
        else:
            found.append(name)
    return tuple(found)
