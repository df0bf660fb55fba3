"""Loads whose answers are not the 2xx that were expected: they measured nothing."""

from __future__ import annotations

from collections.abc import Mapping

from httpmark.harness.load.engines.launch import Measured, Target
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadPlan, LoadResult
from httpmark.harness.servers import requested_path

# Above this share of a window's answers the server mostly refused: what was loaded is the way to an
# error, not what the requests are for.
REFUSED_MAX = 0.5
_SHOWN_MAX = 3


class Refused(Unusable):
    """A window that measured nothing; ``statuses`` are those that came instead of a 2xx."""

    def __init__(self, told: str, statuses: Mapping[str, int]) -> None:
        super().__init__(told)
        self.statuses = dict(statuses)

    def __reduce__(self) -> tuple[type[Refused], tuple[str, dict[str, int]]]:
        return Refused, (str(self), self.statuses)  # whole on the way from another process


def ask_first(plan: LoadPlan, target: Target) -> None:
    """Ask once before a window; some engines do not tell which status came, or take a 3xx for good.

    No answer is left to the engine.

    :raises Refused: another status than a 2xx came.
    """
    if plan.requests or (plan.tls and target.tls_port is None):
        return
    port = target.tls_port if plan.tls and target.tls_port is not None else target.port
    path = target.path or plan.path
    code = requested_path.status(target.address, port, path, tls=plan.tls)
    if code and not requested_path.accepts(code):
        raise Refused(requested_path.refused({path: code}), {str(code): 1})


def reject(plan: LoadPlan, target: Target, measured: Measured) -> None:
    """Reject a window in which most answers were not the expected 2xx, or none came whole.

    :raises Refused: it is one.
    """
    path = target.path or plan.path
    is_silent = not measured.requests and not measured.statuses
    if is_silent and measured.errors.keys() - {"date"}:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(measured.errors.items()))
        raise Refused(
            f"not one request was answered well ({kinds}), so nothing was measured: "
            f"does GET {path} get a whole answer there?",
            {},
        )
    if measured.refused_ratio <= REFUSED_MAX:
        return
    told = came(measured.statuses)
    if plan.requests:
        raise Refused(
            f"requests of {plan.name} were answered with {told}, so nothing was measured: it needs "
            "a server that has what they ask for",
            measured.statuses,
        )
    if measured.refused_ratio == 1:
        raise Refused(requested_path.refused({path: told}), measured.statuses)
    raise Refused(
        f"GET {path} was answered with {told} in {measured.refused_ratio:.0%} of the answers, so "
        "nothing was measured: lift the limit that refuses them, or take another --profile",
        measured.statuses,
    )


def of_result(result: LoadResult) -> str | None:
    """Why a load of a server measured nothing, or not to its end; None where it did."""
    return result.reason or without_a_sound_sample(result)


def without_a_sound_sample(result: LoadResult) -> str | None:
    """That every sample had answers that were not the expected 2xx; None where one had none."""
    if "status" not in result.errors or any(sample.is_sound for sample in result.samples):
        return None
    statuses: dict[str, int] = {}
    for sample in result.samples:
        for status, count in sample.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    return (
        f"in every sample of {result.profile} some answers were not the expected 2xx but "
        f"{came(statuses)}, so nothing was measured"
    )


def came(statuses: Mapping[str, int]) -> str:
    """The statuses that came, the most frequent ones first, as ``503 and 404``."""
    ranked = sorted(statuses, key=lambda status: -statuses[status])[:_SHOWN_MAX]
    return " and ".join(ranked) or "other statuses"
