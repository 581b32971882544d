"""A cluster that stays open: others may change it, and its files are closed after the last answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.options.queries import Query
from cdxmill.search.kept import KeptCluster
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery

from ..material.cdx_files import write_plain
from ..material.open_files import open_files

OLD, NEW = b"com,a)/ 2020 {}", b"com,b)/ 2021 {}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_plain(tmp_path / "a.cdxj", [OLD])


def lines_of(cluster: OpenCluster) -> list[bytes]:
    prepared = PreparedQuery(Query())
    return [line for lines in prepared.answer(cluster, prepared.keys("*")) for line in lines]


def replace(path: Path) -> None:
    """As another run does: a file with another name, renamed."""
    write_plain(path.with_suffix(".new"), [NEW, NEW]).replace(path)


def test_an_old_file_is_read_until_its_last_answer_has_ended(path: Path) -> None:
    kept = KeptCluster(str(path))
    kept._held.reader._origin._until = 0  # type: ignore[union-attr] # it may be opened again at once
    first, second = kept.take(), kept.take()
    assert (first, first.answers) == (second, 2)
    replace(path)
    assert kept.has_to_open
    with kept.opened() as cluster:
        assert lines_of(cluster) == [NEW]
    assert not kept.has_to_open
    names = open_files(path.parent)
    assert len(names) == 2, "the old file and the new one"
    kept.give_back(first)
    assert lines_of(OpenCluster.of(second.reader)) == [OLD]
    assert open_files(path.parent) == names
    kept.give_back(second)
    assert len(open_files(path.parent)) == 1
    kept.close()
    assert open_files(path.parent) == []


def test_an_answer_that_fails_is_given_back(path: Path) -> None:
    kept = KeptCluster(str(path))
    with pytest.raises(KeyError), kept.opened():
        raise KeyError
    held = kept.take()
    assert held.answers == 1
    kept.give_back(held)
    assert len(open_files(path.parent)) == 1
    kept.close()
    assert open_files(path.parent) == [], "though its reader is known here"


def test_what_was_closed_can_be_asked_nothing_more(path: Path, directory: Path) -> None:
    for name, has_version in ((path, False), (directory, True)):
        kept = KeptCluster(str(name))
        kept.check_open()
        assert (kept.version() is not None) == has_version
        assert kept.version() == kept.version()
        assert not kept.has_to_open
        kept.close()
        kept.close()
        assert not kept.has_to_open
        for ask in (kept.check_open, kept.take, kept.version):
            with pytest.raises(UsageError, match="the cluster was closed"):
                ask()
