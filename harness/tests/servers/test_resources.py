"""What /proc says, against what is known to have happened."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.servers import resources


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_cpu_time_is_what_was_burnt() -> None:
    before = resources.cpu_ns([os.getpid()])
    burn(0.2)
    after = resources.cpu_ns([os.getpid()])
    assert before is not None
    assert after is not None
    assert 0.19e9 <= after - before < 0.4e9


def test_the_dead_have_no_cpu_time_and_no_memory() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert resources.cpu_ns([child.pid]) is None
    assert resources.memory([child.pid]) is None
    assert resources.tree([child.pid]) == []


def test_the_tree_holds_children_and_grandchildren() -> None:
    script = (
        "import subprocess,sys,time;"
        "p=subprocess.Popen([sys.executable,'-c','import time;time.sleep(30)']);"
        "print(p.pid,flush=True);p.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        try:
            assert resources.tree([child.pid]) == sorted([child.pid, grandchild])
        finally:
            os.kill(grandchild, 9)


def test_memory_sees_what_is_allocated() -> None:
    script = "x=bytearray(64<<20);print(1,flush=True);input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = resources.memory([child.pid])
        assert found is not None
        assert found.vmhwm_kb is not None
        assert found.vmpeak_kb is not None
        assert found.pss_kb is not None
        assert 64 << 10 <= found.pss_kb <= found.vmhwm_kb <= found.vmpeak_kb
        assert found.processes == 1
        assert found.cgroup_reason
        child.kill()


def test_only_growth_is_growth() -> None:
    before = {"a": 1, "b": 5}
    assert resources.grown(before, {"a": 1, "b": 7, "c": 2}) == {"b": 2, "c": 2}
    assert resources.grown(resources.dropped_packets(), {}) == {}


def test_the_clock_of_all_cpus_moves_on() -> None:
    before = resources.cpu_clock()
    end = time.monotonic() + 10
    while (ratio := resources.steal_ratio(before, resources.cpu_clock())) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert 0 <= ratio <= 1
    assert resources.steal_ratio(before, before) is None
    assert resources.steal_ratio((0, 0), (1, 9)) is None, "too few ticks to tell"
    assert resources.steal_ratio((0, 0), (1, 10)) == 0.1


def test_context_switches_grow_with_sleeping() -> None:
    before = resources.context_switches([os.getpid()])
    for _ in range(20):
        time.sleep(0.001)
    after = resources.context_switches([os.getpid()])
    assert before is not None
    assert after is not None
    assert after - before >= 20


def test_the_room_for_connections_is_told_by_what_limits_it() -> None:
    room = resources.connection_room()
    assert room["ports"] > 1000
    assert room["memory"] > 0
    assert all(most >= 0 for most in room.values())


def test_listeners_are_found_by_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert resources.listeners(listener.getsockname()[1], "127.0.0.1") == [os.getpid()]
    assert resources.listeners(1, "127.0.0.1") == []


SLEEPER = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def sleeper(address: str, port: int, *, python: str = sys.executable) -> Iterator[int]:
    """A process that listens there; gives its id."""
    with subprocess.Popen(
        [python, "-S", "-c", SLEEPER, address, str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
        process.stdin.close()


def test_of_several_that_listen_on_a_port_an_address_means_the_one_it_reaches() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with sleeper("127.0.0.2", port) as other:
            assert resources.listeners(port, "127.0.0.1") == [os.getpid()]
            assert resources.listeners(port, "127.0.0.2") == [other]
            assert resources.listeners(port, "127.0.0.3") == []
            assert resources.listeners(port, "::1") == []


def test_who_listens_on_all_addresses_is_reached_where_nobody_listens_on_that_one() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            assert resources.listeners(port, address) == [os.getpid()]


def test_a_forwarder_is_not_the_server_behind_it(tmp_path: Path) -> None:
    proxy = tmp_path / "docker-proxy"
    shutil.copy(os.path.realpath(sys.executable), proxy)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with sleeper("127.0.0.1", port, python=str(proxy)):
        assert resources.listeners(port, "127.0.0.1") == []


def test_listeners_are_found_by_the_path_of_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "a socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert resources.unix_listeners(path) == [], "bound, and not listening yet"
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            assert resources.unix_listeners(path) == [os.getpid()]
    assert resources.unix_listeners(path) == []


def test_sockets_cost_the_kernel_something() -> None:
    slabs = resources.socket_slabs()
    assert (slabs is None) is not os.access("/proc/slabinfo", os.R_OK)
    if slabs is not None:
        assert slabs.tcp_sockets >= 0
        assert 200 < slabs.file_bytes < 2000


def test_the_kernels_part_is_that_of_one_end_and_of_no_neighbour() -> None:
    before = resources.SocketSlabs(tcp_sockets=100, socket_bytes=300_000, file_bytes=400)
    after = resources.SocketSlabs(
        tcp_sockets=2_110, socket_bytes=300_000 + 2_000 * 3_400, file_bytes=400
    )
    assert resources.kernel_bytes_per_end(before, after, held=1_000) == 3_800
    crowded = msgspec.structs.replace(after, tcp_sockets=9_000)
    assert resources.kernel_bytes_per_end(before, crowded, held=1_000) is None
    assert resources.kernel_bytes_per_end(None, after, held=1_000) is None


def test_the_peak_of_a_cgroup_is_read_in_both_versions(tmp_path: Path) -> None:
    assert resources.cgroup_peak_kb(str(tmp_path)) is None
    (tmp_path / "memory.max_usage_in_bytes").write_text("2097152\n")
    assert resources.cgroup_peak_kb(str(tmp_path)) == 2048
    (tmp_path / "memory.peak").write_text("1048576\n")
    assert resources.cgroup_peak_kb(str(tmp_path)) == 1024


def test_what_a_cgroup_consists_of_is_read_in_both_versions(tmp_path: Path) -> None:
    assert resources.cgroup_parts_kb(str(tmp_path)) is None
    (tmp_path / "memory.stat").write_text(
        "anon 1048576\nfile 4096\nkernel 8192\nsock 2048\npgfault 77\nslab 1024\n"
    )
    assert resources.cgroup_parts_kb(str(tmp_path)) == {
        "anon": 1024, "file": 4, "kernel": 8, "sock": 2, "slab": 1,
    }  # fmt: skip
    (tmp_path / "memory.stat").write_text("cache 4096\nrss 1048576\nmapped_file 0\n")
    (tmp_path / "memory.kmem.usage_in_bytes").write_text("65536\n")
    (tmp_path / "memory.kmem.tcp.usage_in_bytes").write_text("16384\n")
    assert resources.cgroup_parts_kb(str(tmp_path)) == {
        "cache": 4, "rss": 1024, "kmem": 64, "kmem_tcp": 16,
    }  # fmt: skip
    memory = resources.memory([os.getpid()], cgroup=str(tmp_path))
    assert memory is not None
    assert memory.cgroup_parts_kb == {"cache": 4, "rss": 1024, "kmem": 64, "kmem_tcp": 16}


def test_segments_that_were_sent_again_are_a_share_of_all() -> None:
    told = resources.segments_sent()
    assert told is not None
    assert told[1] > told[0] >= 0
    assert resources.retransmit_ratio((5, 1_000), (25, 21_000)) == 0.001
    assert resources.retransmit_ratio((5, 1_000), (6, 10_999)) is None, "too few to tell"
    assert resources.retransmit_ratio(None, told) is None


def test_what_was_sent_again_though_it_had_arrived_was_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "_PROC", tmp_path)
    assert resources.segments_sent() is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net/snmp").write_text("Tcp: OutSegs RetransSegs\nTcp: 2000 90\n")
    assert resources.segments_sent() is None
    netstat = tmp_path / "net/netstat"
    netstat.write_text("TcpExt: TCPDSACKRecv TCPDSACKRecvSegs\nTcpExt: 70 80\n")
    assert resources.segments_sent() == (10, 2000)
    netstat.write_text("TcpExt: TCPDSACKRecv\nTcpExt: 70\n")
    assert resources.segments_sent() == (20, 2000), "an older kernel counts packets"
    netstat.write_text("TcpExt: TCPDSACKRecv TCPSynRetrans\nTcpExt: 70 16\n")
    assert resources.segments_sent() == (4, 2000), "a full listen queue is no loss on the way"


def test_the_kernels_buffers_are_those_of_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = resources.socket_buffers_kb()
    assert told is not None
    assert told >= 0
    monkeypatch.setattr(resources, "_PROC", tmp_path)
    assert resources.socket_buffers_kb() is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net/sockstat").write_text(
        "sockets: used 191\nTCP: inuse 26 orphan 0 tw 4536 alloc 40 mem 7\nUDP: inuse 0 mem 9\n"
    )
    assert resources.socket_buffers_kb() == 7 * os.sysconf("SC_PAGE_SIZE") // 1024


def test_idle_time_grows_no_faster_than_the_clock() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:1]
    began, before = time.monotonic_ns(), resources.idle_ns(cpus)
    assert before is not None
    after: int | None = before
    while time.monotonic_ns() - began < 50_000_000:  # five ticks of /proc/stat
        after = resources.idle_ns(cpus)
    assert after is not None
    assert 0 <= after - before <= time.monotonic_ns() - began + 20_000_000
    assert resources.idle_ns([4096]) is None


def test_a_program_is_what_its_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.getcwd())
    words = ["cat", os.path.join(os.getcwd(), "x"), "-"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("it runs\n")
        process.stdin.flush()
        process.stdout.readline()
        found = resources.program([process.pid])
        process.communicate()
    assert found is not None
    assert found[0] == ("cat", "~/x", "-")
    path = shutil.which("cat")
    assert path is not None
    assert found[1] == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert resources.program([process.pid]) is None
