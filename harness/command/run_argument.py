"""How a run folder is named on the command line and in a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from httpmark.harness.model import run_folder


class RunFolder(click.Path):
    """A run folder; ``latest`` stands for the newest one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return run_folder.named(Path(str(super().convert(value, param, ctx))))
