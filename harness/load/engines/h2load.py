"""nghttp2's h2load as an HTTP/1.1 client: a window of pipelined requests, status only."""

from __future__ import annotations

import re

import msgspec

from httpmark.harness.load.engines.foreign import UNIT_S, Foreign, counted_result
from httpmark.harness.load.engines.launch import (
    GRACE_S,
    NO_ACCOUNTS,
    Accounts,
    Measured,
    Target,
    first_words,
)
from httpmark.harness.load.statistics import littles_law_ratio
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan


class H2load(Foreign):
    """nghttp2's ``h2load`` as an HTTP/1.1 client: a window of pipelined requests, status only."""

    name = "h2load"
    package = "apt-get install nghttp2-client"

    def version(self) -> str:
        return first_words(self.executable, "--version", count=2)

    def cannot(self, plan: LoadPlan) -> str | None:
        if plan.mode is LoadMode.OPEN:
            return "its rate counts connections, not requests"
        return super().cannot(plan)

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        if plan.tls_version == "1.3":
            return None
        return "it takes the highest version of TLS that the server has, and cannot pin 1.2"

    def measure(
        self, plan: LoadPlan, target: Target, *, duration_s: float, cpus: frozenset[int] | None
    ) -> Measured:
        words = [
            *("--h1", "-c", str(plan.connections), "-m", str(plan.depth)),
            *("-t", str(plan.threads), "-D", f"{max(1, round(duration_s))}"),
            *(("--tls13-ciphers", plan.tls_ciphers) if plan.tls_ciphers else ()),
            target.url(plan),
        ]
        out, said, used, accounts = self._run(
            words, target, timeout_s=duration_s + GRACE_S, cpus=cpus
        )
        return parse_h2load(out, failure=said, plan=plan, client_cpu_ns=used, accounts=accounts)


_H2LOAD_END = re.compile(r"finished in ([0-9.]+)(us|ms|s|m|h), ")
_H2LOAD_REQUESTS = re.compile(
    r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, "
    r"(\d+) failed, (\d+) errored, (\d+) timeout"
)
_H2LOAD_STATUS = re.compile(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx")
_H2LOAD_TLS = re.compile(r"^TLS Protocol: TLSv(\S+)\nCipher: (\S+)", re.MULTILINE)
_H2LOAD_TIMES = re.compile(r"time for request:\s+" + r"\s+".join([r"([0-9.]+)(us|ms|s|m|h)"] * 4))


def parse_h2load(
    out: str, *, failure: str, plan: LoadPlan, client_cpu_ns: int, accounts: Accounts = NO_ACCOUNTS
) -> Measured:
    """h2load's text as a measurement.

    :raises Unusable: there was no answer at all (h2load ends with 0 even then), or TLS was not that
        of the plan.
    """
    end, counts, status, times = (
        pattern.search(out)
        for pattern in (_H2LOAD_END, _H2LOAD_REQUESTS, _H2LOAD_STATUS, _H2LOAD_TIMES)
    )
    if end is None or counts is None or status is None or times is None:
        raise Unusable(f"h2load: {failure.splitlines()[-1]}")
    seconds, requests = float(end[1]) * UNIT_S[end[2]], int(counts[3])
    if requests == 0 or seconds == 0:
        raise Unusable("h2load: no answer at all; it does not say why")
    spoken = _H2LOAD_TLS.search(out)
    tls = f"TLSv{spoken[1]} {spoken[2]}" if spoken else None
    if plan.tls and (spoken is None or spoken[1] != plan.tls_version):
        raise Unusable(
            f"h2load: used {tls or 'no TLS'}, and the profile pins TLS {plan.tls_version}"
        )
    statuses = {f"{number + 1}xx": int(status[number]) for number in (2, 3, 4)}
    errors = {
        "failed": int(counts[5]),
        "timeout": int(counts[7]),
        "status": sum(statuses.values()),
    }
    # It calls requests that were under way at the end errored; a failure has both counts.
    counted = counted_result(
        plan,
        accounts,
        requests=requests,
        seconds=seconds,
        errors=errors,
        statuses=statuses,
        established=None,  # it goes on with fewer and does not say so
        client_cpu_ns=client_cpu_ns,
        latency_reason="h2load prints no percentiles",
    )
    mean_s = float(times[5]) * UNIT_S[times[6]]
    return msgspec.structs.replace(
        counted,
        latency_us={"mean": mean_s * 1e6, "max": float(times[3]) * UNIT_S[times[4]] * 1e6},
        tls=tls,
        littles_law_ratio=littles_law_ratio(
            requests_per_second=requests / seconds,
            mean_latency_s=mean_s,
            in_flight=plan.connections * plan.depth,
        ),
    )
