"""The certificate of `https` and `wss`, read before anything slow begins."""

from __future__ import annotations

import ssl
from pathlib import Path

from realtime.commands.errors import CommandError
from realtime.settings import Server

KEY_MISMATCH = "KEY_VALUES_MISMATCH"  # OpenSSL's name for a key of another certificate


def load_tls(server: Server) -> ssl.SSLContext | None:
    """What the configured files hold; None: the server speaks plainly. Raises CommandError."""
    certificate, key = server.tls_certificate, server.tls_key
    if certificate is None or key is None:
        return None
    _check_holds(certificate, "server.tls_certificate", "CERTIFICATE", "a certificate")
    _check_holds(key, "server.tls_key", "PRIVATE KEY", "a private key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])

    def refuse_password() -> str:
        # OpenSSL would ask for it on the terminal, where a service waits for ever.
        raise CommandError(f"server.tls_key: {key} has a password: give a key without one")

    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        if error.reason == KEY_MISMATCH:
            raise CommandError(
                f"server.tls_key: {key} is not the key of the first certificate in {certificate}"
            ) from error
        raise CommandError(
            f"server.tls_certificate {certificate} and server.tls_key {key} cannot be used: {error}"
        ) from error
    return context


def _check_holds(path: Path, setting: str, label: str, thing: str) -> None:
    """Whether a PEM file is there and holds what it should."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise CommandError(
            f"{setting}: {path} cannot be read: {error.strerror or error}"
        ) from error
    begins = [line for line in text.splitlines() if line.startswith("-----BEGIN ")]
    if not any(f"{label}-----" in line for line in begins):
        raise CommandError(f"{setting}: {path} holds no PEM block of {thing}")
