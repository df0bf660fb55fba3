#!/usr/bin/env python3
"""The figures of the reference server, each beside its aim: `make perf` runs this.

measuring.py says what a cost and a ratio are. Sizes are what /proc says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measuring import Server, cost_ns, cost_row, output_of, ratio_row, row, sample, say
from route_figures import many_rows, option_rows, route_rows

HELLO = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
TLS_SUITE = "ECDHE-ECDSA-AES128-GCM-SHA256"
PIPELINED_OCTETS = 120_000_000
TIMER_CALLS = re.compile(r"timer|itimer|nanosleep|alarm|clock_gettime|gettimeofday")


def parser_rows(build: Path) -> None:
    """GB/s of the parser alone, per kernel, and what comes on top of it up to the answer."""
    aims = {"avx512": 6.0, "avx2": 4.0}
    text = output_of(build / "reference_server/httpmark-parser-bench")
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
    text = output_of(build / "reference_server/httpmark-answer-bench")
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


def size_rows() -> None:
    """What a user of the library reads: the example server, and the public header."""
    here = Path(__file__).resolve().parent.parent
    lines = len((here / "example/application.cpp").read_text().splitlines())
    header = (here / "include/httpmark/httpmark.hpp").stat().st_size
    row("lines of the example server", "", f"{lines}", None)
    row("bytes of the public header", "", f"{header:,}", None)


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
        "--only",
        default="",
        help="parser, plain, routes, options, many, static, tls, calls, memory or size",
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
            "options": lambda: option_rows(
                options.build, folder, max(options.pairs // 2 + 1, 7), options.seconds
            ),
            "many": lambda: many_rows(options.build),
            "static": lambda: static_rows(
                options.build, folder, max(options.pairs // 2 + 1, 7), options.seconds
            ),
            "tls": lambda: tls_rows(options.build, folder, options.seconds),
            "calls": lambda: call_rows(options.build, folder),
            "memory": lambda: memory_rows(options.build),
            "size": size_rows,
        }
        for part, run in parts.items():
            if options.only in ("", part):
                run()


if __name__ == "__main__":
    main()
