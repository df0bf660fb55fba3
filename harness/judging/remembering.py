"""Remembers what was found in an answer, because in a suite most answers are alike.

A page may be long and another one each time (a token, the time of day). Thousands of those would
fill the memory, so few long ones are remembered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

_Given = TypeVarTuple("_Given")
_Found = TypeVar("_Found")

LONG_BYTES = 4096
SHORT_MAX = 4096
LONG_MAX = 16


def remembers_answers(
    size: Callable[[*_Given], int],
) -> Callable[[Callable[[*_Given], _Found]], Callable[[*_Given], _Found]]:
    """Decorates a function of an answer's bytes and of what else is hashable.

    :param size: how many bytes the answer has, of the same positional parameters.
    """

    def decorate(find: Callable[[*_Given], _Found]) -> Callable[[*_Given], _Found]:
        of_short = functools.lru_cache(maxsize=SHORT_MAX)(find)
        of_long = functools.lru_cache(maxsize=LONG_MAX)(find)

        @functools.wraps(find)
        def remembered(*given: *_Given) -> _Found:
            remembering = of_long if size(*given) > LONG_BYTES else of_short
            return remembering(*given)

        return remembered

    return decorate
