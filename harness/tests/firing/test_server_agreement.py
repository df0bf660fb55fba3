"""Servers compared with each other."""

from __future__ import annotations

from httpmark.harness.firing import server_agreement


def test_the_grid_has_servers_as_rows_and_columns() -> None:
    names = ["http://127.0.0.1:1/", "b", "c"]
    agreed = {(names[0], "b"): (1, 2), (names[0], "c"): (0, 2), ("b", "c"): (0, 0)}
    assert server_agreement.grid(names, agreed) == [
        "                              A       B       C",
        "  A http://127.0.0.1:1/       -  50.0 %   0.0 %",
        "  B b                    50.0 %       -    none",
        "  C c                     0.0 %    none       -",
    ]
    assert server_agreement.shares(names, agreed)[0] == [None, 0.5, 0.0]
    many = [f"http://a-server-with-a-long-name.example:{number}/" for number in range(30)]
    lines = server_agreement.grid(many, {})
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("  A ") for line in lines) == 6
