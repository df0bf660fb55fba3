"""Why a case does not apply to a target, and what its manifest has to say so that it does."""

from __future__ import annotations

from collections.abc import Iterable

from httpmark.harness.model.cases import STATIC_FILE_FACTS

_HOW = "(docs/manifest.md)"
# Found by asking alone: a manifest cannot say it.
_BEHAVIOURS = {
    "catch_all": "a target that answers 2xx to GET of any path and query",
    "own_answer": "a target whose answer to an unknown path and to a query is known, and no 400",
    "early": "/early answered before the content came",
}
POST_TAKEN = "a path that takes POST"
NO_POST = f"needs {POST_TAKEN}: add --post-path PATH"
"""Why a case with POST does not apply where no path is known that takes it."""

# What an answer to ok.html has to say for a fact of the static files to be known.
_SAID_OF_FILES = {
    "etag": "an ETag",
    "modified": "a Last-Modified",
    "modified_rfc850": "a Last-Modified",
    "modified_asctime": "a Last-Modified",
}


def needs(lacking: Iterable[str]) -> str:
    """Why a case does not apply that needs these words of ``needs``, none of which a target has."""
    named = tuple(lacking)
    said = f"needs {', '.join(_BEHAVIOURS.get(need, need) for need in named)}"
    keys = [_key(need) for need in named if need not in _BEHAVIOURS and need != "tls"]
    return f"{said}: declare {' and '.join(keys)} in a manifest {_HOW}" if keys else said


def value(name: str) -> str:
    """Why a case does not apply whose texts need a value: ``limit.NAME``, ``timeout.NAME``, or a
    fact of the static files."""
    if name in STATIC_FILE_FACTS:
        said = _SAID_OF_FILES.get(name, "the planted text")
        return (
            f"/static/ok.html is not answered with {said}: serve the planted files, and declare "
            f"static among the capabilities in a manifest {_HOW}"
        )
    if name == "post_path":
        return NO_POST
    kind, _, one = name.partition(".")
    if kind in ("limit", "timeout"):
        return f"the target declares no {kind} {one}: declare {kind}s.{one} in a manifest {_HOW}"
    return f"the target declares no {name.replace('.', ' ')}"


def _key(need: str) -> str:
    """The key of a manifest that a need asks for."""
    kind, _, name = need.partition(".")
    if kind in ("timeout", "declared"):
        return f"timeouts.{name}"
    return f"the capability {need.replace('|', ' or ')}"
