"""The three executables from outside: exit codes, one line of complaint, readiness, endings."""

import email.utils
import json
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PROBE, LOAD, NULL = sys.argv[1:4]


def run(*command: str, given: bytes = b"") -> tuple[int, bytes, str]:
    done = subprocess.run(command, input=given, capture_output=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def complains(code: int, *command: str) -> None:
    got, out, errors = run(*command)
    assert got == code, (command, got, errors)
    assert out == b"", (command, out)
    assert errors.count("\n") == 1, (command, errors)
    assert errors.startswith("httpmark-"), (command, errors)


@contextmanager
def null(*options: str) -> Iterator[tuple[str, int, int]]:
    server = subprocess.Popen([NULL, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("listening on "), line
        address, _, port = line.split()[-1].rpartition(":")
        yield address.strip("[]"), int(port), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(5) == 0


@contextmanager
def answering(octets: bytes) -> Iterator[int]:
    """Answers whatever comes, once on each connection, and keeps it open."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.sendall(octets)
                held.append(connection)
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for connection in held:
            connection.close()


@contextmanager
def trickling(begin: bytes, piece: bytes) -> Iterator[int]:
    """Answers with some bytes, and then with others again and again, one piece every 50 ms."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def serve() -> None:
        try:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(begin)
                while not is_over.wait(0.05):
                    connection.sendall(piece)
        except OSError:
            return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_words_that_are_wrong() -> None:
    for command in (
        (NULL, "--nonsense"),
        (NULL, "--port", "70000"),
        (NULL, "--port"),
        (NULL, "--address", "nowhere"),
        (NULL, "--tls-cert", "x"),
        (NULL, "--tls-port", "8443"),
        (PROBE,),
        (PROBE, "--address", "127.0.0.1"),
        (PROBE, "--address", "127.0.0.1", "--port", "80", "--unix", "/x"),
        (PROBE, "--address", "127.0.0.1", "--port", "80", "--in-flight", "-1"),
        (PROBE, "--print-layout", "--address", "127.0.0.1"),
        (LOAD,),
        (LOAD, "ftp://127.0.0.1/"),
        (LOAD, "--depth", "0", "http://127.0.0.1/"),
        (LOAD, "--mode", "open", "http://127.0.0.1/"),
        (LOAD, "--rate", "5", "http://127.0.0.1/"),
        (LOAD, "--duration-s", "soon", "http://127.0.0.1/"),
        (LOAD, "--bind", "127.0.0.0/33", "http://127.0.0.1/"),
        (LOAD, "--bind", "::1/129", "http://[::1]/"),
        (LOAD, "--bind", "::1/128", "http://127.0.0.1/"),
        (LOAD, "--header", "no colon", "http://127.0.0.1/"),
        (LOAD, "--server-pid", "999999999", "http://127.0.0.1/"),
        (LOAD, "http://127.0.0.1/", "http://127.0.0.1/"),
    ):
        complains(2, *command)


def test_a_port_that_is_taken() -> None:
    with null() as (_, port, _):
        complains(3, NULL, "--port", str(port))


def test_nobody_to_load() -> None:
    complains(3, LOAD, "--json", f"http://127.0.0.1:{free_port()}/")


def test_null_over_ipv6_and_with_workers() -> None:
    with null("--address", "::1", "--workers", "2") as (address, port, pid):
        assert address == "::1"
        url = f"http://[::1]:{port}/"
        code, out, errors = run(
            *(LOAD, "--connections", "6", "--depth", "9", "--threads", "2", "--warmup-s", "0.1"),
            *("--duration-s", "0.2", "--bind", "::1/128", "--server-pid", str(pid)),
            *("--json", url),
        )
        assert code == 0, errors
        report = json.loads(out)
        assert report["requests"] >= report["requests_in_window"] > 100
        assert not any(report["errors"].values())
        assert report["established"] == 6
        assert report["cpu_ns"]["server"] > 0
        assert report["cpu_ns"]["client"] > 0
        assert len(report["client_threads"]) == 2
        assert 0.7 < report["littles_law_ratio"] < 1.3
        assert report["latency_us"]["p50"] <= report["latency_us"]["p99"]
        assert report["histograms"]["response"].startswith("HISTF")
        (slice_,) = report["slices"]
        assert slice_["requests"] == report["requests_in_window"]
        assert slice_["seconds"] == report["seconds"]
        assert slice_["latency_us"]["p50"] <= slice_["latency_us"]["p99"]


def test_several_processes_that_bind_their_sources() -> None:
    with null() as (_, port, _):
        code, out, errors = run(
            *(LOAD, "--connections", "7", "--depth", "4", "--threads", "2", "--procs", "3"),
            *("--mode", "open", "--rate", "900", "--arrivals", "poisson", "--duration-s", "0.4"),
            *("--bind", "127.0.0.0/8", "--json", f"http://127.0.0.1:{port}/"),
        )
        assert code == 0, errors
        report = json.loads(out)
        assert (report["established"], report["procs"]) == (7, 3)
        assert len(report["client_threads"]) == 6
        assert 250 < report["requests"] < 470, report["requests"]
        assert report["service_us"]["p50"] <= report["latency_us"]["p99"]
        assert not report["saturated"]


def test_a_server_that_dies_under_load() -> None:
    server = subprocess.Popen([NULL, "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().rpartition(":")[2].strip()
    threading.Timer(0.5, server.kill).start()
    code, out, errors = run(
        *(LOAD, "--connections", "4", "--depth", "4", "--duration-s", "20"),
        *("--server-pid", str(server.pid), "--json", f"http://127.0.0.1:{port}/"),
    )
    server.wait(5)
    assert (code, errors) == (1, "")
    report = json.loads(out)
    assert report["seconds"] < 10
    assert report["requests"] > 0
    assert report["errors"]["closed"] + report["errors"]["reset"] > 0
    assert report["errors"]["connect"] == 12  # each of the four tries three times
    assert report["cpu_ns"]["server"] is None


# Burns a millisecond of CPU on each answer, in a thread or a process that each connection has.
BURNER = """
import os, signal, socket, sys, threading, time

def serve(connection):
    try:
        while connection.recv(4096):
            end = time.thread_time() + 0.001
            while time.thread_time() < end:
                pass
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    except OSError:
        pass
    connection.close()

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

signal.signal(signal.SIGCHLD, reap)
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    if sys.argv[1] == "thread":
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
    elif os.fork() == 0:
        try:
            serve(connection)
        finally:
            os._exit(0)
    connection = None
"""


def test_the_cost_of_threads_and_processes_that_each_connection_has() -> None:
    for kind in ("thread", "process"):
        for mode in ("closed", "churn"):
            command = (sys.executable, "-c", BURNER, kind)
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                assert server.stdout is not None
                port = server.stdout.readline().strip()
                code, out, errors = run(
                    *(LOAD, "--mode", mode, "--connections", "2", "--duration-s", "0.5"),
                    *("--server-pid", str(server.pid), "--json", f"http://127.0.0.1:{port}/"),
                )
            finally:
                server.kill()
                server.wait(5)
            assert code == 0, (kind, mode, out, errors)
            report = json.loads(out)
            assert report["requests"] > 10, (kind, mode, report)
            burnt = report["requests"] * 1_000_000
            cost = report["cpu_ns"]["server"]
            # Of processes that have ended the kernel tells the ticks.
            slack = 20_000_000 if kind == "process" else 0
            assert cost > max(0.3 * burnt, 0.9 * burnt - slack), (kind, mode, cost)
            if mode == "churn":
                ended = report["cpu_ns"]["server_ended"] / report["cpu_ns"]["server"]
                assert ended > 0.5, (kind, mode, ended)
                assert report["context_switches"]["server"] is None


def test_a_first_answer_that_is_no_good() -> None:
    with answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as port:
        code, out, errors = run(LOAD, "--json", f"http://127.0.0.1:{port}/")
        assert code == 1
        assert errors.count("\n") == 1
        report = json.loads(out)
        assert report["errors"]["status"] == 1
        assert report["requests"] == 0
        assert report["latency_us"] is None
        assert report["cpu_ns_per_request"] == {"client": None, "server": None}
    with answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as port:
        url = f"http://127.0.0.1:{port}/"
        code, out, _ = run(
            *(LOAD, "--expect-status", "404", "--duration-s", "0.1", "--drain-s", "0.1"),
            *("--json", url),
        )
        # The second answer on a connection never comes.
        report = json.loads(out)
        assert code == 1
        assert report["errors"]["timeout"] == 1
        assert report["requests"] == 1


def test_a_first_answer_that_takes_its_time() -> None:
    """Its Date is of when it was made, and not of when it was asked for."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        wait = 2.6  # more than a Date may be off the clock
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                while connection.recv(4096):
                    time.sleep(wait)
                    wait = 0.0
                    date = email.utils.formatdate(usegmt=True)
                    answer = f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n"
                    connection.sendall(answer.encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    code, out, errors = run(LOAD, "--duration-s", "0.1", "--json", url)
    thread.join(5)
    listener.close()
    assert (code, errors) == (0, ""), (out, errors)


def test_a_first_answer_that_never_ends() -> None:
    """Not a byte at a time, not in interim answers and not in a body without end."""
    head = b"HTTP/1.1 200 OK\r\n"
    chunk = b"100000\r\n%b\r\n" % bytes(1 << 20)
    late, large = "no whole first answer in time", "the first answer is larger than 64 MiB"
    for begin, piece, wait, why in (
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n", "0.5", late),
        (head, b"X-A: b\r\n", "0.5", late),
        (head + b"Content-Length: 100\r\n\r\n", b".", "0.5", late),
        (head + b"Content-Length: 200000000\r\n\r\n" + 80 * chunk, b"", "20", large),
        (head + b"Transfer-Encoding: chunked\r\n\r\n" + 80 * chunk, b"", "20", large),
    ):
        with trickling(begin, piece) as port:
            began = time.monotonic()
            url = f"http://127.0.0.1:{port}/"
            code, _, errors = run(LOAD, "--first-answer-s", wait, "--json", url)
            assert (code, errors) == (1, f"httpmark-load: {why}\n"), (why, errors)
            assert time.monotonic() - began < 10, why
    with trickling(b"", b"\x16\x03\x03\x40\x00") as port:
        code, _, errors = run(
            LOAD, "--first-answer-s", "0.5", "--tls", f"https://127.0.0.1:{port}/"
        )
        assert code == 3, errors
        assert errors.endswith(": no whole handshake in time\n")


def test_escapes_of_a_terminal_are_not_passed_on() -> None:
    """Wherever a server puts them: the title of a terminal is none of its business."""
    escape = b"\x1b]0;owned\x07\x1b[2J\x9b31m"
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    for octets in (
        escape,
        b"HTTP/1.1 404 " + escape + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + escape + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nDate: " + escape + b"\r\nContent-Length: 0\r\n\r\n",
        good + escape,
    ):
        with answering(octets) as port:
            for form in ((), ("--json",)):
                words = ("--first-answer-s", "0.5", *form, f"http://127.0.0.1:{port}/")
                code, out, errors = run(LOAD, *words)
                assert code == 1, octets
                assert all(c == "\n" or " " <= c <= "~" for c in out.decode() + errors), octets


def test_requests_from_a_file_that_is_not_there() -> None:
    complains(2, LOAD, "--request-file", "/nonexistent/file", "http://127.0.0.1/")
    complains(2, LOAD, "--request-file", "/", "http://127.0.0.1/")


def test_the_probe_prints_its_layout() -> None:
    code, out, errors = run(PROBE, "--print-layout")
    assert (code, errors) == (0, "")
    layout = json.loads(out)
    assert layout["steps"]["send"] == 1
    for name in ("request_frame", "step_record", "await_record", "exchange_frame", "event_record"):
        widths = [int(width.removeprefix("u")) for _, width in layout[name]["fields"]]
        assert layout[name]["bytes"] * 8 == sum(widths), name


def test_the_probe_over_a_pipe() -> None:
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    steps = struct.pack("<BI", 1, len(request)) + request + struct.pack("<BIB", 3, 1000, 0)
    body = struct.pack("<IIIIBBH", 7, 2000, 0, 0, 0, 0, 2) + steps
    with null() as (address, port, _):
        where = (PROBE, "--address", address, "--port", str(port))
        code, out, errors = run(*where, given=struct.pack("<I", len(body)) + body)
        assert (code, errors) == (0, "")
        length, number, outcome, end = struct.unpack_from("<IIBB", out)
        assert (length, number, outcome, end) == (len(out) - 4, 7, 0, 0)
        assert out.endswith(b"Hello World!")
        code, out, errors = run(*where, given=b"\x05\0\0\0nonsense")
        assert code == 2
        assert out == b""
        assert errors.count("\n") == 1


def test_the_probe_over_a_unix_socket() -> None:
    request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    steps = struct.pack("<BI", 1, len(request)) + request + struct.pack("<BIB", 3, 1000, 0)
    frames = b""
    for number in range(50):
        body = struct.pack("<IIIIBBH", number, 2000, 0, 500, 0, 0, 2) + steps
        frames += struct.pack("<I", len(body)) + body
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        code, out, errors = run(PROBE, "--unix", path, given=frames)
        assert (code, errors) == (0, "")
        assert len(out) == 50 * 44
        assert out[8] == 4  # refused
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(4)  # fewer than are in flight: the probe has to wait for its turn

        def serve() -> None:
            for _ in range(50):
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 No\r\nConnection: close\r\n\r\n")
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        code, out, errors = run(PROBE, "--unix", path, given=frames)
        thread.join(5)
        listener.close()
    assert (code, errors) == (0, "")
    seen = 0
    while out:
        length, _, outcome, end = struct.unpack_from("<IIBB", out)
        assert (outcome, end) == (0, 1)
        out = out[4 + length :]
        seen += 1
    assert seen == 50


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            sys.stdout.write(f"ok {name}\n")
