"""TOML text to tables. Only this module reads TOML, so that every mistake in it is one error."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import Any

KEY_PARTS_MAX = 100

# tomllib holds every beginning of a dotted key: of 20,000 parts, gigabytes. Possessive, as a text
# without dots must not be tried from each of its characters to its end.
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{KEY_PARTS_MAX},}}", re.A)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class NotToml(ValueError):
    """The text is no TOML, or no TOML that anybody writes; says why in one line."""


def tables(text: str) -> dict[str, Any]:
    """What a text says.

    :raises NotToml: it breaks the grammar, is nested too deeply, or has a number or a key that is
        too long.
    """
    if _LONG_KEY.search(text):
        raise NotToml(f"a key of more than {KEY_PARTS_MAX} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("arrays or tables are nested too deeply") from None
    except ValueError:
        raise NotToml(f"a number of more than {sys.get_int_max_str_digits()} digits") from None


def shown_key(name: str) -> str:
    """A key as TOML writes it, in one line."""
    return name if _BARE_KEY.fullmatch(name) else repr(name)
