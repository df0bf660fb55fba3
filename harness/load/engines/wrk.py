"""Debian's wrk: it counts responses and checks only their status."""

from __future__ import annotations

import re

from httpmark.harness.load.engines.foreign import (
    UNIT_S,
    Foreign,
    counted_result,
    openssl_pinned,
    pipeline_script,
)
from httpmark.harness.load.engines.launch import (
    GRACE_S,
    NO_ACCOUNTS,
    Accounts,
    Measured,
    Target,
    first_words,
)
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan


class Wrk(Foreign):
    """Debian's ``wrk``: counts responses and checks only their status."""

    name = "wrk"
    package = "apt-get install wrk"

    def version(self) -> str:
        return first_words(self.executable, "-v", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is LoadMode.OPEN:
            return "it cannot offer a rate"
        if plan.refill == "window":
            return "it pipelines in batches only"
        return super().cannot(plan)

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        return None  # it has no option for it, but it follows OpenSSL's configuration

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        with pipeline_script(plan.depth) as script, openssl_pinned(plan) as env:
            words = [
                *("-c", str(plan.connections), "-t", str(plan.threads)),
                *("-d", f"{max(1, round(duration_s))}s", "-s", script),
                target.url(plan),
            ]
            out, said, used, accounts = self._run(
                words, target, timeout_s=duration_s + GRACE_S, cpus=cpus, env=env
            )
        return parse_wrk(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


_WRK_TOTAL = re.compile(r"(\d+) requests in ([0-9.]+)(us|ms|s|m|h),")
_WRK_SOCKET = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_WRK_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d+)")


def parse_wrk(
    out: str,
    *,
    failure: str,
    plan: LoadPlan,
    client_cpu_ns: int,
    accounts: Accounts = NO_ACCOUNTS,
    engine: str = "wrk",
) -> Measured:
    """wrk's text as a measurement.

    :raises Unusable: the text has no total, and ``failure`` says what wrk said instead; or it
        counted neither an answer nor an error.
    """
    total = _WRK_TOTAL.search(out)
    if total is None:
        raise Unusable(f"{engine}: {failure.splitlines()[-1]}")
    socket = _WRK_SOCKET.search(out)
    errors = (
        dict(zip(("connect", "read", "write", "timeout"), map(int, socket.groups()), strict=True))
        if socket
        else {}
    )
    status = _WRK_STATUS.search(out)
    if status:
        errors["status"] = int(status[1])
    if float(total[2]) == 0 or (int(total[1]) == 0 and not any(errors.values())):
        raise Unusable(
            f"{engine}: no answer in {total[2]} {total[3]}: it opens its connections within the "
            "window; use a longer one"
        )
    return counted_result(
        plan,
        accounts,
        requests=int(total[1]),
        seconds=float(total[2]) * UNIT_S[total[3]],
        errors=errors,
        statuses={"4xx or 5xx": errors.get("status", 0)},  # it counts those above 399, as one
        # It divides connections evenly over its threads and drops the rest (wrk.c, main).
        established=plan.connections // plan.threads * plan.threads - errors.get("connect", 0),
        client_cpu_ns=client_cpu_ns,
        latency_reason="wrk's latency is wrong at depth above 1 and starts late at depth 1",
    )
