"""A wire between two network namespaces that takes its time and loses frames.

``python -m ...slow_wire DELAY_S LOSS_RATIO NAMESPACE:DEVICE NAMESPACE:DEVICE`` carries frames
between two TAP devices. The kernel's own netem does the same where it is built in; many kernels
lack it.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_NEW_NET = 0x40000000  # CLONE_NEWNET
_SET_INTERFACE = 0x400454CA  # TUNSETIFF
_TAP_BARE = 0x0002 | 0x1000  # IFF_TAP | IFF_NO_PI
_FRAME_BYTES = 65536


def _opened(place: str) -> int:
    """The end of a TAP device in a namespace."""
    namespace, _, device = place.partition(":")
    with open(f"/run/netns/{namespace}", "rb") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _NEW_NET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _SET_INTERFACE, struct.pack("16sH22x", device.encode(), _TAP_BARE))
    return end


def main() -> None:
    delay_s, loss = float(sys.argv[1]), float(sys.argv[2])
    one, other = (_opened(place) for place in sys.argv[3:5])
    draw = random.Random(1)
    across = {one: other, other: one}
    flying: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        wait_s = None if not flying else max(0.0, flying[0][0] - time.monotonic())
        for end in select.select([one, other], [], [], wait_s)[0]:
            frame = os.read(end, _FRAME_BYTES)
            if draw.random() >= loss:
                number += 1
                heapq.heappush(flying, (time.monotonic() + delay_s, number, across[end], frame))
        while flying and flying[0][0] <= time.monotonic():
            _, _, end, frame = heapq.heappop(flying)
            try:
                os.write(end, frame)
            except OSError:  # the device is down: the frame is lost
                continue


if __name__ == "__main__":
    main()
