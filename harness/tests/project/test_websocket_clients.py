"""The reference server's WebSocket beside clients of another make: a package, and a browser."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory

from httpmark.harness.servers import binaries
from httpmark.harness.tests.shared.browser import Browser
from httpmark.harness.tests.shared.native_server import listening
from httpmark.harness.tests.shared.ports import own_port, wait_listening
from httpmark.harness.tests.shared.pytest_rules import starts_process
from httpmark.harness.tests.shared.websocket_place import Place, serving

DEADLINE_S = 60.0
MESSAGES: tuple[str | bytes, ...] = (
    "", b"", "hello", "κόσμε 🎉" * 1000, bytes(range(256)) * 40, "x" * 65536, os.urandom(8388608),
)  # fmt: skip


@pytest.fixture(scope="module")
@starts_process
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("tls")) as started:
        yield started


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, DEADLINE_S))


def connected(place: Place, *, tls: bool = False, path: str = "websocket", **more: Any) -> connect:
    more = {"compression": None, "max_size": None, "proxy": None, **more}
    if tls:
        return connect(f"wss://localhost:{place.tls_port}/{path}", ssl=place.context(), **more)
    return connect(f"ws://127.0.0.1:{place.port}/{path}", **more)


async def sends_back(client: ClientConnection, messages: tuple[str | bytes, ...]) -> None:
    for message in messages:
        await client.send(message)
        assert await client.recv() == message


@pytest.mark.process
@pytest.mark.parametrize("tls", [False, True], ids=["tcp", "tls"])
def test_messages_of_every_kind_come_back(place: Place, tls: bool) -> None:
    async def talk() -> None:
        async with connected(place, tls=tls) as client:
            await sends_back(client, MESSAGES)
            await client.send(["in ", "three ", "frames"])
            assert await client.recv() == "in three frames"
            await client.send([b"", b"\xff", b""])
            assert await client.recv() == b"\xff"
            latency = await client.ping(b"a Ping with payload")
            assert await latency >= 0

    run(talk())


@pytest.mark.process
def test_both_sides_at_once_lose_nothing(place: Place) -> None:
    """More than any buffer holds is on its way before the first answer is read."""
    messages = [os.urandom(20_000) for _ in range(1000)]

    async def talk() -> None:
        async with connected(place) as client:

            async def send() -> None:
                for message in messages:
                    await client.send(message)

            sending = asyncio.create_task(send())
            await asyncio.sleep(0.2)
            for message in messages:
                assert await client.recv() == message
            await sending

    run(talk())


@pytest.mark.process
def test_many_clients_at_once(place: Place) -> None:
    async def talk(number: int) -> None:
        async with connected(place) as client:
            await sends_back(client, tuple(f"{number} {turn}" for turn in range(20)))

    async def all_of_them() -> None:
        await asyncio.gather(*(talk(number) for number in range(100)))

    run(all_of_them())


@pytest.mark.process
@pytest.mark.parametrize(
    "offer",
    [
        {},
        {"server_no_context_takeover": True, "client_no_context_takeover": True},
        {"server_max_window_bits": 9, "client_max_window_bits": 9},
        {"server_max_window_bits": 15, "client_max_window_bits": 12},
    ],
    ids=str,
)
def test_compressed_messages_come_back(place: Place, offer: dict[str, Any]) -> None:
    async def talk() -> None:
        factory = ClientPerMessageDeflateFactory(**offer)
        async with connected(place, extensions=[factory]) as client:
            response = client.response
            assert response is not None
            assert "permessage-deflate" in response.headers["Sec-WebSocket-Extensions"]
            for _ in range(3):  # the last one becomes longer, which is too long for a frame
                await sends_back(client, (*MESSAGES[:-1], os.urandom(1048576)))
            await client.send(["x" * 5000, "y" * 5000])
            assert await client.recv() == "x" * 5000 + "y" * 5000

    run(talk())


@pytest.mark.process
@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1001, "away"), (4999, "κ" * 61)])
def test_a_close_is_answered_with_its_code(place: Place, code: int, reason: str) -> None:
    async def talk() -> None:
        client = await connected(place)
        await client.close(code, reason)
        assert client.protocol.close_rcvd is not None
        assert client.protocol.close_rcvd.code == code

    run(talk())


@pytest.mark.process
def test_a_message_that_is_too_long_is_told(place: Place) -> None:
    async def talk() -> None:
        async with connected(place) as client:

            async def send() -> None:
                await client.send(bytes(8388609))  # refused by its head: it may not go out whole
                await client.recv()

            with pytest.raises(ConnectionClosed) as closed:
                await send()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009

    run(talk())


@pytest.mark.process
def test_elsewhere_there_is_no_websocket(place: Place) -> None:
    async def talk() -> None:
        with pytest.raises(InvalidStatus) as refused:
            await connected(place, path="hello")
        assert refused.value.response.status_code == 200

    run(talk())


@pytest.mark.process
def test_silent_clients_are_pinged_and_a_stop_says_going_away() -> None:
    port = own_port()
    command = [
        binaries.need("server"), "--address", "127.0.0.1", "--port", str(port),
        "--ping-after-ms", "200", "--pong-timeout-ms", "2000",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    place = Place(port, 0, Path())

    async def talk() -> None:
        async with connected(place, ping_interval=None) as client:
            await asyncio.sleep(1)  # the client answers Pings by itself
            await sends_back(client, ("still here",))
            process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001

    try:
        wait_listening(port, until=True, seconds=20)
        run(talk())
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


PAGE = """<!doctype html><meta charset="utf-8"><title>begun</title><pre id="shown"></pre><script>
const seen = {events: [], opened: 0, messages: []};
let left = 2;
const end = () => {
  shown.textContent = JSON.stringify(seen);
  if (--left === 0) document.title = "ended";
};

const events = new EventSource("/events");
events.onopen = () => seen.opened++;
events.addEventListener("number", (event) => seen.events.push([event.data, event.lastEventId]));
// Also where it comes back: then it is not closed for good.
events.onerror = () => { if (events.readyState === EventSource.CLOSED) end(); };

const socket = new WebSocket(`ws://${location.host}/websocket`);
socket.binaryType = "arraybuffer";
socket.onopen = () => {
  seen.extensions = socket.extensions;
  socket.send("κόσμε 🎉");
  socket.send(new Uint8Array([0, 255, 1, 254]));
  socket.send("x".repeat(100000));
};
socket.onmessage = (event) => {
  const data = event.data;
  if (typeof data === "string") seen.messages.push([data.length, data.slice(0, 20)]);
  else seen.messages.push([...new Uint8Array(data)]);
  if (seen.messages.length === 3) socket.close(4321, "enough");
};
socket.onclose = (event) => {
  seen.close = [event.code, event.wasClean];
  end();
};
</script>"""


@pytest.mark.process
@pytest.mark.needs("chromium")
def test_a_page_in_a_browser_hears_events_and_exchanges_messages(tmp_path: Path) -> None:
    """One page for both: it is the start of the browser that takes time."""
    (tmp_path / "page.html").write_text(PAGE, "utf-8")
    with listening("server", "--static", str(tmp_path)) as address, Browser() as browser:
        page = browser.open(f"{address}static/page.html")
        end = time.monotonic() + DEADLINE_S
        while page.look("document.title") != "ended" and time.monotonic() < end:
            time.sleep(0.1)
        assert page.look("document.title") == "ended", page.look("JSON.stringify(seen)")
        seen = json.loads(page.look("shown.textContent"))
    # Three answers of three events each: it has come back with the id of the last one.
    assert seen["events"] == [[str(number), str(number)] for number in range(1, 10)]
    assert seen["opened"] == 3
    assert "permessage-deflate" in seen["extensions"]
    assert seen["messages"] == [[8, "κόσμε 🎉"], [0, 255, 1, 254], [100000, "x" * 20]]
    assert seen["close"] == [4321, True]
