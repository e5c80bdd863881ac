"""Which addresses a server may visit on behalf of strangers: those that anybody can reach."""

from __future__ import annotations

import ipaddress

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all that IANA gives out of IPv6

# Within what counts as public, but in truth a door to somewhere else.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.88.99.0/24",  # relays of 6to4
        "168.63.129.16/32",  # a cloud's own services, metadata among them
        "2001::/23",  # protocols' own, Teredo among them, whose addresses hold IPv4 ones
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: holds an IPv4 address
        "3fff::/20",  # documentation
    )
)


def is_public_address(text: str) -> bool:
    """Whether an IP address, as a resolver writes it, belongs to the public internet.

    IPv4 addresses inside IPv6 ones (mapped, compatible, NAT64, 6to4, Teredo) are all refused:
    no server of recordings is reached only through them.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _REFUSED if network.version == address.version)
