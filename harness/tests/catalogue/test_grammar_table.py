"""What a family varies over that is made from a rule of the grammar."""

from __future__ import annotations

import ipaddress
import re

import pytest

from httpmark.harness.catalogue import grammar_table, loading
from httpmark.harness.catalogue.grammar_table import deviating_values

NONE: frozenset[str] = frozenset()


def is_host(value: bytes) -> bool:
    """Whether a value of Host is valid, by the standard library and a few words of RFC 3986."""
    text = value.strip(b" \t").decode("latin-1")
    name, port = re.fullmatch(r"(.*?)((?::[0-9]*)?)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    assert port.count(":") < 2
    if name.startswith("[") and name.endswith("]"):
        try:
            ipaddress.IPv6Address(name[1:-1])
        except ValueError:
            return False
        return "%" not in name
    plain = re.sub("%[0-9A-Fa-f]{2}", "", name)
    return re.fullmatch(r"[A-Za-z0-9._~!$&'()*+,;=-]*", plain) is not None


def test_the_second_reader_of_hosts_knows_good_from_bad() -> None:
    assert all(map(is_host, [b"a", b"a:80", b"[::1]:80", b"", b":80", b"%41", b"1.2.3.4"]))
    assert not any(map(is_host, [b"[::1", b"a b", b"a:b", b"%4", b"[zz1]", b"a/b", b"a:80:80"]))


@pytest.mark.parametrize("rule", ["Host", "IPv6address"])
def test_no_deviating_host_is_valid(rule: str) -> None:
    values = deviating_values(rule, NONE)
    assert len(values) > 200
    assert [value for value in values if is_host(value)] == []


def test_no_deviating_length_is_a_number() -> None:
    values = deviating_values("Content-Length", NONE)
    assert [value for value in values if value.strip(b" \t").isdigit()] == []


def test_no_deviating_coding_is_chunked() -> None:
    values = deviating_values("Transfer-Encoding", NONE)
    codings = [[one.strip(b" \t").lower() for one in value.split(b",")] for value in values]
    assert [one for one in codings if b"chunked" in one] == []


def test_a_part_of_the_request_line_is_varied_alone() -> None:
    values = deviating_values("HTTP-version", NONE)
    assert {b"TTP/1.1", b"HTTP//1.1", b"HTTP/1..1", b"HTTP/1."} <= set(values)
    assert b"HTTP/1.1" not in values
    assert not any(re.fullmatch(rb"HTTP/[0-9]\.[0-9]", value) for value in values)


def test_kinds_are_left_out() -> None:
    every = set(deviating_values("HTTP-version", NONE))
    some = set(deviating_values("HTTP-version", frozenset({"LF", "deleted"})))
    assert every - some >= {b"TTP/1.1", b"HT\nP/1.1"}
    assert not any(b"\n" in value for value in some)


def test_a_rule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        deviating_values("hots", NONE)


@pytest.mark.parametrize("id", ["host_deviation", "ipv6_deviation", "content_length_deviation"])
def test_a_family_varies_over_what_the_grammar_makes(id: str) -> None:
    [(name, values)] = loading.load().rules[id].vary
    assert name == "item"
    assert not any(octet in value for value in values for octet in b"\r\n")  # type: ignore[operator]


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in grammar_table.RULES]
    assert len(names) == len(set(names))
