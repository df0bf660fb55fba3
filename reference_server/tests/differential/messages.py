"""The messages that every parser is asked about: designed ones, and the same with small harms."""

from __future__ import annotations

import random

GET = b"GET / HTTP/1.1\r\n"
HOST = b"Host: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

LINES = [
    b"GET / HTTP/1.1",
    b"GET  / HTTP/1.1",
    b"GET /  HTTP/1.1",
    b"GET\t/ HTTP/1.1",
    b"GET / HTTP/1.1 ",
    b"GET /a b HTTP/1.1",
    b"GET /",
    b"GET",
    b" GET / HTTP/1.1",
    b"G@T / HTTP/1.1",
    b"HEAD /x?y=%41&z HTTP/1.1",
    b"PUT //a/../%2e HTTP/1.1",
    b"DELETE /" + b"a" * 100 + b" HTTP/1.1",
    b"PATCH /%zz HTTP/1.1",
    b"GET /%4 HTTP/1.1",
    b"GET /?%zz HTTP/1.1",
    b"GET /a#b HTTP/1.1",
    b'GET /"<>\\^`{|} HTTP/1.1',
    b"GET /?[]|{} HTTP/1.1",
    b"GET /\x80 HTTP/1.1",
    b"GET /\xc3\xa9 HTTP/1.1",
    b"GET /\x7f HTTP/1.1",
    b"GET /\x00 HTTP/1.1",
    b"GET http://b/c?d HTTP/1.1",
    b"GET http://[::1]:80/ HTTP/1.1",
    b"GET HTTP://b HTTP/1.1",
    b"GET http:///x HTTP/1.1",
    b"GET http://u@b/ HTTP/1.1",
    b"GET http://b:65536/ HTTP/1.1",
    b"GET b/c HTTP/1.1",
    b"GET * HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"OPTIONS / HTTP/1.1",
    b"GET / HTTP/1.0",
    b"GET / HTTP/1.2",
    b"GET / HTTP/2.0",
    b"GET / HTTP/0.9",
    b"GET / HTTP/1.10",
    b"GET / HTTP/1",
    b"GET / http/1.1",
    b"GET / HTTPS/1.1",
    b"PRI * HTTP/2.0",
]

FIELDS = [
    b"",
    b"X: y\r\n",
    b"X:y\r\n",
    b"X:\r\n",
    b"X: \t y \t\r\n",
    b"X:\x80\xff\r\n",
    b"X: a\tb\r\n",
    b"X: \x01\r\n",
    b"X: \x7f\r\n",
    b"X: \x00\r\n",
    b"X: a\rb\r\n",
    b"X: y\n",
    b"X: y\r\r\n",
    b"X : y\r\n",
    b"X\t: y\r\n",
    b" X: y\r\n",
    b"X: y\r\n z\r\n",
    b"X: y\r\n\tz\r\n",
    b"X: y\r\n \r\n",
    b"X\r\n",
    b": y\r\n",
    b"X\x80: y\r\n",
    b"X(: y\r\n",
    b"X y: z\r\n",
    b"Host: a\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 003\r\n",
    b"Content-Length: +3\r\n",
    b"Content-Length: -3\r\n",
    b"Content-Length: 0x3\r\n",
    b"Content-Length: 3 3\r\n",
    b"Content-Length:\r\n",
    b"Content-Length: 3, 3\r\n",
    b"Content-Length: 3\r\nContent-Length: 3\r\n",
    b"Content-Length: 3\r\nContent-Length: 4\r\n",
    b"Content-Length: 9223372036854775808\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: Chunked\r\n",
    b"Transfer-Encoding: , chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, gzip\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked;a=b\r\n",
    b"Transfer-Encoding:\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: 200-ok\r\n",
]

HOSTS = [
    b"a", b"", b"a:80", b"a:", b"a:65536", b"a:x", b"[::1]", b"[::1]:8", b"[::1", b"[::g]", b"a b",
    b"a/b", b"u@a", b"a%41", b"a%", b"a%zz", b"\x80", b"a,b", b"1.2.3.999", b":80", b'"', b"a\\b",
    b"a_b~!",
]  # fmt: skip

BODIES = [
    b"", b"abc", b"abcdef", b"0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\r\n\r\n",
]  # fmt: skip

CHUNKS = [
    b"3;a\r\nabc\r\n0\r\n\r\n",
    b'3;a="b"\r\nabc\r\n0\r\n\r\n',
    b'3;a="b\r\nabc\r\n0\r\n\r\n',
    b"3 ;a\r\nabc\r\n0\r\n\r\n",
    b"3 \r\nabc\r\n0\r\n\r\n",
    b"3;\r\nabc\r\n0\r\n\r\n",
    b"3;a=\r\nabc\r\n0\r\n\r\n",
    b"3;\x01\r\nabc\r\n0\r\n\r\n",
    b"3 x\r\nabc\r\n0\r\n\r\n",
    b"03\r\nabc\r\n00\r\n\r\n",
    b"0x3\r\nabc\r\n0\r\n\r\n",
    b"+3\r\nabc\r\n0\r\n\r\n",
    b" 3\r\nabc\r\n0\r\n\r\n",
    b"g\r\nabc\r\n0\r\n\r\n",
    b"\r\nabc\r\n0\r\n\r\n",
    b"3\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\n0\r\n\r\n",
    b"3\r\nabcd\r\n0\r\n\r\n",
    b"3\r\nab\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\n\n",
    b"3\r\nabc\r\n0\n\r\n",
    b"3\rabc\r\n0\r\n\r\n",
    b"FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\r\nZ:\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX : y\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\n\r\n",
    b"3\r\nabc\r\n0\r\n X: y\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: \x01\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX\r\n\r\n",
    b"3\r\nabc\r\n0\r\n",
    b"3\r\nabc\r\n",
]

HARM = b'\r\n \t\x00%:;,"=\x7f\x80#[@'


def harmed(dice: random.Random, message: bytes) -> bytes:
    at = dice.randrange(len(message) + 1)
    lines = message.split(b"\r\n")
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(8):
        case 0 | 1:
            return message[:at] + bytes([dice.choice(HARM)]) + message[at:]
        case 2:
            return message[:at] + bytes([dice.choice(HARM)]) + message[at + 1 :]
        case 3:
            return message[:at] + message[at + 1 :]
        case 4:
            return message[:at] + b"\r\n" + message[at:]
        case 5:
            return message[:at]
        case 6:
            lines[first], lines[second] = lines[second], lines[first]
        case _:
            lines.insert(first, lines[second])
    return b"\r\n".join(lines)


def designed() -> list[bytes]:
    found = [line + b"\r\n" + HOST + b"\r\n" for line in LINES]
    found += [empty + GET + HOST + b"\r\n" for empty in (b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ")]
    found += [GET + b"\r\n", b"GET / HTTP/1.0\r\n\r\n", GET + HOST + b"\r\n" + GET]
    found += [GET + b"Host: " + host + b"\r\n\r\n" for host in HOSTS]
    found += [b"POST / HTTP/1.1\r\n" + HOST + field + b"\r\n" + body
              for field in FIELDS for body in BODIES]  # fmt: skip
    found += [b"POST / HTTP/1.0\r\n" + HOST + field + b"\r\n" + BODIES[4] for field in FIELDS]
    found += [CHUNKED + chunks for chunks in CHUNKS]
    return found


def harmed_messages(seed: int, count: int) -> list[bytes]:
    dice = random.Random(seed)
    bases = designed()
    found: list[bytes] = []
    while len(found) < count:
        message = dice.choice(bases)
        for _ in range(dice.randrange(1, 4)):
            message = harmed(dice, message)
        found.append(message)
    return found
