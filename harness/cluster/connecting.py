"""The connection to a cluster: a scheduler of Dask distributed and its workers.

All else asks :class:`Cluster`. Functions that workers are given stand in this wing, and are found
there by their names: so a worker must have the same version of httpmark.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from httpmark.harness.cluster import worker_signals
from httpmark.harness.cluster.addresses import Address, Hosts, Local, Scheduler
from httpmark.harness.model.errors import HarnessError, Unusable

ROLES = ("server", "generator", "suite")
"""What a worker may do, as resources of Dask."""
CONNECT_S = 20.0
START_S = 120.0
_ANY_PORT = "127.0.0.1:0"
"""Where a scheduler of ours answers by HTTP. Without it Dask takes the one port 8787."""
_INSTALL = "--cluster needs Dask distributed: pip install 'httpmark[cluster]'"


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the scheduler knows it."""

    address: str
    name: str
    roles: tuple[str, ...]


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._known: dict[str, Any] = {}

    @property
    def is_lost(self) -> bool:
        """Whether the scheduler cannot be reached any more."""
        return str(self._client.status) != "running"

    def workers(self) -> list[Worker]:
        """The workers that are there now; without a scheduler, those that were there."""
        # Not `scheduler_info()`: what it gives is refreshed without the workers now and then.
        if not self.is_lost:
            with contextlib.suppress(OSError, RuntimeError):
                told = self._client.sync(self._client.scheduler.identity, n_workers=-1)
                self._known = told["workers"]
        return [
            Worker(
                address=address,
                name=str(one.get("name", address)),
                roles=tuple(role for role in ROLES if (one.get("resources") or {}).get(role)),
            )
            for address, one in sorted(self._known.items())
        ]

    def ask(self, function: Callable[..., Any], *words: Any, of: Sequence[str]) -> dict[str, Any]:
        """What a short function gives on each of some workers, or the exception, by address.

        :raises Unusable: the scheduler is gone.
        """
        try:
            found: dict[str, Any] = self._client.run(
                function, *words, workers=list(of), on_error="return"
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise Unusable(f"the cluster does not answer: {error}") from None
        return found

    def submit(
        self, function: Callable[..., Any], *words: Any, role: str, only: Sequence[str] = ()
    ) -> Any:
        """Have a function called on a worker with a role, and on another one if that dies.

        :param only: addresses of the workers that may get it; none: all.
        :returns: the future of Dask. It never ends where all of ``only`` die.
        """
        return self._client.submit(
            function, *words, resources={role: 1}, workers=list(only) or None, pure=False
        )

    def submit_to(self, function: Callable[..., Any], *words: Any, of: str, role: str) -> Any:
        """Have a function called on one worker, and on no other one if that dies.

        :returns: the future of Dask. It never ends where the worker dies.
        """
        return self._client.submit(
            function, *words, resources={role: 1}, workers=[of], allow_other_workers=False,
            retries=0, pure=False,
        )  # fmt: skip

    def cancel(self, futures: Sequence[Any]) -> None:
        """What is not wanted any more; without a scheduler there is nothing to cancel."""
        if self.is_lost:
            return
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self._client.cancel(list(futures), force=True)

    def hear(self, topic: str, take: Callable[[Any], None]) -> None:
        """Have what workers say on a topic handed over, in another thread."""
        self._client.subscribe_topic(topic, lambda event: take(event[1]))


@contextlib.contextmanager
def opened(address: Address) -> Iterator[Cluster]:
    """The cluster at an address. What is started for it is stopped at the end.

    :raises HarnessError: Dask is not installed.
    :raises Unusable: there is no scheduler, or it has no worker.
    """
    try:
        import distributed
    except ImportError:
        raise HarnessError(_INSTALL) from None
    # What it logs is for those who run a cluster; a user is told in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # Dask sets its own
    logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
    if isinstance(address, Scheduler) and address.url.startswith("tls:"):
        _check_certificates(distributed.Security(), address.url)
    with contextlib.ExitStack() as stack:
        where = (
            address.url
            if isinstance(address, Scheduler)
            else stack.enter_context(_started(address))
        )
        try:
            client = distributed.Client(where, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Unusable(f"{address}: no scheduler answers: {told}") from None
        stack.callback(_close, client)
        cluster = Cluster(client)
        _wait(cluster, address)
        yield cluster


def _check_certificates(security: Any, url: str) -> None:
    """Dask has the files of TLS from its configuration.

    :raises HarnessError: they are not named there, or cannot be read.
    """
    try:
        has_files = security.get_connection_args("client").get("ssl_context") is not None
        why = "" if has_files else "no certificates are named"
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        raise HarnessError(
            f"{url}: {why}: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, and below "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__ the variables CERT and KEY"
        )


def _close(client: Any) -> None:
    with contextlib.suppress(OSError, TimeoutError, RuntimeError):
        client.close(timeout=5)


def _wait(cluster: Cluster, address: Address) -> None:
    """Until the workers are there.

    :raises Unusable: they do not come.
    """
    match address:
        case Scheduler():
            number, patience_s = 1, CONNECT_S
        case Hosts(names):
            number, patience_s = len(names), START_S
        case Local(workers):
            number, patience_s = workers, START_S
    end = time.monotonic() + patience_s
    while len(cluster.workers()) < number:
        if time.monotonic() > end:
            have = len(cluster.workers())
            raise Unusable(
                f"{address}: {have} of {number} workers came: start them with "
                "`dask worker ADDRESS --nthreads 1 --resources 'suite=1'`"
            )
        time.sleep(0.05)


@contextlib.contextmanager
def _started(address: Local | Hosts) -> Iterator[Any]:
    """A cluster that lives as long as this."""
    try:
        cluster = _local(address) if isinstance(address, Local) else _by_ssh(address)
    except ImportError as error:
        raise HarnessError(f"{_INSTALL} ({error})") from None
    except (OSError, RuntimeError, TimeoutError) as error:
        told = (str(error) or type(error).__name__).splitlines()[0]
        raise Unusable(f"{address}: the workers do not start: {told}") from None
    try:
        yield cluster
    finally:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            cluster.close(timeout=20)


def _local(address: Local) -> Any:
    import distributed

    return distributed.LocalCluster(
        n_workers=address.workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": _ANY_PORT},
        silence_logs=logging.CRITICAL,
        resources=dict.fromkeys(ROLES, 1),
        preload=[worker_signals.__name__],
    )


def _by_ssh(address: Hosts) -> Any:
    import distributed

    return distributed.SSHCluster(
        [address.names[0], *address.names],
        worker_options={"nthreads": 1, "resources": dict.fromkeys(ROLES, 1)},
        scheduler_options={"port": 0, "dashboard_address": _ANY_PORT, "dashboard": False},
    )
