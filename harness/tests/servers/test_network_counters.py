"""The kernel's counters of lost segments and connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpmark.harness.servers import (
    network_counters,
    proc_files,
)


def test_only_growth_is_growth() -> None:
    before = {"a": 1, "b": 5}
    assert network_counters.grown(before, {"a": 1, "b": 7, "c": 2}) == {"b": 2, "c": 2}
    assert network_counters.grown(network_counters.dropped_packets(), {}) == {}


def test_segments_that_were_sent_again_are_a_share_of_all() -> None:
    told = network_counters.segments_sent()
    assert told is not None
    assert told[1] > told[0] >= 0
    assert network_counters.retransmit_ratio((5, 1_000), (25, 21_000)) == 0.001
    assert network_counters.retransmit_ratio((5, 1_000), (6, 10_999)) is None, "too few to tell"
    assert network_counters.retransmit_ratio(None, told) is None


def test_what_was_sent_again_though_it_had_arrived_was_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proc_files, "ROOT", str(tmp_path))
    assert network_counters.segments_sent() is None
    (tmp_path / "net").mkdir()
    (tmp_path / "net/snmp").write_text("Tcp: OutSegs RetransSegs\nTcp: 2000 90\n")
    assert network_counters.segments_sent() is None
    netstat = tmp_path / "net/netstat"
    netstat.write_text("TcpExt: TCPDSACKRecv TCPDSACKRecvSegs\nTcpExt: 70 80\n")
    assert network_counters.segments_sent() == (10, 2000)
    netstat.write_text("TcpExt: TCPDSACKRecv\nTcpExt: 70\n")
    assert network_counters.segments_sent() == (20, 2000), "an older kernel counts packets"
    netstat.write_text("TcpExt: TCPDSACKRecv TCPSynRetrans\nTcpExt: 70 16\n")
    assert network_counters.segments_sent() == (4, 2000), (
        "a full listen queue is no loss on the way"
    )
