"""What every door asks first: from which page, and with which key."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from realtime.access.denial import Denied
from realtime.access.keyring import KeyRing, Pass
from realtime.access.keys import find_key
from realtime.access.origins import is_allowed_origin, is_local_host


@dataclass(frozen=True, slots=True)
class Gate:
    """origins: configured. loopback: whether the server listens on loopback only.

    now_s: unix time. Headers come as a mapping with lower-case names.
    """

    ring: KeyRing
    origins: Sequence[str]
    loopback: bool
    now_s: Callable[[], float] = time.time

    def admit(self, headers: Mapping[str, str], subprotocols: Sequence[str]) -> Pass:
        """Let a key or a client secret in. Raises Denied."""
        self._check_origin(headers)
        shown = find_key(headers.get("authorization"), subprotocols)
        return self.ring.admit(shown, self.now_s())

    def admit_key(self, headers: Mapping[str, str], subprotocols: Sequence[str] = ()) -> Pass:
        """Let a key in, for what client secrets may not do. Raises Denied."""
        self._check_origin(headers)
        return self.ring.admit_key(find_key(headers.get("authorization"), subprotocols))

    def admit_reader(self, headers: Mapping[str, str]) -> None:
        """Let whoever only reads what a server without keys tells everybody. Raises Denied."""
        host = headers.get("host")
        if self.loopback and self.ring.is_open and not is_local_host(host, self.origins):
            raise Denied(
                403,
                "host_not_allowed",
                f"This server is not {str(host)[:80]}: use http://127.0.0.1 or http://localhost "
                "with its port; its operator can allow other names under server.origins.",
            )

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        if not is_allowed_origin(origin, headers.get("host"), self.origins, loopback=self.loopback):
            raise Denied(
                403,
                "origin_not_allowed",
                f"Web pages of {origin} may not use this server; its operator can allow them "
                "under server.origins.",
            )
