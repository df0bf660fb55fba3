"""Few long answers are remembered, however many come."""

from __future__ import annotations

from httpmark.harness.judging.remembering import LONG_BYTES, LONG_MAX, SHORT_MAX, remembers_answers


def finds_again(answers: list[bytes]) -> int:
    """All answers are given, and then all once more: how many had to be looked at again."""
    found: list[bytes] = []

    @remembers_answers(lambda octets, status: len(octets))
    def find(octets: bytes, status: int) -> int:
        found.append(octets)
        return status

    for _ in range(2):
        assert [find(octets, 200) for octets in answers] == [200] * len(answers)
    return len(found) - len(answers)


def test_what_is_short_is_remembered() -> None:
    assert finds_again([b"%d" % number for number in range(SHORT_MAX)]) == 0
    assert finds_again([b"%*d" % (LONG_BYTES, number) for number in range(LONG_MAX + 1)]) == 0


def test_what_is_long_is_remembered_of_a_few() -> None:
    assert finds_again([b"%*d" % (LONG_BYTES + 1, number) for number in range(LONG_MAX)]) == 0
    many = [b"%*d" % (LONG_BYTES + 1, number) for number in range(LONG_MAX + 1)]
    assert finds_again(many) == len(many)
