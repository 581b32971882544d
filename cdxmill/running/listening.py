"""The socket of a server, and the address that leads to it."""

from __future__ import annotations

import socket

from cdxmill.errors import UsageError


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens on a port; on a free one for 0. Raises UsageError if it is taken or the address is not one of this machine."""
    listener = bound(address, port)
    try:
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _cannot_listen(address, port, error) from None
    return listener


def bound(address: str, port: int) -> socket.socket:
    """A socket that has a port, a free one for 0. On Linux, a server that sets SO_REUSEADDR, as servers do, can listen there meanwhile,
    and no other program gets the port as a free one. Raises as `listen`.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise _cannot_listen(address, port, error) from None
    return listener


def _cannot_listen(address: str, port: int, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(f"cannot listen on {address} port {port} ({reason}); choose another --port or --bind")


def host_of(address: str) -> str:
    """The host of a URL that leads to an address on which a server listens."""
    if address in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address
