"""`httpmark cluster`: the workers that take part of a run."""

from __future__ import annotations

import click

from httpmark.harness.command import options, printing
from httpmark.harness.command.printing import print_json
from httpmark.harness.model.errors import Unusable


@click.group("cluster")
def command() -> None:
    """Look at the workers that 'run --cluster' uses."""


@command.command("doctor")
@options.cluster(default="local:2")
@options.json_flag
def doctor(cluster: str, as_json: bool) -> None:
    """Show what each worker of a cluster may do, what it lacks, and how to mend it.

    The exit code is 3 if anything is missing.

    \b
    Examples:
      httpmark cluster doctor --cluster tcp://scheduler:8786
      httpmark cluster doctor --cluster ssh:host1,host2
    """
    from httpmark.harness.cluster import addresses, connecting, inspection
    from httpmark.harness.command import cluster_doctor

    with connecting.opened(addresses.parse(cluster)) as opened:
        report = inspection.inspect(opened)
    if as_json:
        print_json(report)
    else:
        printing.echo("\n".join(cluster_doctor.lines(report)))
    if report.missing:
        things = "1 thing is" if report.missing == 1 else f"{report.missing} things are"
        raise Unusable(f"{cluster}: {things} missing; each line above ends with what mends it")
