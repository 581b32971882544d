"""What counts as an address in a URL, and names that lead nowhere: they are no internal hosts."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest

from cdxmill.storage.reach import literal_address, resolves_inside


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("1.2.3.4.5", None),
        ("1.2.3.256", None),
        ("4294967296", None),
        ("0x1ffffffff", None),
        ("0xA9FEA9FE", "169.254.169.254"),
    ],
)
def test_old_ways_to_write_an_address_count_and_no_others(host: str, address: str | None) -> None:
    assert literal_address(f"http://{host}/a") == address


def test_a_name_that_cannot_be_resolved_is_not_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*given: object, **more: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert resolves_inside("localhost")
    assert not resolves_inside("a" * 300)  # no name at all: a UnicodeError
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert not resolves_inside("localhost")
