"""The skeleton of a server's folder: a manifest that is read without an error, and a Dockerfile."""

from __future__ import annotations

from pathlib import Path

from httpmark.harness.model.errors import HarnessError
from httpmark.harness.servers import manifest_mistakes, manifests

_DOCKERFILE = "Dockerfile"

_MANIFEST_TEXT = '''\
# What NAME is, what it can do, and how it is built and started.
# images/README.md of httpmark describes every key; `httpmark images verify NAME` proves it.
name = "NAME" # the name of this folder
title = "NAME" # the name that people know
language = "C" # the programming language
version = "1.0" # the version that this folder is made for
homepage = "https://example.org/"

# What it answers. It must have hello: GET on every path gets 200, text/plain and the 12 bytes
# Hello World!. The others: body, mirror, behave (or single places of it: behave.204, ...), echo,
# tls, static, websocket.
capabilities = ["hello"]

# What a worker is: "processes", "threads", or "one" if it has only one, whatever number is given.
workers = "threads"

# engine = "node" # the server whose HTTP parser it shares; leave it out if the parser is its own
# answers_1_0_as_1_0 = true # if its answer to an HTTP/1.0 request says HTTP/1.0
notes = "Where its production settings come from, and what a reader of its figures should know."

# The limits and timeouts that it has with these settings. Leave out what you do not know.
[limits]
# request_line_bytes = 8192
# head_bytes = 32768
# content_bytes = 1048576

[timeouts]
# head_s = 60 # 0: no limit
# content_s = 60
# idle_s = 75

# How it runs as a process of this machine. Remove this part if it runs only as a container.
# Words may hold {address} {port} {endpoint} {workers} {scratch} {build} {source} {python}.
[process]
# build = [["make", "-C", "{source}", "OUT={build}"]] # once for each state of the sources
start = ["NAME", "--address", "{address}", "--port", "{port}", "--workers", "{workers}"]
version = ["NAME", "--version"] # must print a number such as 1.0
binary = "NAME"
# conformance = ["--timeout", "5"] # more words while suites are run: timeouts short enough to test
# tls = ["--tls-port", "{tls_port}", "--tls-cert", "{tls_cert}", "--tls-key", "{tls_key}"]

# Files of configuration, written to {scratch} before each start:
# [process.files]
# "NAME.conf" = """
# listen {endpoint}
# """

# What must be installed. Without it the server is listed as unavailable, with this advice.
[[process.needs]]
command = "NAME"
install = "put a program NAME on PATH"

# How it runs as a container. Remove this part, and Dockerfile, if it runs only as a process.
[container]
dockerfile = "Dockerfile"
start = ["NAME", "--address", "{address}", "--port", "{port}", "--workers", "{workers}"]
version = ["NAME", "--version"]
'''

_DOCKERFILE_TEXT = """\
# httpmark passes the base; it makes one itself where no registry answers.
ARG BASE=debian:trixie-slim
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \\
  && rm -rf /var/lib/apt/lists/*
# Put the program here: install its package above, or copy what this folder holds.
COPY NAME /usr/local/bin/
USER 65534:65534
CMD ["NAME"]
"""


def write(name: str, above: Path) -> Path:
    """Make the folder of a new server below ``above``; gives its path.

    :raises HarnessError: the name is wrong or taken, or the folder is there or cannot be made.
    """
    if (mistake := manifest_mistakes.name_mistake(name)) is not None:
        raise HarnessError(f"images new: {mistake}")
    if name in {one.name for one in manifests.servers()}:
        raise HarnessError(f"images new: name: {name} is a server already: choose another name")
    folder = above / name
    texts = {manifests.MANIFEST: _MANIFEST_TEXT, _DOCKERFILE: _DOCKERFILE_TEXT}
    try:
        above.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        for file, text in texts.items():
            (folder / file).write_text(text.replace("NAME", name), encoding="utf-8")
    except FileExistsError:
        raise HarnessError(f"{folder}: is there already: choose another name or folder") from None
    except OSError as error:
        raise HarnessError(f"{folder}: cannot be made: {error.strerror}") from error
    return folder
