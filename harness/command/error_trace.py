"""The file for the trace of an error in httpmark itself."""

from __future__ import annotations

import traceback
from pathlib import Path

from httpmark.harness.http import masking


def internal_error(path: Path | None) -> str:
    """Write the trace of the current exception into a file; returns what to tell the user."""
    target = (path or Path(".")) / "httpmark-error.txt"
    try:
        target.write_text(masking.text(traceback.format_exc()), "utf-8")
    except OSError:
        return f"its trace could not be written to {target}"
    return f"its trace is in {target}"
