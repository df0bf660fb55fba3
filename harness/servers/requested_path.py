"""The path that a server is asked for: the one that is named, else one that GET answers 2xx."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from httpmark.harness.http import response_reader
from httpmark.harness.http.address import Address, endpoint
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import sockets

FIRST, ROOT = "/hello", "/"
CANDIDATES = (FIRST, ROOT)
"""What is requested where nobody names a path: the first of them that gets a 2xx."""
ADVICE = "name a path that GET answers with 2xx, as --path /health"
_PATH = re.compile(r"/[!-~]*")
_ASK_S = 2.0


def of_address(where: Address) -> str | None:
    """The path that an address names; with and without the slash at its end it names none."""
    return None if where.path in ("", ROOT) else where.path


def checked(path: str) -> str:
    """A path that a request line can hold.

    :raises HarnessError: this one is not.
    """
    if _PATH.fullmatch(path) is None:
        raise HarnessError(
            f"{path!r} is not a path: begin it with /, as /health, and write spaces and bytes "
            "that are not ASCII as %XX"
        )
    return path


def status(address: str, port: int, path: str, *, tls: bool = False) -> int:
    """The status that one plain GET gets; 0 if there is no answer."""
    head = f"GET {path} HTTP/1.1\r\nHost: {endpoint(address, port)}\r\n\r\n"
    try:
        answer = sockets.ask(address, port, head.encode("latin-1"), deadline_s=_ASK_S, tls=tls)
    except OSError:
        return 0
    return response_reader.final_status(answer)


def accepts(code: int) -> bool:
    """Whether a status is a 2xx."""
    return code // 100 == 2


def found(ask: Callable[[str], int]) -> tuple[str | None, str]:
    """The first of the candidates that is answered with 2xx; else None, and what came instead.

    A server that answers none of them at all is left to the load, which says more: it gets the
    first candidate.

    :param ask: gives the status of a path.
    """
    came: dict[str, int] = {}
    for path in CANDIDATES:
        came[path] = ask(path)
        if accepts(came[path]):
            return path, ""
    return (None, refused(came)) if any(came.values()) else (CANDIDATES[0], "")


def refused(came: Mapping[str, int | str]) -> str:
    """That no path was answered with 2xx, by what came for each, and what to do."""
    told = " and ".join(
        f"GET {path} was answered with {code or 'nothing'}" for path, code in came.items()
    )
    return f"{told}, so nothing was measured: {ADVICE}"
