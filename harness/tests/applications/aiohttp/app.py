"""An application as aiohttp's documentation writes it: a page, and a note that is posted."""

import sys

from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/")
async def page(request: web.Request) -> web.Response:
    return web.Response(text="Hello, world")


@routes.post("/notes")
async def keep(request: web.Request) -> web.Response:
    return web.json_response({"bytes": len(await request.read())})


app = web.Application()
app.add_routes(routes)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]))
