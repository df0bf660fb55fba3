"""A run made by hand, ten servers large, for the tests of what is drawn and gated from it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

import msgspec
from hdrh.histogram import HdrHistogram

from httpmark.harness.catalogue import case_builder, loading
from httpmark.harness.catalogue.family_rules import Rule
from httpmark.harness.http import grammar
from httpmark.harness.judging import family_tally, published_score, requirement_verdicts
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.cases import Facts, Family, Level
from httpmark.harness.model.exchanges import End, Exchange, Outcome
from httpmark.harness.model.load import (
    Bottleneck,
    Cost,
    LoadMode,
    LoadResult,
    LoadSample,
    PairedRatio,
)
from httpmark.harness.model.memory import BytesPerConnection, Memory, Rung
from httpmark.harness.model.run import Run, ServerResult
from httpmark.harness.model.verdicts import (
    Compliance,
    Controls,
    Deliveries,
    Disagreement,
    SeedFamily,
    SuiteResult,
    Verdict,
    Word,
)

_ANY = frozenset(range(256))
_TARGET = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?"
)
_NAME = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~:")
_ALPHANUMERIC = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_CTL = (frozenset(range(32)) | {127}) - {9, 10, 13}

RULES = {
    "path_byte": Rule(
        sends=(r"GET {p}{octet} HTTP/1.1\r\nHost: {h}\r\n\r\n",), octets=_ANY - _TARGET
    ),
    "query_byte": Rule(
        sends=(r"GET {p}?{octet} HTTP/1.1\r\nHost: {h}\r\n\r\n",), octets=_ANY - _TARGET
    ),
    "field_name_byte": Rule(
        sends=(r"GET {p} HTTP/1.1\r\nHost: {h}\r\n{octet}: value\r\n\r\n",), octets=_ANY - _NAME
    ),
    "field_value_byte": Rule(
        sends=(r"GET {p} HTTP/1.1\r\nHost: {h}\r\nname: {octet}\r\n\r\n",), octets=_CTL
    ),
    "path_pct_pair": Rule(
        sends=(r"GET {p}%{pair} HTTP/1.1\r\nHost: {h}\r\n\r\n",), pairs_outside=_ALPHANUMERIC
    ),
    "query_pct_pair": Rule(
        sends=(r"GET {p}?%{pair} HTTP/1.1\r\nHost: {h}\r\n\r\n",), pairs_outside=_ALPHANUMERIC
    ),
}
assert grammar.ANY == _ANY
OCTET_FAMILIES = tuple(name for name in RULES if name.endswith("byte"))

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!"
BAD = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

# What a server answers to the bytes that vary: an answer, b"" for a close, None for silence.
Manner = Callable[[str, bytes], bytes | None]


def strict(_family: str, _octets: bytes) -> bytes | None:
    return BAD


def lenient(_family: str, _octets: bytes) -> bytes | None:
    return OK


def go_like(family: str, octets: bytes) -> bytes | None:
    if family == "path_pct_pair" or any(octet < 0x21 or octet == 0x7F for octet in octets):
        return BAD
    if family in ("field_name_byte", "field_value_byte"):
        return BAD
    if family == "path_byte" and octets == b"%":
        return BAD
    return OK


def hyper_like(family: str, octets: bytes) -> bytes | None:
    if family in ("path_byte", "query_byte"):
        return OK if octets[0] in b'"<>^`{|}[]' else b"" if octets[0] % 53 else BAD
    if family.endswith("pair"):
        return OK if all(octet in b'"{}|^`' or octet >= 0xA0 for octet in octets) else b""
    return b""


def splitter(_family: str, octets: bytes) -> bytes | None:
    return None if b"\n" in octets else OK


MANNERS: dict[str, Manner] = {
    "reference": strict,
    "null": lenient,
    "go_net_http": go_like,
    "rust_hyper": hyper_like,
    "qhttpserver": splitter,
    "nginx": strict,
    "lithium": lenient,
    "kourier": strict,
    "ring": splitter,
    "other_hyper": hyper_like,
}


@functools.cache
def _requests(family: str) -> tuple[tuple[str, bytes, bytes], ...]:
    """Each case's id, the bytes that vary, and the bytes sent."""
    made = case_builder.cases(family, RULES[family], Facts(host="127.0.0.1:18080"))
    cut = len(family) + 1
    return tuple(
        (case.id, bytes.fromhex(case.id[cut:].replace("-", "")), case.sent) for case in made
    )


@dataclasses.dataclass
class MadeEvidence:
    """Exchanges as the servers of :data:`MANNERS` would give them."""

    manners: dict[str, Manner] = dataclasses.field(default_factory=lambda: dict(MANNERS))
    only: tuple[str, ...] = tuple(RULES)

    def facts(self, server: str) -> Facts | None:
        return Facts(host="127.0.0.1:18080", address="127.0.0.1", port=18080)

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        assert wanted.get("case") is None, "the made run has no designed cases"
        family = wanted.get("family")
        manner = self.manners.get(server)
        if manner is None:
            return
        for name in self.only:
            if family not in (None, name):
                continue
            for slug, octets, sent in _requests(name):
                answer = manner(name, octets)
                hung = answer is None
                yield Exchange(
                    slug,
                    name,
                    sent,
                    answer or b"",
                    Outcome.HUNG if hung else Outcome.ANSWERED if answer else Outcome.CLOSED,
                    End.OPEN if hung or answer == OK else End.CLOSED,
                    None if not answer else 180,
                    2_000_000 if hung else 240,
                    len(sent),
                )


@functools.cache
def seed_suite(only: tuple[str, ...], server: str) -> SuiteResult:
    """The suite's result as the score module counts it, for a server of :data:`MANNERS`."""
    evidence = MadeEvidence(only=only)
    families: dict[str, SeedFamily] = {
        name: published_score.seed_family(evidence.exchanges(server, family=name), None)
        for name in evidence.only
    }
    detected = sum(family.detected for family in families.values())
    requests = sum(family.requests for family in families.values())
    return SuiteResult(
        score_percent=100 * detected / requests,
        families=families,
        controls=Controls(passed=345, failed=0),
        requests=requests,
        wall_seconds=4.2,
        probe_cpu_seconds=2.1,
        server_cpu_seconds=2.8,
        published="exact" if server in ("go_net_http", "rust_hyper") else None,
    )


def load_result(
    cost: float,
    *,
    profile: str = "pipelined",
    bottleneck: Bottleneck = Bottleneck.SERVER,
    rank: int | None = None,
    reason: str | None = None,
    over_null: float | None = None,
    rounds: int = 5,
    errors: dict[str, int] | None = None,
) -> LoadResult:
    """A load result whose windows scatter a little around one cost."""
    depth = 256 if profile == "pipelined" else 1
    connections = 512 if profile == "pipelined" else 64
    rate = 1e9 / max(cost, 250) * (1 if depth > 1 else 0.04)
    why = {
        Bottleneck.SERVER: "server CPU 99 % of its set, generator 41 %",
        Bottleneck.CLIENT: "the generator was on CPU 99 % of the time",
    }.get(bottleneck, f"seen as {bottleneck.value}")
    samples = tuple(
        LoadSample(
            round=at + 1,
            order=(at * 3) % 5,
            requests=int(rate * 3),
            seconds=3.0,
            requests_per_second=rate * (0.97 + 0.015 * at),
            cpu_ns_per_request=Cost(cost * (1.03 - 0.014 * at), 44.0 + at),
            littles_law_ratio=0.998 + 0.001 * at,
            bottleneck=bottleneck,
            bottleneck_why=why,
            errors=errors or {},
            server_on_cpu_ratio=0.99,
            client_on_cpu_ratio=0.41 if bottleneck is Bottleneck.SERVER else 0.99,
            histogram="HISTF" + "A" * 4000,
        )
        for at in range(rounds)
    )
    return LoadResult(
        profile=profile,
        connections=connections,
        depth=depth,
        engine="native",
        requests_per_second=rate,
        cpu_ns_per_request=Cost(cost, 45.0),
        bottleneck=bottleneck,
        bottleneck_why=why,
        ranked=bottleneck is Bottleneck.SERVER,
        ranked_reason="the server was the bottleneck in every sample",
        littles_law_ratio=1.0,
        interval_95=(cost * 0.96, cost * 1.05) if rounds >= 3 else None,
        interval_reason=None if rounds >= 3 else f"{rounds} sound samples; an interval needs 3",
        rounds=rounds,
        errors=errors or {},
        histogram="HISTF" + "A" * 4000,
        cost_rank=rank,
        cost_rank_reason=reason,
        cost_over_null=over_null,
        samples=samples,
    )


_COSTS = {
    "reference": 212.0,
    "null": 34.6,
    "go_net_http": 4310.0,
    "rust_hyper": 873.0,
    "qhttpserver": 14400.0,
    "nginx": 1260.0,
    "lithium": 171.0,
    "kourier": 241.0,
    "ring": 302.0,
    "other_hyper": 905.0,
}
_TITLES = {
    "reference": ("httpmark reference", "C++"),
    "null": ("null", "C++"),
    "go_net_http": ("Go net/http", "Go"),
    "rust_hyper": ("Rust hyper", "Rust"),
    "qhttpserver": ("Qt QHttpServer", "C++"),
    "nginx": ("nginx", "C"),
    "lithium": ("Lithium", "C++"),
    "kourier": ("Kourier", "C++"),
    "ring": ("Ring", "C++"),
    "other_hyper": ("Rust hyper, second", "Rust"),
}
_RANKS = {"lithium": 1, "reference": 2, "kourier": 2, "rust_hyper": 5, "other_hyper": 5}


def made_run(
    names: tuple[str, ...] = tuple(MANNERS), *, only: tuple[str, ...] = tuple(RULES)
) -> Run:
    """A run with the given servers, and one that could not be had."""
    servers = []
    for name in names:
        title, language = _TITLES[name]
        cost, control = _COSTS[name], name == "null"
        limit = Bottleneck.CLIENT if cost < 220 else Bottleneck.SERVER
        suite = seed_suite(only, name)
        servers.append(
            ServerResult(
                name=name,
                title=title,
                language=language,
                version="1.26.8",
                runtime="process",
                control=control,
                compliance=Compliance({"seed": suite}),
                load=tuple(
                    load_result(
                        cost * factor,
                        profile=profile,
                        bottleneck=limit if profile == "pipelined" else Bottleneck.SERVER,
                        rank=None if control else _RANKS.get(name, 4),
                        reason="a calibration server is never ranked" if control else None,
                        over_null=cost / 34.6 if not control else None,
                    )
                    for profile, factor in (("pipelined", 1.0), ("keepalive", 11.0))
                ),
                memory=Memory(
                    vmpeak_kb=1_598_464 if name == "go_net_http" else 74_108,
                    vmhwm_kb=31_204,
                    pss_kb=28_711,
                    busy_vmhwm_kb=31_204,
                    cgroup_reason="runs as a process",
                    connections_held=512,
                ),
            )
        )
    servers.append(
        ServerResult(
            name="absent_server",
            title="Absent Server",
            language="Zig",
            version=None,
            runtime=None,
            unavailable="zig not found; apt-get install zig",
        )
    )
    return Run(
        schema_version="1.0",
        catalogue_version="4be1c0ffee",
        harness_version="0.1.0",
        id="3f2a9c",
        started="2026-11-21T04:00:00Z",
        finished="2026-11-21T04:03:10Z",
        interrupted=False,
        quick=True,
        seed=1,
        suites=("seed",),
        profiles=("pipelined", "keepalive"),
        environment={
            "fingerprint": "0123456789abcdef",
            "kernel": "6.1.0",
            "cpu": {"model_name": "Some CPU", "flags": ["avx2", "hypervisor"]},
        },
        servers=tuple(servers),
        notes=("quick: 2 rounds of one second",),
    )


def with_server(run: Run, name: str, /, **changes: object) -> Run:
    """The run with one server's fields replaced."""
    return msgspec.structs.replace(
        run,
        servers=tuple(
            msgspec.structs.replace(server, **changes) if server.name == name else server
            for server in run.servers
        ),
    )


FEW = ("reference", "null", "go_net_http", "rust_hyper")


@functools.cache
def small_run() -> Run:
    """Four servers, and of the suite the bytes alone."""
    return made_run(FEW, only=OCTET_FAMILIES)


# --- a run with something in every section ------------------------------------------------------

_RFC_OCTETS = ("path_octet_last", "path_octet_good")
HOSTILE = (
    b"HTTP/1.1 200 OK\r\nX: </pre></script><script>window.hacked=1</script>"
    b"<img src=x onerror=window.hacked=1>\r\nContent-Length: 0\r\n\r\n"
)
_FIRM = ("reference", "nginx", "kourier")  # who refuses what is malformed


def designed() -> tuple[Family, ...]:
    """Some designed cases of the catalogue, by their numbers."""
    known = loading.load()
    wanted = ("CL-12", "CL-13", "UPG-06", "TE-03", "TE-54", "CL-06", "EXP-01", "TRL-05")
    return tuple(
        next(f for f in known.families.values() if ref in f.refs and f.suite == "rfc")
        for ref in wanted
    )


class CompleteEvidence(MadeEvidence):
    """The same, with designed cases, the bytes of a path, and one message in two cuts."""

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        family, case = wanted.get("family"), wanted.get("case")
        delivery = wanted.get("delivery", "whole")
        if delivery is not None and delivery.startswith("minimised:"):
            return  # nothing smaller was found
        if delivery != "whole":
            answer = HOSTILE if delivery != "one" else BAD
            assert case is not None
            yield _exchange(case, case, b"POST / HTTP/1.1\r\n\r\n", answer)
            return
        ids = {one.id for one in designed()}
        if case is None and family is None:
            yield from super().exchanges(server)
            rules = loading.load().rules
            for name in _RFC_OCTETS:
                for made in case_builder.cases(name, rules[name], Facts(host="127.0.0.1:18080")):
                    good = name.endswith("good") or server not in _FIRM
                    yield _exchange(made.id, name, made.sent, OK if good else BAD)
        for id in sorted(ids):
            if case in (None, id) and family in (None, id):
                sent = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"
                yield _exchange(id, id, sent, BAD if server in _FIRM else HOSTILE)


def _exchange(slug: str, family: str, sent: bytes, received: bytes) -> Exchange:
    return Exchange(
        slug, family, sent, received, Outcome.ANSWERED, End.CLOSED, 180, 240, len(sent)
    )  # fmt: skip


def rfc_suite(server: str) -> SuiteResult:
    """Designed cases, folded as the score module does: all of them pass where a server is firm,
    and every other one where it is Go's.
    """
    known = loading.load()
    cases = designed()
    passing = {
        one.id
        for at, one in enumerate(cases)
        if server in _FIRM or (server == "go_net_http" and at % 2)
    }
    verdicts = {
        one.id: Verdict(
            one.id, Word.PASS if one.id in passing else Word.FAIL, "R400C",
            "400; closed" if one.id in passing else "200; closed", None, one.level,
        )
        for one in cases
    }  # fmt: skip
    tallies = {id: family_tally.tally([verdict]) for id, verdict in verdicts.items()}
    rows = requirement_verdicts.requirements(known.requirements, cases, tallies, {})
    divided = Disagreement(
        case=cases[0].id, level=Level.MUST, count=3, deliveries=("two@17", "two@18", "byte"),
        what="another answer",
    )  # fmt: skip
    return SuiteResult(
        score_percent=requirement_verdicts.percent(requirement_verdicts.must(rows)),
        must=requirement_verdicts.must(rows),
        cases=verdicts,
        requirements={id: found for id, (_, found, _) in rows.items()},
        deliveries=Deliveries(
            messages=31,
            fired={"byte": 31, "two": 2204},
            disagreements=() if server in _FIRM else (divided,),
        ),
        controls=Controls(passed=80, failed=0),
    )


def stored_histogram(values_us: Iterable[float]) -> str:
    """As the load generator stores one: nanoseconds, three digits."""
    made = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in values_us:
        made.record_value(round(value * 1000))
    return str(made.encode(), "ascii")


def open_result(scale: float) -> LoadResult:
    """An open loop whose latencies have a long tail."""
    values = [scale * (40 + at % 97 + (at % 100 == 0) * 900) for at in range(3000)]
    text = stored_histogram(values)
    base = load_result(900 * scale, profile="open_10k")
    latency = {"mean": 98 * scale, "p50": 90 * scale, "p90": 130 * scale, "p99": 940 * scale,
               "p99_9": 1030 * scale, "max": 1036 * scale}  # fmt: skip
    return msgspec.structs.replace(
        base,
        mode=LoadMode.OPEN,
        rate_offered=10_000.0,
        latency_us=latency,
        lag_us={"p99": 31.0},
        histogram=text,
        samples=tuple(
            msgspec.structs.replace(one, histogram=text, latency_us=latency) for one in base.samples
        ),
    )


def held(octets: int) -> Memory:
    """A ladder on which each connection costs so many bytes."""
    return Memory(
        vmpeak_kb=74_108,
        vmhwm_kb=31_204,
        pss_kb=28_711,
        connections_held=2000,
        bytes_per_connection=BytesPerConnection(virtual=0.0, resident=float(octets), kernel=3800.0),
        ladder=tuple(
            Rung(
                connections=height, held=height, vmpeak_kb=74_108,
                pss_kb=1500 + octets * height // 1024, kernel_kb=4 * height,
            )
            for height in (500, 1000, 2000)
        ),
        after_close_pss_kb=1600,
    )  # fmt: skip


@functools.cache
def complete_run(names: tuple[str, ...] = tuple(MANNERS), **changes: object) -> Run:
    """A run with all suites, an open loop, ratios, ladders and deliveries."""
    run = made_run(names, **changes)  # type: ignore[arg-type]
    for at, name in enumerate(names):
        server = next(one for one in run.servers if one.name == name)
        run = with_server(
            run,
            name,
            compliance=Compliance({**server.compliance.suites, "rfc": rfc_suite(name)}),
            load=(*server.load, open_result(1 + at / 3)),
            memory=held(600 + 900 * at),
        )
    pairs = tuple(
        PairedRatio(
            profile=profile, engine="native", metric=metric, base=names[0], head=name,
            ratio=None if at == 3 else 0.7 + at / 2,
            interval_95=None if at == 3 else (0.6 + at / 2, 0.9 + at / 2),
            pairs=5, detectable=1.06, reason="too few pairs" if at == 3 else None,
        )
        for profile in ("pipelined", "keepalive")
        for metric in ("cpu_ns_per_request", "requests_per_second")
        for at, name in enumerate(names[1:])
    )  # fmt: skip
    profiles = (*run.profiles, "open_10k")
    return msgspec.structs.replace(run, paired=pairs, suites=("seed", "rfc"), profiles=profiles)
