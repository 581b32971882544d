"""Split points are written as text and as a SequenceFile; the name given is that of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cluster.split_files import read_splits, write_splits


@pytest.mark.parametrize(
    ("named", "kind", "text", "sequence"),
    [
        ("x.txt", ".seq", "x.txt", "x.seq"),
        ("x.seq", ".txt", "x.txt", "x.seq"),
        ("x", ".txt", "x", "x.seq"),
        ("x", ".seq", "x.txt", "x"),
        ("x.2026", ".txt", "x.2026", "x.seq"),
        ("x.2026", ".seq", "x.txt", "x.2026"),
    ],
)
def test_the_name_is_that_of_one_kind_and_the_other_is_beside_it(
    named: str, kind: str, text: str, sequence: str, tmp_path: Path
) -> None:
    write_splits([b"com,a)/ 2020"], tmp_path / named, kind)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([text, sequence])
    assert (tmp_path / text).read_bytes() == b"com,a)/ 2020\n"
    assert (tmp_path / sequence).read_bytes().startswith(b"SEQ")
    assert read_splits(tmp_path / sequence) == [b"com,a)/ 2020"]
