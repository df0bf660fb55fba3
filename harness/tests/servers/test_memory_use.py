"""Memory, against what is known to have been allocated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from httpmark.harness.servers import (
    memory_use,
    proc_files,
)


@pytest.mark.process
def test_memory_sees_what_is_allocated() -> None:
    script = "x=bytearray(64<<20);print(1,flush=True);input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = memory_use.memory([child.pid])
        assert found is not None
        assert found.vmhwm_kb is not None
        assert found.vmpeak_kb is not None
        assert found.pss_kb is not None
        assert 64 << 10 <= found.pss_kb <= found.vmhwm_kb <= found.vmpeak_kb
        assert found.processes == 1
        assert found.cgroup_reason
        child.kill()


def test_sockets_cost_the_kernel_something() -> None:
    slabs = memory_use.socket_slabs()
    assert (slabs is None) is not os.access("/proc/slabinfo", os.R_OK)
    if slabs is not None:
        assert slabs.tcp_sockets >= 0
        assert 200 < slabs.file_bytes < 2000


def test_the_kernels_part_is_that_of_one_end_and_of_no_neighbour() -> None:
    before = memory_use.SocketSlabs(tcp_sockets=100, socket_bytes=300_000, file_bytes=400)
    after = memory_use.SocketSlabs(
        tcp_sockets=2_110, socket_bytes=300_000 + 2_000 * 3_400, file_bytes=400
    )
    assert memory_use.kernel_bytes_per_end(before, after, held=1_000) == 3_800
    crowded = msgspec.structs.replace(after, tcp_sockets=9_000)
    assert memory_use.kernel_bytes_per_end(before, crowded, held=1_000) is None
    assert memory_use.kernel_bytes_per_end(None, after, held=1_000) is None


def test_the_peak_of_a_cgroup_is_read_in_both_versions(tmp_path: Path) -> None:
    assert memory_use.cgroup_peak_kb(str(tmp_path)) is None
    (tmp_path / "memory.max_usage_in_bytes").write_text("2097152\n")
    assert memory_use.cgroup_peak_kb(str(tmp_path)) == 2048
    (tmp_path / "memory.peak").write_text("1048576\n")
    assert memory_use.cgroup_peak_kb(str(tmp_path)) == 1024


def test_what_a_cgroup_consists_of_is_read_in_both_versions(tmp_path: Path) -> None:
    assert memory_use.cgroup_parts_kb(str(tmp_path)) is None
    (tmp_path / "memory.stat").write_text(
        "anon 1048576\nfile 4096\nkernel 8192\nsock 2048\npgfault 77\nslab 1024\n"
    )
    assert memory_use.cgroup_parts_kb(str(tmp_path)) == {
        "anon": 1024, "file": 4, "kernel": 8, "sock": 2, "slab": 1,
    }  # fmt: skip
    (tmp_path / "memory.stat").write_text("cache 4096\nrss 1048576\nmapped_file 0\n")
    (tmp_path / "memory.kmem.usage_in_bytes").write_text("65536\n")
    (tmp_path / "memory.kmem.tcp.usage_in_bytes").write_text("16384\n")
    assert memory_use.cgroup_parts_kb(str(tmp_path)) == {
        "cache": 4, "rss": 1024, "kmem": 64, "kmem_tcp": 16,
    }  # fmt: skip
    memory = memory_use.memory([os.getpid()], cgroup=str(tmp_path))
    assert memory is not None
    assert memory.cgroup_parts_kb == {"cache": 4, "rss": 1024, "kmem": 64, "kmem_tcp": 16}


def test_the_kernels_buffers_are_those_of_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = memory_use.socket_buffers_kb()
    assert told is not None
    assert told >= 0
    monkeypatch.setattr(proc_files, "ROOT", str(tmp_path))
    assert memory_use.socket_buffers_kb() is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net/sockstat").write_text(
        "sockets: used 191\nTCP: inuse 26 orphan 0 tw 4536 alloc 40 mem 7\nUDP: inuse 0 mem 9\n"
    )
    assert memory_use.socket_buffers_kb() == 7 * os.sysconf("SC_PAGE_SIZE") // 1024
