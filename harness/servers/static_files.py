"""The files a server of files is given, and what it says of one of them.

``ok.html``, ``.hidden``, ``sub/``, ``link-out`` (to the secret) and ``future.html`` (dated two days
ahead) stand in the folder that is served; the secret stands just above it, where no route leads.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from pathlib import Path

from httpmark.harness.http import response_reader
from httpmark.harness.http.dates import moment
from httpmark.harness.model.cases import FILE_TEXT, SECRET, SECRET_TEXT, Facts

FOLDER = "static"

_CHANGED_S = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT
_AHEAD_S = 2 * 86400

Ask = Callable[[bytes], bytes | None]


def plant(above: Path) -> None:
    """Put the files into ``above``: the secret, and beside it the folder to be served."""
    folder = above / FOLDER
    folder.mkdir()
    (folder / "sub").mkdir()
    (above / SECRET).write_text(SECRET_TEXT, encoding="ascii")
    for name in ("ok.html", ".hidden", "future.html", "sub/index.html"):
        (folder / name).write_text(FILE_TEXT, encoding="ascii")
        os.utime(folder / name, (_CHANGED_S, _CHANGED_S))
    ahead = time.time() + _AHEAD_S
    os.utime(folder / "future.html", (ahead, ahead))
    (folder / "link-out").symlink_to(f"../{SECRET}")
    # A server that drops its rights must still get in.
    for path in (folder, folder / "sub"):
        path.chmod(0o755)
    for path in (above / SECRET, *(p for p in folder.rglob("*") if p.is_file())):
        path.chmod(0o644)


def learned(ask: Ask, facts: Facts) -> dict[str, str]:
    """What scenario texts need to know of the static files: the names in ``STATIC_FILE_FACTS``.

    ETag and Last-Modified are what the server says of ``ok.html``; what it does not say is left
    out. Empty where the server does not serve these files.
    """
    if "static" not in facts.capabilities:
        return {}
    request = f"GET /static/ok.html HTTP/1.1\r\n{facts.host_lines}Connection: close\r\n\r\n"
    try:
        answer = response_reader.read_final(ask(request.encode("latin-1")) or b"", ended=True)
    except (response_reader.Malformed, response_reader.Incomplete):
        return {}
    if answer.status != 200 or answer.content != FILE_TEXT.encode("ascii"):
        return {}
    found = {"secret": SECRET, "secret_text": SECRET_TEXT, "file_text": FILE_TEXT}
    for tag in answer.values(b"etag"):
        found["etag"] = tag.decode("latin-1")
    for date in answer.values(b"last-modified"):
        if (seconds := moment(date)) is not None:
            found |= _dates(date.decode("latin-1"), seconds)
    return found


def _dates(imf: str, seconds: float) -> dict[str, str]:
    """One instant in the three formats of RFC 9110 5.6.7."""
    day = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return {
        "modified": imf,
        "modified_rfc850": f"{_LONG[day.weekday()]}, {day:%d}-{imf[8:11]}-{day:%y} {imf[17:]}",
        "modified_asctime": f"{imf[:3]} {imf[8:11]} {day.day:2} {imf[17:25]} {day.year}",
    }


_LONG = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
