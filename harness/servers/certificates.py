"""Throw-away certificates, made at run time: an authority nobody trusts, and what it signs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives import serialization

from httpmark.harness.model.errors import Unusable

_HERE = ("127.0.0.1", "::1", "localhost")


class Pair(NamedTuple):
    """Paths of two PEM files: a certificate followed by its authority's, and its key."""

    certificate: str
    key: str


class Authority:
    """A certificate authority of its own, in ``folder``; ``certificate`` is the path of its PEM.

    Keys are ECDSA on P-256, as ECDHE-ECDSA suites need (RFC 8422), in PKCS #8 (RFC 5958), which
    every TLS library reads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.certificate = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.certificate)

    def server(self, *names: str, expired: bool = False, password: bytes | None = None) -> Pair:
        """A server's, for addresses or host names (this machine's own when none is given).

        ``expired`` ended yesterday; with ``password`` the key is encrypted.

        :raises Unusable: a name is neither an address nor a host name.
        """
        return self._issue("server", names or _HERE, expired=expired, password=password)

    def client(self, name: str = "client.example") -> Pair:
        """A client's, for servers that ask who calls.

        :raises Unusable: ``name`` is neither an address nor a host name.
        """
        return self._issue("client", (name,))

    def _issue(
        self, role: str, names: tuple[str, ...], *, expired: bool = False,
        password: bytes | None = None,
    ) -> Pair:  # fmt: skip
        day = datetime.timedelta(days=1)
        now = datetime.datetime.now(datetime.UTC)
        try:
            leaf = self._authority.issue_cert(
                *names, common_name="httpmark",
                not_before=now - 2 * day, not_after=now - day if expired else now + 2 * day,
            )  # fmt: skip
        except ValueError as error:  # what is no name
            raise Unusable(f"no certificate for {', '.join(names)}: {error}") from None
        words = [role, names[0].replace(":", "_").replace("*", "_")]
        words += ["expired"] * expired + ["encrypted"] * (password is not None)
        certificate = self._folder / f"{'-'.join(words)}.pem"
        key = certificate.with_suffix(".key")
        chain = [*leaf.cert_chain_pems, self._authority.cert_pem]
        certificate.write_bytes(b"".join(blob.bytes() for blob in chain))
        key.write_bytes(
            serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(password)
                if password is not None
                else serialization.NoEncryption(),
            )
        )
        key.chmod(0o644)  # a server that drops its rights must still read it
        return Pair(str(certificate), str(key))


def make(folder: Path, *, address: str) -> Pair:
    """One server certificate for ``address`` and this machine's own names, with a fresh authority.

    Its file holds the authority's certificate too, so a client may take it for what to trust.

    :raises Unusable: ``address`` is neither an address nor a host name.
    """
    return Authority(folder).server(address, *(name for name in _HERE if name != address))
