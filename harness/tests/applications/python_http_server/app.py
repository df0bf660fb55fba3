"""An application on Python's http.server as its documentation shows it: a handler's methods."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path != "/":
            self.send_error(404)
            return
        self.answer(b"Hello, world")

    def do_POST(self) -> None:
        if self.path != "/notes":
            self.send_error(404)
            return
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(b"%d bytes" % len(content))

    def answer(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
