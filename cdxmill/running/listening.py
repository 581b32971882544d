"""The socket of a server, and the address that leads to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cdxmill.errors import UsageError


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens on a port; on a free one for 0. Raises UsageError if it is taken or the address is not one of this machine."""
    with ExitStack() as opened, _reporting(address, port):
        listener = opened.enter_context(bound(address, port))
        listener.listen(2048)
        opened.pop_all()
        return listener


def bound(address: str, port: int) -> socket.socket:
    """A socket that has a port, a free one for 0. On Linux, a server that sets SO_REUSEADDR, as servers do, can listen there meanwhile,
    and no other program gets the port as a free one. Raises as `listen`.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with ExitStack() as opened, _reporting(address, port):
        listener = opened.enter_context(socket.socket(family))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        opened.pop_all()
        return listener


@contextmanager
def _reporting(address: str, port: int) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "choose another --port or --bind"
        raise UsageError(f"cannot listen on {address} port {port} ({reason}); {hint}") from None


def host_of(address: str) -> str:
    """The host of a URL that leads to an address on which a server listens."""
    if address in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{address}]" if ":" in address else address
