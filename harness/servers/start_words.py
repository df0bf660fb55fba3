"""The command and the files of one start, with their placeholders filled in."""

from __future__ import annotations

import re

from httpmark.harness.http.address import endpoint
from httpmark.harness.model.servers import ContainerRecipe, ProcessRecipe, Tls
from httpmark.harness.servers import static_files


def filled(word: str, **values: str) -> str:
    """Put values in place of ``{name}``; other braces, as configuration has them, stay."""
    return re.sub(r"\{([a-z_]+)\}", lambda match: values.get(match[1], match[0]), word)


def placeholder_values(address: str, port: int, workers: int, scratch: str) -> dict[str, str]:
    return {
        "address": address,
        "port": str(port),
        "endpoint": endpoint(address, port),
        "workers": str(workers),
        "scratch": scratch,
        "static": f"{scratch}/{static_files.FOLDER}",
    }


def start_files(
    recipe: ProcessRecipe | ContainerRecipe, *, tls: bool, conformance: bool
) -> dict[str, str]:
    """The files of one start."""
    return (
        recipe.files
        | (recipe.tls_files if tls else {})
        | (recipe.conformance_files if conformance else {})
    )


def start_words(
    recipe: ProcessRecipe | ContainerRecipe, *, tls: bool, conformance: bool
) -> tuple[str, ...]:
    """The command of one start, or what goes after the command that an image has."""
    return (
        *(recipe.start or (recipe.args if isinstance(recipe, ContainerRecipe) else ())),
        *(recipe.tls if tls else ()),
        *(recipe.conformance if conformance else ()),
    )


def tls_values(address: str, tls: Tls, cert: str, key: str) -> dict[str, str]:
    return {
        "tls_port": str(tls.port),
        "tls_endpoint": endpoint(address, tls.port),
        "tls_cert": cert,
        "tls_key": key,
    }
