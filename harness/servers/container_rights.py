"""What a container may do: as little as its server can live with."""

from __future__ import annotations

from typing import Any

from httpmark.harness.model.servers import RIGHTS, ContainerRecipe
from httpmark.harness.servers import memory_guard

PIDS_MAX = 16_384  # processes and threads: some servers have one for each connection
# The guard ends a server that holds too much and says so; the kernel's limit is behind it.
_MEMORY_OVER_GUARD = 1.25
_IN_MEMORY = ("/tmp", "/var/tmp", "/run")
_IN_MEMORY_OPTIONS = "rw,exec,nosuid,nodev,size=256m,mode=1777"


def kept(recipe: ContainerRecipe) -> frozenset[str]:
    """The words of :data:`RIGHTS` that a container keeps."""
    if recipe.keeps is not None:
        return frozenset(recipe.keeps)
    return frozenset(RIGHTS if recipe.image is not None else ())


def bounds(recipe: ContainerRecipe, *, volume: str) -> dict[str, Any]:
    """The words in which Docker is told what a container may do.

    :param volume: a folder of its own, removed with it: into a container that cannot write to its
        image nothing can be copied elsewhere.
    """
    keeps = kept(recipe)
    memory = int(memory_guard.bound_kb() * 1024 * _MEMORY_OVER_GUARD)
    said: dict[str, Any] = {
        "pids_limit": PIDS_MAX,
        "mem_limit": memory,
        "memswap_limit": memory,  # of both together: none of it is swap
        "volumes": [volume],
    }
    if "capabilities" not in keeps:
        said["cap_drop"] = ["ALL"]
    if "new-privileges" not in keeps:
        said["security_opt"] = ["no-new-privileges:true"]
    if "writes" not in keeps:
        said["read_only"] = True
        # Each a fresh copy of what the image has there, with its owners.
        said["volumes"] = [volume, *recipe.writes]
        said["tmpfs"] = dict.fromkeys(_IN_MEMORY, _IN_MEMORY_OPTIONS)
    return said
