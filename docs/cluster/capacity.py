"""How many generators and which network a load needs, from costs measured on this machine.

python docs/cluster/capacity.py [--connections N] [--depth N] [--seconds S] [--cores N] [RATE...]

It loads the null server over a loopback of its own, with the packets of an Ethernet, so that no
other traffic counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUSY_MAX = 0.80  # of a core, up to which a generator is surely not the limit (docs/method.md)
ADDED_OCTETS = 38 + 20 + 32  # of each segment: Ethernet with preamble and gap, IPv4, TCP
PORT = 18_080
MARK = "HTTPMARK_CAPACITY"


def segments() -> int:
    """TCP segments sent here since boot, of both ends."""
    rows = [row.split() for row in Path("/proc/net/snmp").read_text().splitlines()]
    names, values = [row for row in rows if row[0] == "Tcp:"]
    return int(values[names.index("OutSegs")])


def measure(words: argparse.Namespace) -> tuple[dict[str, float], float]:
    """What the generator told, and how many segments went over the wire."""
    command = Path(sys.executable).with_name("httpmark")
    told = subprocess.run([command, "doctor", "--json"], capture_output=True, text=True)
    programs = json.loads(told.stdout)["binaries"]
    server = subprocess.Popen(
        [programs["null"], "--address", "127.0.0.1", "--port", str(PORT), "--workers", "1"],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        before = segments()
        load = subprocess.run(
            [
                programs["load"], "--connections", str(words.connections), "--depth",
                str(words.depth), "--duration-s", str(words.seconds), "--warmup-s", "0", "--json",
                f"http://127.0.0.1:{PORT}/hello",
            ],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(load.stdout), segments() - before
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    asked = argparse.ArgumentParser(usage=(__doc__ or "").splitlines()[2])
    asked.add_argument("rates", nargs="*", type=float, default=[1e5, 1e6, 1e7])
    asked.add_argument("--connections", type=int, default=64)
    asked.add_argument("--depth", type=int, default=1)
    asked.add_argument("--seconds", type=float, default=3.0)
    asked.add_argument("--cores", type=int, default=4, help="of a generator's host")
    words = asked.parse_args()
    if MARK not in os.environ:  # again, in a network of its own
        own = 'ip link set lo mtu 1500 up && exec "$@"'
        again = [sys.executable, __file__, *sys.argv[1:]]
        os.environ[MARK] = "1"
        unshare = shutil.which("unshare") or sys.exit("unshare is missing: install util-linux")
        os.execv(unshare, ["unshare", "--net", "--map-root-user", "sh", "-c", own, "sh", *again])
    load, sent = measure(words)
    requests = load["requests"]
    cost_ns = load["cpu_ns_per_request"]["client"]
    out, back = load["bytes_sent"] / requests, load["bytes_received"] / requests
    # Each end sends half of the segments: it acknowledges with what it sends.
    added = sent / requests / 2 * ADDED_OCTETS
    print(f"requests measured               {requests:,}")
    print(f"generator CPU a request         {cost_ns:,.0f} ns")
    print(f"HTTP octets a request           {out:.0f} out, {back:.0f} back")
    print(f"TCP segments a request          {sent / requests:.2f}, both ways together")
    print(f"octets a request on Ethernet    {out + added:.0f} out, {back + added:.0f} back")
    print()
    print(
        f"| requests/s | cores to generate | hosts of {words.cores} cores | to the server | back |"
    )
    print("|---|---|---|---|---|")
    for rate in words.rates:
        cores = rate * cost_ns / 1e9 / BUSY_MAX
        hosts = -(-cores // words.cores)
        each = [f"{rate * (one + added) * 8 / 1e9:,.2f} Gbit/s" for one in (out, back)]
        print(f"| {rate:,.0f} | {cores:,.1f} | {hosts:,.0f} | {each[0]} | {each[1]} |")


if __name__ == "__main__":
    main()
