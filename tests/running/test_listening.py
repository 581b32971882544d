"""The socket of a server."""

from __future__ import annotations

import socket

import pytest

from cdxmill.errors import UsageError
from cdxmill.running.listening import bound, listen


def test_a_port_that_is_held_is_free_for_the_server_alone() -> None:
    with bound("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))  # as for a port that the system chooses: without SO_REUSEADDR
        with listen("127.0.0.1", port) as server:
            assert server.getsockname()[1] == port
            with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1 port {port}"):
                bound("127.0.0.1", port)
