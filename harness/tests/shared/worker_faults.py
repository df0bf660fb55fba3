"""Workers of a cluster with something wrong, by the environment that they are started with."""

from __future__ import annotations

import subprocess
from pathlib import Path

_CLOCK = """
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t which, struct timespec* at) {
  int failed = (int)syscall(SYS_clock_gettime, which, at);
  if (!failed && which == CLOCK_REALTIME) at->tv_sec += SECONDS;
  return failed;
}

int gettimeofday(struct timeval* at, void* zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
"""


def clock_off(folder: Path, seconds: int) -> dict[str, str]:
    """A clock that is off, for a process and all that it starts."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_CLOCK)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-DSECONDS=({seconds})", "-o", library, source],
        check=True, timeout=60,
    )  # fmt: skip
    return {"LD_PRELOAD": str(library)}


def other_version(folder: Path, version: str) -> dict[str, str]:
    """An installation of httpmark that is of another version."""
    told = folder / "other" / f"httpmark-{version}.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: httpmark\nVersion: {version}\n")
    return {"PYTHONPATH": str(told.parent)}
