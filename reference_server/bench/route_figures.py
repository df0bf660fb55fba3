"""What routes cost, what is switched on, and what many routes add: parts of figures.py."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from measuring import Server, cost_ns, cost_row, interval, output_of, ratio_row, row, sample

# What is asked in turn beside null: name, request line, more of the request, status.
ROUTES = (
    ("/hello", "GET /hello", "", 200),
    ("/hello with a query", "GET /hello?a=b", "", 200),
    ("/hello with ten fields", "GET /hello", "".join(f"X-{i}: value\r\n" for i in range(10)), 200),
    ("HEAD /hello", "HEAD /hello", "", 200),
    ("a pattern, /{rest...}", "GET /any/of/them", "", 200),
    ("204", "GET /204", "", 204),
    ("a redirect", "GET /redirect", "", 302),
    ("404", "GET /404", "", 404),
    ("JSON, /echo?hello=world", "GET /echo?hello=world", "", 200),
    ("POST of 12 bytes", "POST /hello", "Content-Length: 12\r\n", 200),
    ("POST /body, given back", "POST /body", "Content-Length: 12\r\n", 200),
)


def request_of(line: str, fields: str) -> str:
    content = "Hello World!" if "Content-Length" in fields else ""
    return f"{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{content}"


def hello_of(size: int) -> str:
    """A GET of /hello with that many bytes, by its query; the shortest one where it has more."""
    text = request_of("GET /hello", "")
    padding = size - len(text) - 1
    return text if padding < 0 else request_of(f"GET /hello?{'x' * padding}", "")


def route_rows(build: Path, folder: Path, pairs: int, seconds: float) -> None:
    """Each route beside the null server, which answers all alike, and beside /hello."""
    load = build / "harness/native/httpmark-load"
    own = ["--address", "127.0.0.1", "--port", "PORT", "--workers", "1"]
    deep = ["--connections", "512", "--depth", "256"]
    with (
        Server("server", [build / "reference_server/httpmark-server", *own], 0) as server,
        Server("null", [build / "harness/native/httpmark-null", *own], 0) as null,
    ):

        def cost(text: str, status: int) -> float:
            request = folder / "request"
            request.write_text(text, newline="")
            asks = ["--request-file", str(request), "--expect-status", str(status)]
            return cost_ns(server, load, seconds, [*deep, *asks])

        costs: dict[str, tuple[list[float], ...]] = {name: ([], [], [], []) for name, *_ in ROUTES}
        for turn in range(pairs):
            for name, line, fields, status in ROUTES if turn % 2 == 0 else reversed(ROUTES):
                text = request_of(line, fields)
                costs[name][0].append(cost(text, status))
                costs[name][1].append(cost_ns(null, load, seconds, deep))
                costs[name][2].append(cost(hello_of(len(text)), 200))
                costs[name][3].append(cost(hello_of(0), 200))
        for number, (name, each) in enumerate(costs.items()):
            over_null_row(name, each, 2.2 if number else 1.8)
        for name, (a, _, c, _) in list(costs.items())[1:]:
            ratio_row(f"  over a /hello as long: {name}", "at most 1.25", a, c, 1.25)


def over_null_row(name: str, costs: Sequence[Sequence[float]], aim: float) -> None:
    """From the costs of the route, of null, of a /hello as long, and of /hello.

    A route's own bytes are those that its request has more than that of /hello. Their cost comes
    on top of the aim, and is measured: that of a /hello with as many bytes, less that of /hello.
    """
    rounds = list(zip(*costs, strict=True))
    own = max(0.0, statistics.median((long - hello) / null for _, null, long, hello in rounds))
    ratios = [route / null for route, null, *_ in rounds]
    low, high = interval(ratios)
    text = f"{statistics.median(ratios):.3f} ({low:.3f}-{high:.3f}), own bytes {own:.2f}"
    row(f"depth 256 over null: {name}", f"at most {aim} + own bytes", text, high <= aim + own)


def more_row(figure: str, aim: float, on: Sequence[float], off: Sequence[float]) -> None:
    """What the first of two interleaved series costs more; met by its median."""
    more = [a - b for a, b in zip(on, off, strict=True)]
    low, high = interval(more)
    median = statistics.median(more)
    text = f"{median:.1f} ns ({low:.1f}-{high:.1f}), median of {len(more)} pairs"
    row(figure, f"at most {aim:g} ns", text, median <= aim)


def option_rows(build: Path, folder: Path, pairs: int, seconds: float) -> None:
    """An access log, metrics and a Server field, each beside a server without."""
    load = build / "harness/native/httpmark-load"
    own: list[str | Path] = [build / "reference_server/httpmark-server"]
    own += ["--address", "127.0.0.1", "--port", "PORT", "--workers", "1"]
    log = folder / "access.log"
    deep = ["--connections", "512", "--depth", "256"]
    with (
        Server("off", own, 0) as off,
        Server("access log", [*own, "--access-log", log], 0) as logged,
        Server("metrics", [*own, "--metrics"], 0) as counted,
        Server("Server field", [*own, "--server-name", "httpmark"], 0) as named,
    ):
        servers = [off, logged, counted, named]
        costs: list[list[float]] = [[] for _ in servers]
        for _ in range(pairs):
            # A turn at a time: the log would fill the disk.
            for all_of, turn in zip(costs, sample(servers, load, 1, seconds, deep), strict=True):
                all_of += turn
            os.truncate(log, 0)
    cost_row("depth 256, no log, no metrics, no Server field", "", costs[0], None)
    for number, (what, aim) in enumerate(
        (("an access log", 25), ("metrics", 5), ("a Server field", 3)), 1
    ):
        more_row(f"  more with {what}", aim, costs[number], costs[0])


def many_rows(build: Path) -> None:
    """Routing among 1,000 routes more than the example has, by the answer bench."""
    text = output_of(build / "reference_server/httpmark-answer-bench")
    found = re.findall(r"^(\S+)\s+(\w+)\s+([\d.]+) ns", text, re.M)
    costs = {(name, kernel): float(ns) for name, kernel, ns in found}
    for few, many, what in (
        ("hello", "hello-many", "a literal"),
        ("template", "template-many", "two names in a path"),
    ):
        for kernel in dict.fromkeys(kernel for _, kernel in costs):
            more = costs[many, kernel] - costs[few, kernel]
            row(
                f"1,000 routes more, {what}, {kernel}",
                "at most 10 ns",
                f"{more:.1f} ns: {costs[few, kernel]:.1f} and {costs[many, kernel]:.1f}",
                more <= 10,
            )
