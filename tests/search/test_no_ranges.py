"""Lookups of many URLs from a server without ranges: the threads that read ahead share the downloaded shards."""

from __future__ import annotations

import random
import sys

import pytest

from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup_many
from cdxmill.stages.zipnum import find_lines

from .conftest import HOSTS, PAGES, Remote, line_of


@pytest.mark.parametrize("run", range(5))
def test_many_urls_are_answered_by_a_server_without_ranges(
    run: int, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_lines, "JOINED", 1)  # one read per block
    monkeypatch.setattr(
        "cdxmill.storage.web.connections._BODY_PIECE", 64
    )  # so that a download lasts longer than one read
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for file in remote.server.files.values():
        file.knows_ranges = False
    pages = [(host, page) for host in HOSTS for page in range(PAGES)]
    random.Random(run).shuffle(pages)
    urls = [f"http://{host}/page/{page:04d}" for host, page in pages]
    answers = lookup_many(remote.url, urls, Query(match_type="exact"))
    try:
        found = [[line for lines in answer.lists for line in lines] for answer in answers]
    finally:
        sys.setswitchinterval(before)
    assert found == [[line_of(*page), line_of(*page, 2)] for page in pages]
