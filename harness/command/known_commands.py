"""The subcommands there are: found by their files, and imported when they are asked for."""

from __future__ import annotations

import importlib
import pkgutil

import click

from httpmark.harness.command import subcommands


def names() -> list[str]:
    """The names of all commands, in the order of the alphabet."""
    return sorted(module.name for module in pkgutil.iter_modules(subcommands.__path__))


def load(name: str) -> click.Command:
    """A command by its name, which must be one of :func:`names`."""
    module = importlib.import_module(f"{subcommands.__name__}.{name}")
    found: click.Command = module.command
    return found


def configurable() -> dict[str, click.Command]:
    """The commands that a configuration file may set options of."""
    commands = {name: load(name) for name in names()}
    return {
        name: command
        for name, command in commands.items()
        if any(parameter.name == "config" for parameter in command.params)
    }
