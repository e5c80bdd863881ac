"""The SDKs that insist on wss:// talk to the server itself, without anything in between."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from tests.sdk.parley_process import parley_process, scripted_settings
from tests.sdk.runs import tell, trusting
from tests.sdk.scripted_words import scripted_words
from tests.sdk.sdks import SDKS, drive
from tests.wire_invariants import check_order


@pytest.mark.parametrize("name", [sdk.name for sdk in SDKS.values() if sdk.insists_on_tls])
def test_a_text_turn_over_the_server_s_own_tls(name: str, tmp_path: Path) -> None:
    authority, certificate, key = (tmp_path / f"{name}.pem" for name in ("ca", "leaf", "key"))
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    issued = issuer.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    sdk = SDKS[name]
    with scripted_words() as words_url:
        settings = scripted_settings(words_url)
        settings["server"] = {"tls_certificate": str(certificate), "tls_key": str(key)}
        with parley_process(settings, tmp_path) as port:
            told = tell(sdk, sdk.scenario("text_turn"), port)
            lines = drive(sdk, [told], tmp_path, trusting(authority))
    assert lines[-1].get("done"), lines[-1]
    events = [line["event"] for line in lines if "event" in line]
    check_order(events)
    assert events[-1]["response"]["status"] == "completed"
