"""http.server of the standard library, with handlers as its page shows them."""

from __future__ import annotations

import argparse
import http.server
import json
import time
import urllib.parse

HELLO = b"Hello World!"
BIG = b"a" * (1 << 20)
SLOW_S = 0.5
PLAIN = ("Content-Type", "text/plain")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """No access log."""

    def answer(self, status: int, content: bytes = b"", *fields: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(content)

    def serve(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/early":
            self.close_connection = True  # the content is never read
            self.answer(200, HELLO, PLAIN)
            return
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "/slow":
            time.sleep(SLOW_S)
        if path == "/echo":
            parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            content = json.dumps(parameters).encode()
            self.answer(200, content, ("Content-Type", "application/json"))
        elif path == "/204":
            self.answer(204)
        elif path == "/304":
            self.answer(304, b"", ("ETag", '"httpmark"'))
        elif path == "/redirect":
            self.answer(302, b"", ("Location", "/hello"))
        elif path == "/big":
            self.answer(200, BIG, PLAIN)
        elif path == "/404":
            self.answer(404, b"Not Found", PLAIN)
        elif path == "/get-only" and self.command not in ("GET", "HEAD"):
            self.answer(405, b"Method Not Allowed", PLAIN, ("Allow", "GET, HEAD"))
        else:
            self.answer(200, HELLO, PLAIN)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = serve


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 4096


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--address", default="127.0.0.1")
    words.add_argument("--port", type=int, default=8080)
    options = words.parse_args()
    Server((options.address, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
