"""Where the trace of an error of the harness itself goes."""

from __future__ import annotations

import traceback
from pathlib import Path


def internal_error(path: Path | None) -> str:
    """Where the trace of an error of the harness itself went."""
    target = (path or Path(".")) / "httpmark-error.txt"
    try:
        target.write_text(traceback.format_exc(), "utf-8")
    except OSError:
        return "no trace could be written"
    return f"the trace is in {target}"
