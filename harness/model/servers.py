"""Servers under test: what `images/<name>/server.toml` says of one."""

from __future__ import annotations

import msgspec

# The words a manifest declares capabilities in (docs/contract.md).
CAPABILITIES = ("hello", "body", "mirror", "behave", "echo", "tls", "static", "websocket", "events")
# What a server that lacks some of the places of ``behave`` can declare, or show: its single places.
PARTS_OF_BEHAVE = (
    "behave.slow", "behave.early", "behave.204", "behave.304", "behave.redirect", "behave.big",
    "behave.404", "behave.get-only",
)  # fmt: skip
# The words a manifest declares timeouts in, in seconds.
TIMEOUTS = ("head_s", "content_s", "idle_s", "write_s", "check_interval_s")

# What a worker of a server is: a process, a thread, or nothing but the one that there always is.
WORKERS = ("processes", "threads", "one")

# What a container may keep of Docker's own rights: capabilities, programs that gain rights
# (setuid), and writing wherever in its image.
RIGHTS = ("capabilities", "new-privileges", "writes")

# The words a manifest declares limits in: bytes, and a number of field lines.
LIMITS = (
    "request_target_bytes",
    "request_line_bytes",
    "field_line_bytes",
    "head_bytes",
    "fields",
    "content_bytes",
)


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something a server needs on this machine to run as a process, and how to get it.

    Exactly one of ``command``, ``file``, ``pkg_config`` and ``python`` is given.
    """

    install: str  # the command that installs it, or what to do
    command: str | None = None  # an executable on PATH
    file: str | None = None  # a file that must exist (a header, a library)
    pkg_config: str | None = None  # a pkg-config module, "Qt6HttpServer >= 6.8"
    python: str | None = None  # a module of the Python that runs httpmark
    at_least: str | None = None  # the oldest version of ``command`` that will do
    ask: tuple[str, ...] = ("--version",)  # the words ``command`` tells its version to


class ProcessRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is built and started as a local process.

    Placeholders in words: ``{address}`` ``{port}`` ``{endpoint}`` (both, as address:port)
    ``{workers}`` ``{build}`` (a cache folder) ``{source}`` (the image's folder) ``{scratch}`` (a
    temporary folder of this start) ``{static}`` (the folder it serves, with ``static``)
    ``{python}`` (the Python that runs httpmark) ``{package}`` (where the folders of ``context``
    lie); with TLS also ``{tls_port}`` ``{tls_endpoint}`` ``{tls_cert}`` ``{tls_key}``.
    """

    start: tuple[str, ...]
    context: tuple[str, ...] = ()  # folders of the package that the build reads, too
    build: tuple[tuple[str, ...], ...] = ()
    needs: tuple[Need, ...] = ()
    files: dict[str, str] = {}  # configuration written to {scratch}, placeholders filled in
    env: dict[str, str] = {}  # added to the environment of the server
    build_env: dict[str, str] = {}  # added to the environment of the build
    binary: str | None = None  # the executable, where a listing should name it
    version: tuple[str, ...] = ()  # a command that prints the server's version
    tls: tuple[str, ...] = ()  # words added to start where TLS is asked for
    tls_files: dict[str, str] = {}  # more files, where TLS is asked for
    conformance: tuple[str, ...] = ()  # words added to start where suites are fired
    conformance_files: dict[str, str] = {}  # more files, where suites are fired
    port: int | None = None  # the one port that it listens on, if it takes no other


class ContainerRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is built and started as a container (host network).

    Placeholders in words: ``{address}`` ``{port}`` ``{endpoint}`` ``{workers}`` ``{scratch}`` (a
    folder in the container) ``{static}`` (the folder it serves); with TLS also
    ``{tls_port}`` ``{tls_endpoint}`` ``{tls_cert}`` ``{tls_key}``. Exactly one of
    ``dockerfile`` and ``image`` is given.
    """

    start: tuple[str, ...] = ()  # the command; empty: the one the image names
    args: tuple[str, ...] = ()  # instead of start: words after the image's own ENTRYPOINT
    dockerfile: str | None = None
    image: str | None = None  # an image the user brings, instead of a Dockerfile
    context: tuple[str, ...] = ()  # folders of the package that join the build context
    files: dict[str, str] = {}
    env: dict[str, str] = {}
    version: tuple[str, ...] = ()  # a command in the container that prints the server's version
    tls: tuple[str, ...] = ()  # words added to start where TLS is asked for
    tls_files: dict[str, str] = {}  # more files, where TLS is asked for
    conformance: tuple[str, ...] = ()  # words added to start where suites are fired
    conformance_files: dict[str, str] = {}  # more files, where suites are fired
    port: int | None = None  # the one port that it listens on, if it takes no other
    # The words of RIGHTS that it cannot live without. None: not said; then an image that the user
    # brings keeps all, as it was made for Docker's defaults, and one of a Dockerfile none.
    keeps: tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()  # folders of its image that it writes to, a fresh copy each start


class ProxyRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is started as a local process that is a reverse proxy in front of an origin.

    All that is not said here is that of ``process``: needs, build, variables, version. Its words
    and files may hold the placeholders of ``process`` and ``{origin}`` (host:port),
    ``{origin_host}`` and ``{origin_port}``.
    """

    start: tuple[str, ...]
    files: dict[str, str] = {}  # these alone: not those of ``process``


class Tls(msgspec.Struct, frozen=True):
    """That a server serves TLS too: where, and with which certificate."""

    port: int
    cert: str  # path of the certificate chain, PEM
    key: str  # path of its private key, PEM


class Conformance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a server declares where suites are fired, in place of what it declares otherwise."""

    limits: dict[str, int | None] = {}
    timeouts: dict[str, float | None] = {}


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server under test: ``images/<name>/server.toml``."""

    name: str
    title: str
    language: str
    version: str
    homepage: str
    capabilities: tuple[str, ...]
    process: ProcessRecipe | None = None
    container: ContainerRecipe | None = None
    proxy: ProxyRecipe | None = None  # it can be a reverse proxy: the capability ``proxy``
    url: str = ""  # it runs already, at this address; instead of process and container
    engine: str = ""  # the server whose HTTP parser it shares; "": its own
    workers: str = ""  # what a worker is, a word of WORKERS; "": not said
    by_default: bool = True  # part of a run that names no server
    tried: bool = True  # false: nobody has started it from this manifest yet
    control: bool = False  # a calibration server: measured, never ranked
    ready_path: str = "/hello"
    ready_timeout_s: float = 15.0
    answers_1_0_as_1_0: bool = False
    get_only: bool = False  # its routes take GET alone, so it is not asked what needs POST
    files_only: bool = False  # a path without a file gets 404, so /hello stands for all paths
    limits: dict[str, int | None] = {}  # the words of LIMITS
    timeouts: dict[str, float | None] = {}  # seconds; the words of TIMEOUTS
    conformance: Conformance = Conformance()
    notes: str = ""
    source: str = ""  # the folder of the manifest
    trouble: str = ""  # why its manifest cannot be used: file, key, what to do
