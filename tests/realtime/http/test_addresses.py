"""Which addresses are public."""

from __future__ import annotations

import pytest

from realtime.http.references.addresses import is_public_address

PRIVATE = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.8.8.8
169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1
192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1
255.255.255.255 168.63.129.16
:: ::1 ::127.0.0.1 ::10.0.0.1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254
::ffff:8.8.8.8 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1
2001::1 2001:0:4136:e378:8000:63bf:f5ff:fffe 2001:10::1 2001:db8::1 2002:a00:1::1
2002:7f00:1:: 2002:a9fe:a9fe::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
fe80::1%1 febf::1 fec0::1 ff02::1 ff0e::1
""".split()
PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 2606:4700::1111 2a00:1450:4001::1".split()


@pytest.mark.parametrize("address", PRIVATE)
def test_what_not_everybody_can_reach_is_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["", "x", "localhost", "1.1.1", "0x7f000001", "1.1.1.1/32"])
def test_what_is_no_address_is_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_the_rest_is(address: str) -> None:
    assert is_public_address(address)
