"""The socket of a server, and the address that leads to it."""

from __future__ import annotations

import socket

from cdxmill.errors import UsageError


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens on a port; on a free one for 0. Raises UsageError if it is taken or the address is not one of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {address} port {port} ({reason}); choose another --port or --bind"
        ) from None
    return listener


def host_of(address: str) -> str:
    """The host of a URL that leads to an address on which a server listens."""
    if address in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address
