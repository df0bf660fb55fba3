"""Ctrl-C reaches every process of a terminal. A worker of this machine leaves it to its caller, who
stops all and brings back what there is. Dask loads this in each worker that ``local:N`` starts."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """What Dask calls, in the main thread of a worker that starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
