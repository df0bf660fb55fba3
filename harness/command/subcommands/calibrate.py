"""`httpmark calibrate`: what the load generators themselves cost."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import click

from httpmark.harness.command import options, printing, progress_display
from httpmark.harness.command.printing import print_json


def _engines() -> Iterable[str]:
    from httpmark.harness.load import calibration

    return calibration.ENGINES


@click.command("calibrate")
@options.configured
@click.option(
    "--engine",
    "names",
    type=options.ChoiceOf(_engines),
    multiple=True,
    help="Measure this load generator. Repeatable.  [default: all]",
)
@click.option(
    "--rounds", type=click.IntRange(1, 100), default=5, help="Number of samples of each engine."
)
@click.option(
    "--seconds",
    type=options.Number(0.1, 60),
    default=2.0,
    help="Length of each measuring window, in seconds.",
)
@options.seed
@options.json_flag
def command(
    names: tuple[str, ...], rounds: int, seconds: float, seed: int | None, as_json: bool
) -> None:
    """Measure what the load generators themselves cost.

    Each generator loads the null server, which costs next to nothing: httpmark-load beside wrk and
    h2load, in CPU time per response.

    The exit code is 1 if httpmark-load misses its aim.
    """
    from httpmark.harness.load import calibration
    from httpmark.harness.report import calibration_table

    seed = secrets.randbits(31) if seed is None else seed
    cells: list[calibration.Cell] = []
    with progress_display.display() as events:
        try:
            for cell in calibration.measure(
                names or calibration.ENGINES,
                rounds=rounds,
                seconds=seconds,
                seed=seed,
                say=events.say,
            ):
                cells.append(cell)
        finally:
            if cells and as_json:
                print_json({"seed": seed, "cells": cells})
            elif cells:
                printing.echo("\n".join([*calibration_table.lines(cells), f"seed {seed}"]))
    if any(cell.meets_aim is False for cell in cells):
        raise SystemExit(1)
