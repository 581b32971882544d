"""The names of archives in a prefix index, in groups, and groups that are corrupt."""

from __future__ import annotations

import gzip

import pytest

from cdxmill.formats.tree.name_groups import GROUP, pack_names, unpack_names


@pytest.mark.parametrize("count", [0, 1, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP])
def test_names_are_in_groups_and_come_back_by_their_number(count: int) -> None:
    names = [b"crawl/%d\xff.warc.gz" % number for number in range(count)]
    groups = pack_names(names)
    assert len(groups) == -(-count // GROUP)
    for number, name in enumerate(names):
        found = unpack_names(groups[number // GROUP])
        assert found[number % GROUP].encode("utf-8", "surrogateescape") == name
        if number % GROUP > 2:
            break
    sizes = [len(unpack_names(group)) for group in groups]
    assert sum(sizes) == count
    assert max(sizes, default=0) <= GROUP
    assert groups == pack_names(names)


def test_a_group_may_have_any_of_the_names_that_a_file_has() -> None:
    names = ["x" * 1000, "", "\udcff"]
    assert unpack_names(pack_names([name.encode("utf-8", "surrogateescape") for name in names])[0]) == names


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "corrupt"),
        (b"garbage", "corrupt"),
        (gzip.compress(b"a\n")[:-1], "corrupt"),
        (gzip.compress(b"a\n") + b"x", "corrupt"),
        (gzip.compress(b"a\n") * 2, "corrupt"),
        (gzip.compress(b"a\n" * (GROUP + 1)), "more than 1024 in a group"),
        (gzip.compress(b"a\n" * GROUP + b"b"), "more than 1024 in a group"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_corrupt_group_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"the names of archives are corrupt.*{reason}|{reason}$"):
        unpack_names(data)
