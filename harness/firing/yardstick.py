"""What an application itself answers to good requests: the yardstick for what bad ones get.

An ordinary application has exact routes: GET here, POST there, 404 elsewhere. Such an answer says
nothing of how its server reads HTTP, so no verdict may rest on it.
"""

from __future__ import annotations

import msgspec

from httpmark.harness.catalogue import case_builder
from httpmark.harness.firing.targets import Target
from httpmark.harness.http import response_reader
from httpmark.harness.model.cases import Facts, OwnAnswers

_ASK_MS = 2000
_UNKNOWN_PATH = "/any/of/them"
_CONTENT = "hello"
# The application took a POST, whatever it thinks of its content.
_TAKEN = frozenset((*range(200, 400), 409, 415, 422))


def applied(target: Target, known: Facts | None = None) -> Target:
    """The target with what its application answers, and with the path that takes POST.

    :param known: the answers of an earlier suite; they are not asked again.
    """
    if known is not None and known.own != OwnAnswers():
        return msgspec.structs.replace(target, own=known.own, post_path=known.post_path)
    own = OwnAnswers(
        unknown_path=_status(target, f"GET {_UNKNOWN_PATH}"),
        query=_status(target, f"GET {target.path}{'&' if '?' in target.path else '?'}any=query"),
        head=_status(target, f"HEAD {target.path}"),
    )
    if target.post_path is None:  # its manifest says that its routes take GET alone
        return msgspec.structs.replace(target, own=own)
    for path in _may_take_post(target):
        where = path or target.path
        post, empty = _status(target, f"POST {where}", _CONTENT), _status(target, f"POST {where}")
        asked = msgspec.structs.replace(own, post=post, post_empty=empty)
        if _is_for_cases(post) and _is_for_cases(empty):
            return msgspec.structs.replace(target, own=asked, post_path=path)
    return msgspec.structs.replace(target, own=asked, post_path=None)


def _may_take_post(target: Target) -> tuple[str, ...]:
    """The paths to ask: the one that the user names, else what the target has."""
    if target.post_path:
        return (target.post_path,)
    return ("", *(("/body",) if "body" in target.capabilities else ()))


def _is_for_cases(status: int | None) -> bool:
    """Whether cases with content can be sent where good POSTs get this status.

    Silence and a 5xx are no answers of an application, and cases have to tell them.
    """
    return status is None or status in _TAKEN or (status >= 500 and status != 501)


def _status(target: Target, line: str, content: str = "") -> int | None:
    """The status of the answer to one good request on a connection of its own."""
    facts = target.facts()
    length = f"Content-Length: {len(content)}\r\n" if line.startswith("POST ") else ""
    request = f"{line} HTTP/1.1\r\n{facts.host_lines}{length}Connection: close\r\n\r\n{content}"
    deadline_s = case_builder.patience_ms(_ASK_MS, facts) / 1000
    answer = target.ask(request.encode("latin-1"), deadline_s=deadline_s)
    return response_reader.final_status(answer) or None
