"""`parley serve` with a certificate, and what it says of one that is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from realtime.cli import main
from realtime.commands.errors import CommandError
from realtime.commands.tls import load_tls
from realtime.settings import Server

ROOT = Path(__file__).resolve().parents[2]
KEY = "a-key-of-sixteen-characters"
PATIENCE_S = 30


class Files:
    """A certificate of 127.0.0.1, its key, and an authority that vouches for it."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        issued = self.authority.issue_cert("127.0.0.1")
        self.certificate, self.key = folder / "chain.pem", folder / "key.pem"
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())

    def server(self) -> Server:
        return Server(tls_certificate=self.certificate, tls_key=self.key)

    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@contextmanager
def running(folder: Path, server: str, **variables: str) -> Iterator[list[str]]:
    """A server of scripted stages with these settings; what it has said until it was ready."""
    config = folder / "config.yaml"
    scripted = (ROOT / "configs" / "scripted.yaml").read_text(encoding="utf-8")
    config.write_text(f"{scripted}\nserver:\n{server}", encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "realtime.cli", "serve", str(config), "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "PARLEY_KEY": "", "PARLEY_LLM_URL": "", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if "ready at" in line:
                break
        yield said
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


def test_with_a_certificate_the_server_speaks_https_and_wss(files: Files, tmp_path: Path) -> None:
    lines = f"  tls_certificate: {files.certificate}\n  tls_key: {files.key}\n"
    with running(tmp_path, lines) as said:
        found = re.search(r"ready at (https://127\.0\.0\.1:\d+) ", said[-1])
        assert found, said
        url, trusting = found[1], files.trust()
        answer = httpx.get(f"{url}/health", verify=trusting)
        assert answer.json()["status"] == "ready"

        async def talk() -> str:
            address = f"{url.replace('https', 'wss')}/v1/realtime"
            async with (
                asyncio.timeout(PATIENCE_S),
                connect(address, ssl=trusting, proxy=None, compression=None) as socket,
            ):
                return json.loads(await socket.recv())["type"]

        assert asyncio.run(talk()) == "session.created"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")  # nobody vouches for it here


def test_talk_says_why_it_does_not_trust_a_server_and_what_to_do(
    files: Files,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def talk(url: str) -> tuple[int, str]:
        code = main(["talk", "--text", "hello", "--url", f"{url}/v1/realtime"])
        return code, capsys.readouterr().err

    lines = f"  tls_certificate: {files.certificate}\n  tls_key: {files.key}\n"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with running(tmp_path, lines) as said:
        found = re.search(r"ready at https(://127\.0\.0\.1:\d+) ", said[-1])
        assert found, said
        url = f"wss{found[1]}"
        code, problem = talk(url)
        assert code == 1
        assert problem.startswith(f"parley: the certificate of {url}/v1/realtime is not trusted (")
        assert problem.endswith("of the authority that signed it, or its own, in $SSL_CERT_FILE\n")
        trusted = tmp_path / "authority.pem"
        files.authority.cert_pem.write_to_path(str(trusted))
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert talk(url) == (0, "")
        code, problem = talk(url.replace("127.0.0.1", "localhost"))
        assert code == 1 and problem.endswith(": use a name that it holds\n")
    with running(tmp_path, "  host: 127.0.0.1\n") as said:
        found = re.search(r"ready at http(://127\.0\.0\.1:\d+) ", said[-1])
        assert found, said
        code, problem = talk(f"wss{found[1]}")
        assert code == 1 and "does not speak TLS as wss:// needs it" in problem


def test_the_start_says_who_may_connect(tmp_path: Path) -> None:
    with running(tmp_path, "  host: 127.0.0.1\n") as said:
        assert said[0] == "No keys: only programs of this machine may connect (127.0.0.1)\n"
        assert "ready at http://127.0.0.1:" in said[-1]
    lines = "  host: 127.0.0.1\n  keys_env: OUR_KEYS\n"
    with running(tmp_path, lines, OUR_KEYS=f"{KEY}, another-long-enough-key") as said:
        assert said[0] == "Clients show one of 2 keys or a client secret made with it\n"
        found = re.search(r"ready at (\S+) ", said[-1])
        assert found
        models = f"{found[1]}/v1/models"
        assert httpx.get(models).status_code == 401
        assert httpx.get(models, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_larger_message_than_the_configured_one_ends_the_connection(tmp_path: Path) -> None:
    lines = "  host: 127.0.0.1\nlimits:\n  message_mib: 22\n"
    with running(tmp_path, lines) as said:
        found = re.search(r"ready at http(\S+) ", said[-1])
        assert found

        async def send(size_mib: float) -> int | None:
            async with (
                asyncio.timeout(PATIENCE_S),
                connect(f"ws{found[1]}/v1/realtime", proxy=None, compression=None) as socket,
            ):
                await socket.recv()
                with contextlib.suppress(ConnectionClosed):
                    await socket.send("x" * int(size_mib * 2**20))
                    assert json.loads(await socket.recv())["error"]["code"] == "invalid_json"
                return socket.close_code

        assert asyncio.run(send(21.5)) is None
        assert asyncio.run(send(22.5)) == 1009


def refusal(server: Server) -> str:
    with pytest.raises(CommandError) as caught:
        load_tls(server)
    return str(caught.value)


def test_files_that_belong_together_are_taken(files: Files) -> None:
    assert load_tls(Server()) is None
    assert load_tls(files.server()) is not None


def test_a_missing_file_is_named(files: Files, tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    server = Server(tls_certificate=missing, tls_key=files.key)
    assert refusal(server) == (
        f"server.tls_certificate: {missing} cannot be read: No such file or directory"
    )
    server = Server(tls_certificate=files.certificate, tls_key=tmp_path)
    assert refusal(server) == f"server.tls_key: {tmp_path} cannot be read: Is a directory"


def test_files_in_each_others_place_are_noticed(files: Files) -> None:
    server = Server(tls_certificate=files.key, tls_key=files.certificate)
    assert refusal(server) == (
        f"server.tls_certificate: {files.key} holds no PEM block of a certificate"
    )
    server = Server(tls_certificate=files.certificate, tls_key=files.certificate)
    assert refusal(server) == (
        f"server.tls_key: {files.certificate} holds no PEM block of a private key"
    )


def test_the_key_of_another_certificate_is_noticed(files: Files, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Files(tmp_path / "other")
    server = Server(tls_certificate=files.certificate, tls_key=other.key)
    assert "is not the key of the first certificate" in refusal(server)


def test_a_damaged_file_is_refused_with_its_name(files: Files) -> None:
    lines = files.certificate.read_text(encoding="ascii").splitlines()
    files.certificate.write_text("\n".join([lines[0], *lines[2:]]), encoding="ascii")
    said = refusal(files.server())
    assert str(files.certificate) in said and "cannot be used" in said


def test_a_key_with_a_password_is_not_asked_for_it(files: Files) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    )
    assert refusal(files.server()) == (
        f"server.tls_key: {files.key} has a password: give a key without one"
    )


def test_a_wrong_certificate_ends_the_start_and_the_check(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    text = f"server:\n  port: 0\n  tls_certificate: {tmp_path}/no.pem\n  tls_key: {files.key}\n"
    config.write_text(text, encoding="utf-8")
    assert main(["serve", str(config)]) == 1
    problem = f"server.tls_certificate: {tmp_path}/no.pem cannot be read"
    assert capsys.readouterr().err.startswith(f"parley: {problem}")
    assert main(["check", str(config)]) == 1
    assert f"NO  port: {problem}" in capsys.readouterr().out
