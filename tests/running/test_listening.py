"""The socket of a server."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from cdxmill.errors import UsageError
from cdxmill.running import listening
from cdxmill.running.listening import bound, host_of, listen


def test_a_port_that_is_held_is_free_for_the_server_alone() -> None:
    with bound("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))  # as for a port that the system chooses: without SO_REUSEADDR
        with listen("127.0.0.1", port) as server:
            assert server.getsockname()[1] == port
            with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1 port {port}"):
                bound("127.0.0.1", port)


def test_a_socket_that_cannot_be_used_is_closed_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listen("127.0.0.1", 0) as server:
        port = server.getsockname()[1]
        for number, reason in (
            (port, os.strerror(errno.EADDRINUSE)),
            (70_000, "bind(): port must be 0-65535."),
        ):
            with pytest.raises(UsageError) as error:
                listen("127.0.0.1", number)
            assert str(error.value).startswith(f"cannot listen on 127.0.0.1 port {number} ({reason}); choose")
    with bound("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        second = bound("127.0.0.1", port)
        first.listen()
        monkeypatch.setattr(listening, "bound", lambda *_: second)
        with pytest.raises(UsageError, match="cannot listen"):
            listen("127.0.0.1", port)  # another program was quicker
        assert second.fileno() == -1


def test_a_machine_without_the_family_of_an_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refuse(family: int) -> None:
        asked.append(family)
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(socket, "socket", refuse)
    for address in ("::1", "127.0.0.1"):
        with pytest.raises(
            UsageError, match=rf"cannot listen on {address} port 80 \(Address family not supp"
        ):
            listen(address, 80)
    assert asked == [socket.AF_INET6, socket.AF_INET]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::1", "[::1]"),
        ("localhost", "localhost"),
    ],
)
def test_a_host_leads_to_an_address(address: str, host: str) -> None:
    assert host_of(address) == host
