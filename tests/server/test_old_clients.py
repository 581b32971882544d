"""server/old_clients.py: how the connection of an answer without chunks ends."""

from __future__ import annotations

import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.server.old_clients import _ResetTransport


@pytest.mark.parametrize("has_socket", [True, False])
@pytest.mark.parametrize("is_complete", [True, False])
def test_a_connection_is_reset_unless_its_answer_is_complete(is_complete: bool, has_socket: bool) -> None:
    done: list[object] = []
    connection = SimpleNamespace(setsockopt=lambda *option: done.append(option))
    transport = SimpleNamespace(
        write=done.append,
        close=lambda: done.append("closed"),
        abort=lambda: done.append("aborted"),
        is_closing=lambda: True,
        get_extra_info=lambda name: connection if has_socket and name == "socket" else None,
    )
    cycle: Any = SimpleNamespace(transport=transport, response_complete=is_complete)
    found = _ResetTransport(cycle)
    found.write(b"a")
    assert found.is_closing()
    found.close()
    option = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reset = [option, "aborted"] if has_socket else ["aborted"]
    assert done == [b"a", *(["closed"] if is_complete else reset)]
