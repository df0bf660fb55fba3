"""`httpmark explain`: what a word of a report means."""

from __future__ import annotations

import click

from httpmark.harness.command import printing


@click.command("explain")
@click.argument("case")
def command(case: str) -> None:
    """Explain a case, or any other word of a report.

    For a case, this prints the rule, the bytes, and a line that sends them without httpmark. CASE
    may also be a check (RESP-20), a family (CL), a clause (9112/6.3), a verdict (void), a
    requirement or a column.

    \b
    Examples:
      httpmark explain content-length-plus-sign
      httpmark explain 9112/6.3
    """
    from httpmark.harness.report import explain

    printing.echo(explain.explain(case))
