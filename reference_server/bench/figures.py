#!/usr/bin/env python3
"""The figures of the reference server, each beside its aim: `make perf` runs this.

Costs are CPU time (user + system) of the server process per request, from the scheduler's own
account in nanoseconds; servers are interleaved, so that what else the machine does falls on all of
them; a ratio is the median of the ratios of neighbouring samples, with the distribution-free
interval of that median (order statistics) that holds at least 95 %. Sizes are what /proc says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HELLO = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
TLS_SUITE = "ECDHE-ECDSA-AES128-GCM-SHA256"
PIPELINED_OCTETS = 120_000_000
TIMER_CALLS = re.compile(r"timer|itimer|nanosleep|alarm|clock_gettime|gettimeofday")


class Server:
    """A process that listens on a free port; leaves with the context."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        cpu: int | None = None,
        file: tuple[Path, str] | None = None,
    ) -> None:
        """In the words, and in the text of a file to be written before, PORT is its port."""
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = [str(word).replace("PORT", str(self.port)) for word in command]
        if file is not None:
            file[0].write_text(file[1].replace("PORT", str(self.port)))
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if cpu is not None:
            os.sched_setaffinity(self.process.pid, {cpu})
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.process.kill()
        sys.exit(f"figures: {words[0]} does not start: run {' '.join(words)} to see why")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    def cpu_ns(self) -> int:
        """CPU time of all its threads so far, ns."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def kib(self, key: str) -> int:
        """A size of /proc/PID/status, KiB."""
        found = re.search(rf"{key}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1])


def cost_ns(
    server: Server,
    load: Path,
    seconds: float,
    options: Sequence[str],
    scheme: str = "http",
    path: str = "/hello",
) -> float:
    """CPU ns of the server per request, over one run of the generator."""
    command = [str(load), "--duration-s", str(seconds), "--threads", "1", "--json", *options]
    before = server.cpu_ns()
    done = subprocess.run(
        [*command, f"{scheme}://127.0.0.1:{server.port}{path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    after = server.cpu_ns()
    if done.returncode != 0:
        sys.exit(f"figures: {server.name}: {done.stderr.strip() or done.stdout.strip()}")
    return (after - before) / float(json.loads(done.stdout)["requests"])


def sample(
    servers: Sequence[Server],
    load: Path,
    pairs: int,
    seconds: float,
    options: Sequence[str],
    scheme: str = "http",
) -> list[list[float]]:
    """`pairs` costs of each server, taken in turn and in turned order."""
    costs: list[list[float]] = [[] for _ in servers]
    for turn in range(pairs):
        order = range(len(servers)) if turn % 2 == 0 else reversed(range(len(servers)))
        for index in order:
            costs[index].append(cost_ns(servers[index], load, seconds, options, scheme))
    return costs


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Bounds of the median that hold at least 95 %: the k-th smallest and largest (sign test)."""
    n, k, outside = len(values), 0, 0.0
    while True:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 0.05:
            break
        k += 1
    ordered = sorted(values)
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def say(line: str) -> None:
    sys.stdout.write(line.rstrip() + "\n")
    sys.stdout.flush()


def row(figure: str, aim: str, measured: str, met: bool | None) -> None:
    """One line of the table; `met` None where there is no aim or it could not be measured."""
    verdict = {True: "met", False: "MISSED", None: ""}[met]
    say(f"{figure:<52} {aim:<26} {measured:<58} {verdict}")


def ratio_row(
    figure: str, aim: str, a: Sequence[float], b: Sequence[float], bound: float | None
) -> None:
    """The ratio of two interleaved series; met when the whole interval is at or under the bound."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    low, high = interval(ratios)
    # The quotient of the two rows above is another figure.
    text = f"{statistics.median(ratios):.3f} ({low:.3f}-{high:.3f}), median of {len(ratios)} pairs"
    row(figure, aim, text, None if bound is None else high <= bound)


def cost_row(figure: str, aim: str, costs: Sequence[float], bound: float | None) -> None:
    median = statistics.median(costs)
    text = f"{median:.1f} ns ({min(costs):.1f}-{max(costs):.1f}), {len(costs)} samples"
    row(figure, aim, text, None if bound is None else median <= bound)


def parser_rows(build: Path) -> None:
    """GB/s of the parser alone, per kernel, and what comes on top of it up to the answer."""
    aims = {"avx512": 6.0, "avx2": 4.0}
    text = subprocess.run(
        [build / "reference_server/httpmark-parser-bench"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name, kernel, ns, rate in re.findall(
        r"^(.+?)\s+(\w+)\s+([\d.]+) ns .*?([\d.]+) GB/s", text, re.M
    ):
        aim = aims.get(kernel) if name == "720 B browser" else None
        row(
            f"parser alone, {name}, {kernel}",
            "" if aim is None else f"at least {aim} GB/s",
            f"{rate} GB/s, {ns} ns",
            None if aim is None else float(rate) >= aim,
        )
    text = subprocess.run(
        [build / "reference_server/httpmark-answer-bench"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = re.findall(r"^(.+?)\s+(\w+)\s+([\d.]+) ns .*?, (\d+) allocations in (\d+)", text, re.M)
    for name, kernel, ns, allocated, requests in lines:
        row(
            f"octets to answer, {name}, {kernel}",
            "0 allocations",
            f"{ns} ns, {allocated} allocations in {requests}",
            int(allocated) == 0,
        )


def plain_rows(build: Path, pairs: int, seconds: float) -> None:
    server = build / "reference_server/httpmark-server"
    load = build / "harness/native/httpmark-load"
    own = ["--address", "127.0.0.1", "--port", "PORT", "--workers", "1"]
    with (
        Server("epoll", [server, *own], 0) as epoll,
        Server("uring", [server, *own, "--engine", "uring"], 0) as uring,
        Server("direct", [server, *own, "--engine", "uring-direct"], 0) as direct,
        Server("null", [build / "harness/native/httpmark-null", *own], 0) as null,
    ):
        deep = ["--connections", "512", "--depth", "256"]
        a, b, c = sample([epoll, uring, null], load, max(pairs // 2 + 1, 7), seconds, deep)
        cost_row("depth 256, strict, timers on, epoll", "at most 80 ns", a, 80)
        cost_row("  io_uring", "", b, None)
        cost_row("  null server", "", c, None)
        ratio_row("  epoll over null", "at most 2.0", a, c, 2.0)
        ratio_row("  io_uring over epoll", "", b, a, None)
        flat = ["--connections", "256", "--depth", "1"]
        a, b, c, d = sample([epoll, uring, null, direct], load, pairs, seconds, flat)
        cost_row("depth 1, epoll", "", a, None)
        cost_row("  io_uring", "", b, None)
        cost_row("  null server", "", c, None)
        ratio_row("  epoll over null", "at most 1.10", a, c, 1.10)
        ratio_row("  io_uring over epoll", "below 1", b, a, 1.0)
        ratio_row("  direct descriptors over epoll", "below 1", d, a, 1.0)


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

        costs: dict[str, tuple[list[float], ...]] = {name: ([], [], []) for name, *_ in ROUTES}
        for turn in range(pairs):
            for name, line, fields, status in ROUTES if turn % 2 == 0 else reversed(ROUTES):
                text = request_of(line, fields)
                costs[name][0].append(cost(text, status))
                costs[name][1].append(cost_ns(null, load, seconds, deep))
                costs[name][2].append(cost(hello_of(len(text)), 200))
        for number, (name, (a, b, _)) in enumerate(costs.items()):
            bound = 2.2 if number else 1.8
            ratio_row(f"depth 256 over null: {name}", f"at most {bound}", a, b, bound)
        for name, (a, _, c) in list(costs.items())[1:]:
            ratio_row(f"  over a /hello as long: {name}", "at most 1.25", a, c, 1.25)


# One process, so that its CPU time is all there is. What is not said is nginx's default.
NGINX = """
daemon off;
master_process off;
pid FOLDER/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  types {{ application/octet-stream bin; }}
  sendfile on;
  {more}
  server {{
    listen 127.0.0.1:PORT;
    location /static/ {{ alias FOLDER/files/; }}
  }}
}}
"""
NGINX_TUNED = "tcp_nopush on; open_file_cache max=100 inactive=60s; open_file_cache_valid 60s;"
FILES = (("1 KiB", 1024, "64"), ("64 KiB", 65536, "64"), ("1 MiB", 1048576, "16"))


def static_rows(build: Path, folder: Path, pairs: int, seconds: float) -> None:
    """Files of three sizes, each beside nginx, which sends them by sendfile(2)."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        row("a static file over nginx", "below 1", "not measured: no nginx", None)
        return
    load = build / "harness/native/httpmark-load"
    files = folder / "files"
    files.mkdir()
    for _, size, _ in FILES:
        (files / f"{size}.bin").write_bytes(os.urandom(size))
    own = [build / "reference_server/httpmark-server", "--address", "127.0.0.1", "--port", "PORT"]
    own += ["--workers", "1", "--static", files]
    plain, tuned = folder / "plain.conf", folder / "tuned.conf"
    texts = {
        path: NGINX.format(more=more).replace("FOLDER", str(folder))
        for path, more in ((plain, ""), (tuned, NGINX_TUNED))
    }
    theirs = [nginx, "-p", folder, "-e", "stderr", "-c"]
    with (
        Server("epoll", own, 0) as epoll,
        Server("uring", [*own, "--engine", "uring"], 0) as uring,
        Server("nginx", [*theirs, plain], 0, (plain, texts[plain])) as usual,
        Server("tuned nginx", [*theirs, tuned], 0, (tuned, texts[tuned])) as best,
    ):
        servers = [epoll, uring, usual, best]
        for name, size, connections in FILES:
            costs: list[list[float]] = [[] for _ in servers]
            for turn in range(pairs):
                for index in (
                    range(len(servers)) if turn % 2 == 0 else reversed(range(len(servers)))
                ):
                    costs[index].append(
                        cost_ns(
                            servers[index],
                            load,
                            seconds,
                            ["--connections", connections],
                            path=f"/static/{size}.bin",
                        )
                    )
            a, b, c, d = costs
            cost_row(f"a file of {name}, epoll", "", a, None)
            cost_row("  io_uring", "", b, None)
            cost_row("  nginx, sendfile on", "", c, None)
            ratio_row("  epoll over nginx", "below 1", a, c, 1.0)
            ratio_row("  epoll over nginx with open_file_cache, tcp_nopush", "", a, d, None)
            ratio_row("  io_uring over nginx", "", b, c, None)


def tls_rows(build: Path, folder: Path, seconds: float) -> None:
    figure = f"TLS 1.2 {TLS_SUITE}, depth 256"
    openssl = shutil.which("openssl")
    if openssl is None:
        row(
            figure, "at most 130 ns", "not measured: no openssl command to make a certificate", None
        )
        return
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            key,
            "-out",
            certificate,
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )
    command: list[str | Path] = [
        build / "reference_server/httpmark-server",
        "--address",
        "127.0.0.1",
        "--tls-port",
        "PORT",
        "--tls-cert",
        certificate,
        "--tls-key",
        key,
        "--workers",
        "1",
    ]
    options = [
        "--connections",
        "32",
        "--depth",
        "256",
        "--tls-version",
        "1.2",
        "--tls-ciphers",
        TLS_SUITE,
    ]
    with Server("TLS", command, 0) as server:
        costs = sample(
            [server], build / "harness/native/httpmark-load", 7, seconds, options, "https"
        )
    cost_row(figure, "at most 130 ns", costs[0], 130)


def call_rows(build: Path, folder: Path) -> None:
    """System calls per request, and which of them are about time."""
    strace = shutil.which("strace")
    if strace is None:
        row("timer system calls a request", "0", "not measured: no strace", None)
        return
    load = build / "harness/native/httpmark-load"
    server = build / "reference_server/httpmark-server"
    for depth in (256, 1):
        with Server(
            "traced", [server, "--address", "127.0.0.1", "--port", "PORT", "--workers", "1"]
        ) as traced:
            target = f"http://127.0.0.1:{traced.port}/hello"
            output = folder / f"calls-{depth}"
            tracer = subprocess.Popen(
                [strace, "-f", "-c", "-o", output, "-p", str(traced.process.pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            with contextlib.suppress(FileNotFoundError):
                while (
                    f"TracerPid:\t{tracer.pid}"
                    not in Path(f"/proc/{traced.process.pid}/status").read_text()
                ):
                    if tracer.poll() is not None:
                        row(
                            "timer system calls a request",
                            "0",
                            "not measured: strace may not trace",
                            None,
                        )
                        return
                    time.sleep(0.02)
            done = subprocess.run(
                [
                    load,
                    "--connections",
                    "32",
                    "--depth",
                    str(depth),
                    "--duration-s",
                    "2",
                    "--threads",
                    "1",
                    "--json",
                    target,
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            tracer.terminate()
            tracer.wait(30)
        requests = json.loads(done.stdout)["requests"]
        calls = {
            words[-1]: int(words[3])
            for line in output.read_text().splitlines()
            if len(words := line.split()) >= 5 and words[3].isdigit() and words[-1] != "total"
        }
        timers = {name: count for name, count in calls.items() if TIMER_CALLS.search(name)}
        most = ", ".join(
            f"{name} {count / requests:.4f}"
            for name, count in sorted(calls.items(), key=lambda item: -item[1])[:3]
        )
        row(
            f"timer system calls a request, depth {depth}",
            "0",
            f"{sum(timers.values()) / requests:.4f} in {requests}; {most}",
            not timers,
        )


@contextlib.contextmanager
def idle(port: int, count: int) -> Iterator[list[socket.socket]]:
    """`count` connections, each of which has been answered once."""
    held: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(HELLO)
            held.append(connection)
        for connection in held:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        yield held
    finally:
        for connection in held:
            connection.close()


def memory_rows(build: Path) -> None:
    server = build / "reference_server/httpmark-server"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(18000, hard - 200)
    for engine in ("epoll", "uring", "uring-direct"):
        own: list[str | Path] = [
            server,
            "--address",
            "127.0.0.1",
            "--port",
            "PORT",
            "--workers",
            "1",
            "--engine",
            engine,
        ]
        with Server(engine, own) as process:
            start, resident = process.kib("VmPeak"), process.kib("VmRSS")
            with idle(process.port, count):
                peak, grown = process.kib("VmPeak"), process.kib("VmRSS") - resident
            limit = 16384 + 80 * count // 1024
            row(
                f"VmPeak at {count:,} idle connections, {engine}",
                f"at most {limit:,} KiB",
                f"{peak:,} KiB: {start:,} + {(peak - start) * 1024 / count:.1f} B each, "
                f"resident {grown * 1024 / count:.1f} B",
                peak <= limit,
            )
        with Server(engine, own) as process:
            before = process.kib("VmRSS")
            connection = socket.create_connection(("127.0.0.1", process.port))
            connection.settimeout(2)
            batch, sent = HELLO * 4096, 0
            with contextlib.suppress(TimeoutError):
                while sent < PIPELINED_OCTETS:
                    sent += connection.send(batch)
            grown = process.kib("VmRSS") - before
            connection.close()
        row(
            f"120 MB pipelined, never read, {engine}",
            "grows less than 1,024 KiB",
            f"{grown} KiB; {sent // 1000:,} kB were taken",
            grown < 1024,
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def main() -> None:
    parser = argparse.ArgumentParser(
        description="The figures of the reference server, each beside its aim."
    )
    parser.add_argument("build", type=Path, help="the CMake build folder of the whole project")
    parser.add_argument(
        "--pairs", type=int, default=13, help="samples of each server at depth 1 (13)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each sample (1)")
    parser.add_argument(
        "--only", default="", help="parser, plain, routes, static, tls, calls or memory"
    )
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    say(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; the less else runs, the better")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "parser": lambda: parser_rows(options.build),
            "plain": lambda: plain_rows(options.build, options.pairs, options.seconds),
            "routes": lambda: route_rows(
                options.build, folder, max(options.pairs // 2 + 1, 7), options.seconds
            ),
            "static": lambda: static_rows(
                options.build, folder, max(options.pairs // 2 + 1, 7), options.seconds
            ),
            "tls": lambda: tls_rows(options.build, folder, options.seconds),
            "calls": lambda: call_rows(options.build, folder),
            "memory": lambda: memory_rows(options.build),
        }
        for part, run in parts.items():
            if options.only in ("", part):
                run()


if __name__ == "__main__":
    main()
