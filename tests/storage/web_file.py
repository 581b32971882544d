"""The file that the tests of web servers read, and how."""

from __future__ import annotations

import random

import pytest

from cdxmill.errors import InputError
from cdxmill.storage.web.http import open_ranges

BODY = random.Random(4).randbytes(1 << 20)
STEP = 1 << 18
A = "/crawl/a.warc.gz"


def read_all(url: str, step: int = STEP) -> bytes:
    data = b""
    with open_ranges(url) as read_at:
        while more := read_at(len(data), step):
            data += more
    return data


def error_of(url: str) -> str:
    with pytest.raises(InputError) as caught:
        read_all(url)
    assert caught.value.path == url
    return str(caught.value).removeprefix(f"{url}: ")
