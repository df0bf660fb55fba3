"""The throw-away certificate: what servers need it to be, and no leftovers without openssl."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from httpmark.harness import certificates
from httpmark.harness.model import Unusable


@pytest.mark.needs("openssl")
def test_a_certificate_and_its_key_fit_and_name_the_address(tmp_path: Path) -> None:
    certificate, key = certificates.make(tmp_path, address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    (authority,) = context.get_ca_certs()
    assert authority["subjectAltName"] == (("IP Address", "127.0.0.1"),)


def test_without_openssl_the_mend_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unusable, match="apt-get install openssl"):
        certificates.make(tmp_path, address="127.0.0.1")


@pytest.mark.needs("openssl")
def test_what_openssl_will_not_have_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="openssl made no certificate") as caught:
        certificates.make(tmp_path, address="nowhere at all")
    assert "\n" not in str(caught.value)
