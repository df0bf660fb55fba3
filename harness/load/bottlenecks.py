"""Who limited a sample, read from what was measured: pure."""

from __future__ import annotations

import msgspec

from httpmark.harness.model.load import Bottleneck

# The thresholds of the verdict on a sample; docs/method.md says why each has its value.
SERVER_BUSY_MIN = 0.90  # of its CPUs: below it the server was not the limit
CLIENT_IDLE_MAX = 0.80  # of one CPU: above it the generator's busiest thread may be the limit
CLIENT_BUSY_MIN = 0.95  # of one CPU: from here on the generator is the limit
NULL_SHARE_MAX = 0.70  # of the null server's rate: above it generator and server are too close
NULL_SHARE_CLIENT = 0.85  # of the null server's rate: above it the generator is the limit
CONCURRENCY_MIN = 0.90  # of the requests that should be in flight, by Little's law
LAW_TOLERANCE = 0.10  # how far figures that must agree may be apart
UNANSWERED_MAX = 0.01  # of all requests, those without an answer when the drain was over
RUN_DELAY_MAX = 0.05  # of the window that an end waited for a CPU
STEAL_MAX = 0.02  # of all CPU time, what the hypervisor took
RETRANSMIT_MAX = 0.001  # of the machine's TCP segments, those that were sent again


# Of a latency's median, what the round trip of the path took longer under load than before it.
PATH_QUEUE_MIN = 0.5
PATH_QUEUE_US_MIN = 1000.0  # below it a busy processor may have kept the answer


class PathSigns(msgspec.Struct, frozen=True):
    """The path between two machines, in microseconds."""

    idle_us: float  # its round trip before the load
    loaded_us: float  # under it
    latency_us: float  # of the answers, median

    @property
    def is_limit(self) -> bool:
        """Whether requests and answers waited on the path more than anywhere else."""
        queue_us = self.loaded_us - self.idle_us
        return queue_us >= max(PATH_QUEUE_MIN * self.latency_us, PATH_QUEUE_US_MIN)

    @property
    def told(self) -> str:
        return (
            f"the round trip of the path grew from {self.idle_us / 1000:.1f} to "
            f"{self.loaded_us / 1000:.1f} ms under load, of {self.latency_us / 1000:.1f} ms that "
            "an answer took"
        )


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What a sample's bottleneck is read from; None where a figure was not measured."""

    errors: int
    connections_wanted: int
    connections_established: int | None
    requests_per_second: float
    null_requests_per_second: float | None
    server_on_cpu_ratio: float | None  # of the CPUs the server was given
    client_on_cpu_ratio: float | None  # of the busiest generator thread
    run_delay_ratio: float | None  # the worse of both ends
    steal_ratio: float | None
    littles_law_ratio: float | None
    server_cpu_demand: float | None = None  # cost x requests/s over the CPUs it was given
    is_null: bool = False
    saturated: bool | None = None  # open loops only: the rate was not served (LoadSample)
    unanswered_ratio: float | None = None  # of all requests, those without an answer
    retransmit_ratio: float | None = None  # of the segments that the machine sent
    broken: str | None = None  # why no figure of it counts
    path: PathSigns | None = None  # between machines
    lost_connects: dict[str, int] = {}  # where connections are opened: what was dropped


def bottleneck(signs: Signs) -> tuple[Bottleneck, str]:
    """Who limited a sample, and the figure that says so (docs/method.md).

    Only ``server`` lets throughput be ranked. Where evidence is missing the answer is ``unknown``.
    """
    for verdict in (_broken(signs), _disturbed(signs)):
        if verdict is not None:
            return verdict
    if signs.saturated is not None:
        return _of_open_loop(signs)
    if signs.server_on_cpu_ratio is None or signs.client_on_cpu_ratio is None:
        return Bottleneck.UNKNOWN, "the CPU time of one end is not known"
    return _of_closed_loop(signs, signs.server_on_cpu_ratio, signs.client_on_cpu_ratio)


def _broken(signs: Signs) -> tuple[Bottleneck, str] | None:
    """Wrong answers, connections that are missing, or a generator that failed."""
    if signs.broken is not None:
        return Bottleneck.BROKEN, signs.broken
    if signs.errors:
        return Bottleneck.BROKEN, f"{signs.errors} errors"
    established, wanted = signs.connections_established, signs.connections_wanted
    if established is not None and established < wanted:
        return Bottleneck.BROKEN, f"{established} of {wanted} connections"
    if signs.lost_connects:
        told = ", ".join(f"{name} {count}" for name, count in sorted(signs.lost_connects.items()))
        return Bottleneck.BROKEN, f"the kernel dropped connection attempts: {told}"
    return None


def _disturbed(signs: Signs) -> tuple[Bottleneck, str] | None:
    """The machine took CPU time or packets that the window needed."""
    if signs.steal_ratio is not None and signs.steal_ratio > STEAL_MAX:
        return Bottleneck.STARVED, f"the hypervisor took {signs.steal_ratio:.0%} of the CPU time"
    if signs.run_delay_ratio is not None and signs.run_delay_ratio > RUN_DELAY_MAX:
        return Bottleneck.STARVED, f"waited for a CPU {signs.run_delay_ratio:.0%} of the time"
    if signs.retransmit_ratio is not None and signs.retransmit_ratio > RETRANSMIT_MAX:
        return Bottleneck.NETWORK, f"{signs.retransmit_ratio:.1%} of all segments were sent again"
    return None


def _of_closed_loop(signs: Signs, server: float, client: float) -> tuple[Bottleneck, str]:
    """:param server: the share of its CPUs' time that the server was on CPU.
    :param client: the same of the generator's busiest thread and one CPU."""
    share = _null_share(signs)
    if client >= CLIENT_BUSY_MIN:
        return Bottleneck.CLIENT, f"generator on CPU {client:.0%}"
    if share is not None and share > NULL_SHARE_CLIENT:
        return Bottleneck.CLIENT, f"{share:.0%} of the null server's rate with this generator"
    if server > 1 + LAW_TOLERANCE:
        return (
            Bottleneck.UNKNOWN,
            f"server on CPU {server:.0%}: it uses more CPUs than it was given, and their number is "
            "not known",
        )
    is_busy, law = server >= SERVER_BUSY_MIN, signs.littles_law_ratio
    if not is_busy and signs.path is not None and signs.path.is_limit:
        return Bottleneck.NETWORK, signs.path.told
    if not is_busy and law is not None and law < CONCURRENCY_MIN:
        return Bottleneck.CLIENT, f"only {law:.0%} of the requests were in flight"
    if is_busy and client <= CLIENT_IDLE_MAX:
        if against := _against_server(signs, share, server):
            return Bottleneck.UNKNOWN, against
        return Bottleneck.SERVER, f"server on CPU {server:.0%}"
    if not is_busy and client < SERVER_BUSY_MIN:
        return Bottleneck.NONE, "both ends were idle at times: too few requests in flight"
    return Bottleneck.UNKNOWN, f"server {server:.0%}, generator {client:.0%} on CPU"


def _null_share(signs: Signs) -> float | None:
    """The rate as a share of the null server's in the same block."""
    if not signs.null_requests_per_second or signs.is_null:
        return None
    return signs.requests_per_second / signs.null_requests_per_second


def _against_server(signs: Signs, share: float | None, server: float) -> str | None:
    """Why a busy server with an idle generator may still not be the bottleneck."""
    if share is None and not signs.is_null:
        return "the null server was not measured beside it"
    if share is not None and share > NULL_SHARE_MAX:
        return f"{share:.0%} of the null server's rate: too close to tell which end is the limit"
    left = signs.unanswered_ratio
    if left is not None and left > UNANSWERED_MAX:
        return f"{left:.0%} of the requests were unanswered at the end"
    if against := _contradiction(signs, server):
        return f"two figures contradict each other: {against}"
    return None


def _contradiction(signs: Signs, server_on_cpu_ratio: float) -> str | None:
    """What contradicts a rate: Little's law, or the cost of its requests."""
    law, demand = signs.littles_law_ratio, signs.server_cpu_demand
    if law is not None and abs(law - 1) > LAW_TOLERANCE:
        return f"Little's law gives {law:.0%} instead of 100%"
    # The cost is of all requests, with those of the drain; the rate is of the window. They differ
    # where one turn of all connections takes longer than the window.
    if demand is not None and abs(demand / server_on_cpu_ratio - 1) > LAW_TOLERANCE:
        return (
            f"cost times requests/s is {demand:.0%} of the server's CPUs, and it was on CPU "
            f"{server_on_cpu_ratio:.0%}"
        )
    return None


def _of_open_loop(signs: Signs) -> tuple[Bottleneck, str]:
    """With an offered rate something was the limit only where the rate was not served."""
    busy = signs.client_on_cpu_ratio
    if busy is not None and busy >= CLIENT_BUSY_MIN:
        return Bottleneck.CLIENT, f"generator on CPU {busy:.0%}"
    if not signs.saturated:
        return Bottleneck.NONE, "the offered rate was served, so nothing was the limit"
    if signs.server_on_cpu_ratio is not None and signs.server_on_cpu_ratio >= SERVER_BUSY_MIN:
        return (
            Bottleneck.SERVER,
            f"the offered rate was not served; server on CPU {signs.server_on_cpu_ratio:.0%}",
        )
    if signs.path is not None and signs.path.is_limit:
        return Bottleneck.NETWORK, f"the offered rate was not served; {signs.path.told}"
    return Bottleneck.UNKNOWN, "the offered rate was not served"
