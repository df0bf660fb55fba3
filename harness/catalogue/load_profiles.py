"""Load profiles: `scenarios/load/<name>.toml` to plans."""

from __future__ import annotations

from pathlib import Path

from httpmark.harness.catalogue.toml_files import decoded_as, parsed_toml
from httpmark.harness.model.errors import HarnessError
from httpmark.harness.model.load import LoadMode, LoadPlan


def load_profile(path: Path, name: str) -> LoadPlan:
    """Read one profile.

    :param name: the file's name in complaints.
    :raises HarnessError: a key is wrong; the message names file and key.
    """
    plan = decoded_as(parsed_toml(path, name), name, LoadPlan, name=path.stem, source=name)
    for key in ("connections", "depth", "rounds", "quick_rounds", "threads", "workers"):
        if getattr(plan, key) < 1:
            raise HarnessError(f"{name}: key {key!r}: must be at least 1")
    for key in ("duration_s", "quick_duration_s"):
        if getattr(plan, key) <= 0:
            raise HarnessError(f"{name}: key {key!r}: must be positive")
    if plan.depth > 256:
        raise HarnessError(f"{name}: key 'depth': must be at most 256")
    mistake = _plan_mistake(plan)
    if mistake:
        raise HarnessError(f"{name}: key {mistake}")
    return plan


def _plan_mistake(plan: LoadPlan) -> str | None:
    """The first key of a load profile that does not go with the others, and why."""
    rates = (plan.rate is not None) + (plan.rate_of_capacity is not None)
    if plan.mode is LoadMode.OPEN and rates != 1:
        return "'rate': an open loop has either 'rate' or 'rate_of_capacity'"
    if plan.mode is not LoadMode.OPEN and rates:
        return "'rate': belongs to mode = \"open\""
    if any(rate is not None and rate <= 0 for rate in (plan.rate, plan.rate_of_capacity)):
        return "'rate': must be positive"
    if (plan.mode is LoadMode.IDLE) != bool(plan.ladder):
        return "'ladder': goes with mode = \"idle\", and that needs one"
    for key, ladder in (("ladder", plan.ladder), ("quick_ladder", plan.quick_ladder)):
        if any(a >= b for a, b in zip((0, *ladder), ladder, strict=False)):
            return f"{key!r}: must grow, and begin above 0"
        if len(ladder) == 1:
            return f"{key!r}: needs at least two heights"
    if plan.tls_ciphers is not None and plan.tls_version is None:
        return "'tls_ciphers': goes with 'tls_version'"
    if plan.tls and "tls" not in plan.needs:
        return "'needs': must hold \"tls\" where 'tls_version' is given"
    if any(request.weight < 1 for request in plan.requests):
        return "'requests': 'weight' must be at least 1"
    if plan.split_bytes < 0:
        return "'split_bytes': must not be negative"
    return None
