"""What all load generators of other projects share: running them, and reading their results."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from httpmark.harness.load.engines.launch import (
    Accounts,
    Measured,
    Target,
    Watch,
    open_books,
    per_request,
    run_engine,
)
from httpmark.harness.model.errors import Unusable
from httpmark.harness.model.load import LoadMode, LoadPlan
from httpmark.harness.servers import scratch_folders


class Foreign:
    """A load generator of another project: its command, and what both ends used meanwhile."""

    name: str
    package: str

    def __init__(self, executable: str | None = None) -> None:
        wanted = executable or self.name
        found = shutil.which(wanted)
        if found is None:
            raise Unusable(f"{wanted} not found: {self.package}")
        self.executable = found

    def cannot(self, plan: LoadPlan) -> str | None:
        """Why none of them can make this load, by their documentation; None where one may."""
        if plan.mode not in (LoadMode.CLOSED, LoadMode.OPEN):
            return f"it has no load of mode {plan.mode}"
        if plan.requests:
            return "it sends only one kind of request"
        if plan.split_bytes:
            return "it cannot split requests"
        if plan.bind:
            return "it cannot bind source addresses"
        if plan.tls:
            return self._cannot_pin(plan)
        return None

    def _cannot_pin(self, plan: LoadPlan) -> str | None:
        return "it cannot pin the version of TLS"

    def _run(
        self,
        words: Sequence[str],
        target: Target,
        *,
        timeout_s: float,
        cpus: frozenset[int] | None,
        env: Mapping[str, str] | None = None,
    ) -> tuple[str, str, int, Accounts]:
        """Standard output, why it failed if it did, its own CPU ns, the target's accounts."""
        close, watch = open_books(target.pids), Watch()
        command = [self.executable, *words]
        code, out, errors, used = run_engine(
            command, timeout_s=timeout_s, cpus=cpus, env=env, look=watch
        )
        said = errors or out.strip() or f"exit code {code}"
        accounts = msgspec.structs.replace(
            close(),
            client_on_cpu_ratio=watch.on_cpu_ratio,
            client_run_delay_ratio=watch.run_delay_ratio,
        )
        return out, said, round(used * 1e9), accounts


@contextlib.contextmanager
def pipeline_script(depth: int) -> Iterator[str]:
    """A script of wrk and wrk2 that sends ``depth`` requests in one piece."""
    with scratch_folders.folder("wrk") as folder:
        script = folder / "pipeline.lua"
        script.write_text(
            "local batch\n"
            "init = function() local one = {}\n"
            f"  for i = 1, {depth} do one[i] = wrk.format() end\n"
            "  batch = table.concat(one) end\n"
            "request = function() return batch end\n"
        )
        yield str(script)


@contextlib.contextmanager
def openssl_pinned(plan: LoadPlan) -> Iterator[dict[str, str]]:
    """The environment in which a program's OpenSSL speaks a plan's version and cipher only.

    With a configuration file of defaults (config(5) and SSL_CONF_cmd(3) of OpenSSL); it works for
    programs that set neither themselves.
    """
    if plan.tls_version is None:
        yield {}
        return
    version = f"TLSv{plan.tls_version}"
    lines = [f"MinProtocol = {version}", f"MaxProtocol = {version}"]
    if plan.tls_ciphers:
        kind = "Ciphersuites" if plan.tls_version == "1.3" else "CipherString"
        lines.append(f"{kind} = {plan.tls_ciphers}")
    with scratch_folders.folder("openssl") as folder:
        path = folder / "openssl.cnf"
        path.write_text(
            "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n"
            "[client]\n" + "\n".join(lines) + "\n"
        )
        yield {"OPENSSL_CONF": str(path)}


UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def counted_result(
    plan: LoadPlan,
    accounts: Accounts,
    *,
    requests: int,
    seconds: float,
    errors: dict[str, int],
    statuses: dict[str, int],
    established: int | None,
    client_cpu_ns: int,
    latency_reason: str,
) -> Measured:
    """The counts of an engine, and what both ends used, as a measurement."""
    server_cpu_ns = accounts.cpu_ns
    delays = (accounts.run_delay_ratio, accounts.client_run_delay_ratio)
    # The mean over several threads would hide one that is fully busy.
    client_on_cpu_ratio = max(
        client_cpu_ns / (seconds * 1e9 * plan.threads), accounts.client_on_cpu_ratio or 0.0
    )
    return Measured(
        requests=requests,
        seconds=seconds,
        errors={name: count for name, count in errors.items() if count},
        statuses={name: count for name, count in statuses.items() if count},
        refused_ratio=sum(statuses.values()) / max(1, requests),
        established=established,
        server_ns_per_request=per_request(server_cpu_ns, requests),
        cost_reason=accounts.reason,
        client_ns_per_request=per_request(client_cpu_ns, requests),
        server_on_cpu_ratio=None
        if server_cpu_ns is None
        else server_cpu_ns / (seconds * 1e9 * plan.workers),
        client_on_cpu_ratio=client_on_cpu_ratio,
        run_delay_ratio=max((delay for delay in delays if delay is not None), default=None),
        client_run_delay_ratio=accounts.client_run_delay_ratio,
        littles_law_ratio=None,
        latency_us=None,
        latency_reason=latency_reason,
        histogram=None,
        server_switches_per_request=per_request(accounts.switches, requests),
    )
