"""A stand-in for wrk2, which no package registry has: the same flags, and the same output.

It does not load. It asks the server a few times, for statuses and latencies, and counts what wrk2
would have counted: each thread opens connection i at i x 5 ms, the connection's schedule begins
then, and the histograms begin 10 s after the last one is open.

``WRK2_SERVED`` in the environment is the share of the rate that is answered from then on, and
``WRK2_SERVED_BEFORE`` the share until then.
"""

from __future__ import annotations

import argparse
import os
import socket
import stat
import sys
import time
import urllib.parse
from pathlib import Path

CONNECT_S = 0.005
CALIBRATION_S = 10.0
_ASKED = 20


def program(folder: Path) -> str:
    """The stand-in as a program in a folder."""
    path = folder / "wrk2"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name, kind in (("c", int), ("t", int), ("R", int), ("d", str), ("s", Path)):
        parser.add_argument(f"-{name}", type=kind, required=True)
    for name in ("--latency", "--u_latency"):
        parser.add_argument(name, action="store_true", required=True)
    parser.add_argument("url")
    return parser.parse_args()


def due(seconds: float, *, threads: int, connections: int, rate: int) -> int:
    """How many requests are due by then: each connection's from when it is opened."""
    each = connections // threads
    a_second = rate / (each * threads)
    opened = (seconds - number * CONNECT_S for number in range(each))
    return threads * sum(int(since * a_second) for since in opened if since > 0)


def _asked(url: urllib.parse.SplitResult) -> tuple[list[float], int]:
    """Latencies in ms, and how many answers have a status above 399."""
    times, bad = [], 0
    request = f"GET {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
    with socket.create_connection((url.hostname, url.port)) as connection:
        for _ in range(_ASKED):
            begun = time.monotonic()
            connection.sendall(request)
            bad += int(connection.recv(65536).split(b" ")[1]) > 399
            times.append((time.monotonic() - begun) * 1000)
    return sorted(times), bad


def _spectrum(name: str, times: list[float], total: int) -> None:
    print(f"  Latency Distribution (HdrHistogram - {name})")
    print(f" 50.000%  {times[len(times) // 2]:.2f}ms\n\n  Detailed Percentile spectrum:")
    print("       Value   Percentile   TotalCount 1/(1-Percentile)\n")
    for share in (0.0, 0.5, 0.9, 0.99, 0.999):
        value = times[min(len(times) - 1, int(share * len(times)))]
        count = max(1, int(share * total)) if total else 0
        print(f"{value:12.3f} {share:12.6f} {count:12d} {1 / (1 - share):12.2f}")
    print(f"{times[-1]:12.3f} {1.0:12.6f} {total:12d}          inf")
    print(f"#[Mean    = {sum(times) / len(times):12.3f}, StdDeviation   = {0:12.3f}]")
    print(f"#[Max     = {times[-1]:12.3f}, Total count    = {total:12d}]")
    print("#[Buckets =           27, SubBuckets     =         2048]")
    print("-" * 58)


def main() -> int:
    """Print what wrk2 would print; its exit code."""
    if sys.argv[1:] == ["-v"]:
        print("wrk 4.0.0 [epoll] Copyright (C) 2012 Will Glozer")
        return 1
    words = _words()
    assert words.s.read_text().startswith("local batch")
    assert words.d.endswith("s")
    seconds = int(words.d.removesuffix("s"))
    shape = {"threads": words.t, "connections": words.c, "rate": words.R}
    calibrated_s = CALIBRATION_S + words.c // words.t * CONNECT_S
    before = due(min(seconds, calibrated_s), **shape)
    served = float(os.environ.get("WRK2_SERVED", "1"))
    window = round((due(seconds, **shape) - before) * served)
    complete = round(before * float(os.environ.get("WRK2_SERVED_BEFORE", "1"))) + window
    times, bad = _asked(urllib.parse.urlsplit(words.url))
    print(f"Running {seconds}s test @ {words.url}")
    print(f"  {words.t} threads and {words.c} connections")
    for _ in range(words.t):
        print("  Thread calibration: mean lat.: 1.021ms, rate sampling interval: 10ms")
    _spectrum("Recorded Latency", times, window)
    print()
    told = "Uncorrected Latency (measured without taking delayed starts into account)"
    _spectrum(told, times, window)
    print(f"  {complete} requests in {seconds:.2f}s, 1.00KB read")
    if bad:
        print(f"  Non-2xx or 3xx responses: {complete * bad // _ASKED}")
    print(f"Requests/sec: {complete / seconds:9.2f}")
    print("Transfer/sec:     11.13KB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
