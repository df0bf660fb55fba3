"""A throw-away certificate per run, for servers that serve TLS; made with the openssl command."""

from __future__ import annotations

import subprocess
from pathlib import Path

from httpmark.harness.model import Unusable

_DEADLINE_S = 20.0
_DAYS = 2


def make(folder: Path, *, address: str) -> tuple[str, str]:
    """Write ``certificate.pem`` and ``key.pem``; their paths.

    The key is ECDSA on P-256, as ECDHE-ECDSA suites need (RFC 8422); the certificate signs itself
    and names ``address``. Nothing that lasts trusts it.

    :raises Unusable: there is no openssl, or it failed.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", str(_DAYS), "-subj", "/CN=httpmark"),
        *("-addext", f"subjectAltName=IP:{address}"),
        *("-keyout", str(key), "-out", str(certificate)),
    ]
    try:
        made = subprocess.run(
            command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    except FileNotFoundError:
        raise Unusable("openssl is not to be found: apt-get install openssl") from None
    except subprocess.TimeoutExpired:
        raise Unusable("openssl made no certificate in time") from None
    if made.returncode != 0:
        raise Unusable(f"openssl made no certificate: {made.stderr.strip().splitlines()[-1]}")
    key.chmod(0o644)  # a server that drops its rights must still read it
    return str(certificate), str(key)
