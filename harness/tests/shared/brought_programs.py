"""Stand-ins for programs that users bring. Each takes exactly the flags of the published one, and
does of it what tests need: it says how it was called, and answers GET of its one route.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """#!{python} -S
import argparse, socket, sys, threading
flags = argparse.ArgumentParser(allow_abbrev=False)
{flags}
given = flags.parse_args()
print("called with", *sys.argv[1:], flush=True)
OK = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 12\\r\\n\\r\\n"
PAGE = b"Hello World!"
NO = b"HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
BAD = b"HTTP/1.1 400 Bad Request\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
def talk(connection):
    received = b""
    with connection:
        connection.settimeout(2)
        while True:
            while b"\\r\\n\\r\\n" not in received:
                piece = connection.recv(65536)
                if not piece:
                    return
                received += piece
            head, _, received = received.partition(b"\\r\\n\\r\\n")
            words = head.partition(b"\\r\\n")[0].split(b" ")
            if words[0] == b"POST":
                print("was sent a POST", flush=True)
            if len(words) != 3 or b"\\nhost:" not in head.lower():
                connection.sendall(BAD)
                return
            if words[0] != b"GET" or words[1].partition(b"?")[0] != b"/hello":
                connection.sendall(NO)
                return
            connection.sendall(OK + PAGE)
def quietly(connection):
    try:
        talk(connection)
    except OSError:
        pass
listener = socket.create_server(({address}, {port}), backlog=128)
while True:
    threading.Thread(target=quietly, args=(listener.accept()[0],), daemon=True).start()
"""

_KOURIER = """
flags.add_argument("-a", required=True)
flags.add_argument("-p", required=True, type=int)
flags.add_argument("--worker-count", required=True, type=int)
"""
_LITHIUM = """
flags.add_argument("--worker-count", required=True, type=int)
"""

KOURIER_WORDS = "-a {address} -p {port} --worker-count={workers}"
LITHIUM_WORDS = "--worker-count={workers}"


def _made(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def kourier(folder: Path, name: str = "kourier-stand-in") -> Path:
    """It routes GET alone, and answers 404 and closes to all else."""
    text = _PROGRAM.format(python=sys.executable, flags=_KOURIER, address="given.a", port="given.p")
    return _made(folder / name, text)


def lithium(folder: Path, port: int, name: str = "lithium-stand-in") -> Path:
    """It takes no address and no port, and listens on one port of every address."""
    text = _PROGRAM.format(
        python=sys.executable, flags=_LITHIUM, address=repr("0.0.0.0"), port=port
    )
    return _made(folder / name, text)


# The same as an image: its ENTRYPOINT is a script that starts the nginx of the image below it.
DOCKERFILE = """FROM {image}
COPY entry /entry
ENTRYPOINT ["/bin/sh", "/entry"]
"""
_ENTRY = """set -eu
echo "called with $*"
address=0.0.0.0 port={port}
while [ $# -gt 0 ]; do
    case "$1" in
        -a) [ {takes_place} = yes ]; address=$2; shift 2 ;;
        -p) [ {takes_place} = yes ]; port=$2; shift 2 ;;
        --worker-count=*) workers=${{1#*=}}; shift ;;
        *) echo "unknown flag $1"; exit 2 ;;
    esac
done
mkdir -p /tmp/n
cat > /tmp/n/nginx.conf <<END
worker_processes $workers;
pid /tmp/n/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path /tmp/n/body;
    proxy_temp_path /tmp/n/proxy;
    fastcgi_temp_path /tmp/n/fastcgi;
    uwsgi_temp_path /tmp/n/uwsgi;
    scgi_temp_path /tmp/n/scgi;
    server {{
        listen $address:$port;
        location / {{ default_type text/plain; return 200 "Hello World!"; }}
    }}
}}
END
exec nginx -c /tmp/n/nginx.conf -g 'daemon off;'
"""


def image_folder(folder: Path, below: str, *, own_port: int | None = None) -> Path:
    """The build context of an image whose ENTRYPOINT takes the flags of Kourier's; with a port of
    its own, those of Lithium's."""
    folder.mkdir()
    (folder / "Dockerfile").write_text(DOCKERFILE.format(image=below))
    takes_place = "no" if own_port else "yes"
    (folder / "entry").write_text(_ENTRY.format(port=own_port or 0, takes_place=takes_place))
    return folder
