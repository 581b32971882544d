"""A prefix B-tree that is opened once: its pointers are those of its items, and a closed one gives nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import UsageError
from tests.material.open_files import open_files

LINE = 'com,example)/%s 2020010100000%d {"url": "http://example.com/%s", "filename": "%s.warc.gz", "offset": "%d", "length": "9"}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    captures = [
        ("a", 0, "a", "x", 5),
        ("a", 1, "a", "y", 7),
        ("ab", 0, "ab", "x", 50),
        ("b", 3, "b", "x", 70),
    ]
    (tmp_path / "a.cdxj").write_text("".join(LINE % one for one in captures))
    cdxmill.build_prefix_index(tmp_path / "a.cdxj", output=tmp_path / "new/t")
    return tmp_path / "new/t"


def test_the_pointers_of_a_key_are_those_of_its_items_alone(tree: Path) -> None:
    with cdxmill.PrefixIndex(tree) as index:
        items = list(index.items("http://example.com/*"))
        keys = [key for key, _ in items]
        assert len(items) == 4
        found = [len(index.pointers(key)) for key in dict.fromkeys(keys)]
        assert found == [keys.count(key) for key in dict.fromkeys(keys)]
        assert index.pointers(keys[0][:-1]) == index.pointers(keys[-1] + b"x") == []
        offsets = [fields["offset"] for _, fields in items]
        assert sorted(map(int, offsets)) == [5, 7, 50, 70]
        assert {index.archive(int(fields["archive"])) for _, fields in items if "archive" in fields} <= {
            "x.warc.gz",
            "y.warc.gz",
        }


def test_a_wrong_question_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match="invalid layout 'x': expected classic, capture, or"):
        cdxmill.PrefixIndex(tree, layout="x")
    for keys, match_type, reason in (
        ("host", None, "invalid kind of keys 'host': expected one of surt, reversed, plain"),
        ("plain", "domain", "match type domain needs other keys; use exact or prefix"),
        ("reversed", "range", "match type range needs other keys; use exact or prefix"),
        ("surt", "suffix", "invalid match type 'suffix': expected one of exact, prefix"),
    ):
        with cdxmill.PrefixIndex(tree, keys=keys) as index, pytest.raises(UsageError, match=reason):
            list(index.lines("http://example.com/", match_type))


def test_a_closed_index_gives_nothing(tree: Path) -> None:
    index = cdxmill.PrefixIndex(tree)
    answers = (index.items("http://example.com/*"), index.lines("http://example.com/*"))
    begun = index.lines("http://example.com/*")
    next(answers[0])
    next(begun)
    assert set(open_files(tree.parent)) == {"t"}
    index.close()
    assert open_files(tree.parent) == []
    with pytest.raises(UsageError, match="was closed"):
        index.pointers(b"com,example)/a")
    with pytest.raises(UsageError, match="was closed"):
        next(begun)
    for answer in answers:
        with pytest.raises((UsageError, ValueError)):
            list(answer)


def test_the_file_is_closed_at_the_end_of_with(tree: Path) -> None:
    with cdxmill.PrefixIndex(tree) as index:
        assert set(open_files(tree.parent)) == {"t"}
    assert open_files(tree.parent) == []
    with pytest.raises(UsageError, match="was closed"):
        index.pointers(b"com,example)/a")


def test_an_input_that_cannot_be_read_is_returned_and_not_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "a.cdxj").write_text(LINE % ("a", 0, "a", "x", 5))
    (inputs / "b.cdxj").symlink_to("gone.cdxj")
    result = cdxmill.build_prefix_index(inputs, output=tmp_path / "t")
    assert (result.items, [one.path for one in result.failures]) == (1, [str(inputs / "b.cdxj")])
    assert capfd.readouterr() == ("", "")
