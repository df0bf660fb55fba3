"""Sends every message back at any path: the package `websockets`."""

from __future__ import annotations

import asyncio
import sys

from websockets.asyncio.server import ServerConnection, serve


async def send_back(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def main(port: int) -> None:
    async with serve(send_back, "127.0.0.1", port, compression=None) as server:
        await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
