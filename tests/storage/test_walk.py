"""Globs find what Python's `glob` finds, on each storage; what cannot be read is reported once."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.storage.walk import files_below, files_like

from .name_node import name_node

NAMES = [
    *("a.gz", "b.gz", "c.txt", ".hidden.gz", "in/a.gz", "in/[x].gz", "in/.h/a.gz", "in/b/a.gz", "in/b/.x"),
    *("in/b/deep/c.gz", "in/b/deep/deep/c.gz", "in/deep/a.gz", "in/deep/b/c.gz", "inner/a.gz", "x/in/b/a.gz"),
]
PATTERNS = [
    *("*", "*.gz", "?.gz", "[ab].gz", "in/*", "in/a.gz", "in/absent", "absent/*", "a.gz/*", "in*/a.gz"),
    *("in/[[]x].gz", "in/*/a.gz", "*/*/*", "in/b/*/c.gz", "in/.h/*", "in/.*", "in/.*/*.gz", ".*", "i[!x]/*"),
    *("**", "**/*.gz", "**/a.gz", "in/**", "in/**/c.gz", "in/**/deep/c.gz", "in/**/**/c.gz", "**/b/*.gz"),
    *("**/b/**/c.gz", "in/b/**/*", "*/**/deep/*", "in/**/.x", "in//b//*.gz", "**/in/*/a.gz", "x/**/in/**"),
]


def expected(pattern: str, *, hidden: bool) -> list[str]:
    """The files that match, as Python finds them in the current directory."""
    found = glob.glob(pattern, recursive=True, include_hidden=hidden)  # noqa: PTH207 - Path.glob differs
    return sorted({os.path.normpath(path) for path in found if Path(path).is_file()})


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with NAMES."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("start", ["", "./", "absolute"])
def test_globs_of_this_machine_match_as_those_of_python(start: str, tree: Path) -> None:
    above = f"{tree}/" if start == "absolute" else start
    for pattern in PATTERNS:
        listing = files_like(above + pattern)
        found = [os.path.relpath(path) for path in listing.files]
        assert (pattern, sorted(found)) == (pattern, expected(pattern, hidden=False))
        assert (listing.links, listing.errors) == ([], [])
        assert all(path.startswith(above or path[:1]) for path in listing.files)


def test_directories_that_match_a_glob_are_reported(tree: Path) -> None:
    assert sorted(files_like("in/*").others) == [("in/b", "directory"), ("in/deep", "directory")]
    assert files_like("in/b").others == [("in/b", "directory")]
    assert (f"/{tree.parts[1]}", "directory") in files_like(f"/{tree.parts[1]}*").others
    assert sorted(files_below("in").files) == sorted(name for name in NAMES if name.startswith("in/"))
    assert files_below("in").others == []


@pytest.fixture
def put_on_s3(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="globs")
    return lambda name: client.put_object(Bucket="globs", Key=name, Body=b"" if "c.gz" in name else b"x")


@pytest.fixture
def put_on_hdfs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield lambda name: running.put(f"/{name}", b"x")


@pytest.mark.parametrize(("storage", "top"), [("s3", "s3://globs/"), ("hdfs", "hdfs:///")])
def test_globs_of_other_storages_match_hidden_files_too(
    storage: str, top: str, tree: Path, request: pytest.FixtureRequest
) -> None:
    put = request.getfixturevalue(f"put_on_{storage}")
    for name in NAMES:
        put(name)
    for pattern in PATTERNS:
        if "//" in pattern:  # a key of S3 may have an empty step
            continue
        found = [url.removeprefix(top) for url in files_like(top + pattern).files]
        assert (pattern, sorted(found)) == (pattern, expected(pattern, hidden=True))
    assert sorted(files_below(f"{top}in").files) == sorted(
        top + name for name in NAMES if name.startswith("in/")
    )


def test_an_object_with_content_is_a_file_whatever_its_name_is(put_on_s3: Callable[[str], None]) -> None:
    put_on_s3("odd/content/")
    put_on_s3("odd/c.gz/")
    assert files_below("s3://globs/odd").files == files_like("s3://globs/odd/**").files
    assert files_below("s3://globs/odd").files == ["s3://globs/odd/content/"]


def test_a_file_is_found_once_though_a_link_leads_to_the_current_directory(tree: Path) -> None:
    before = expected("**/*.gz", hidden=False)
    (tree / "in/top").symlink_to("..")
    assert sorted(files_like("**/*.gz").files) == before


def test_what_cannot_be_read_is_reported_once(tree: Path) -> None:
    (tree / "in/deep/b/gone").symlink_to("nowhere")
    (error,) = files_like("in/**/*e*/**/g*").errors
    assert str(error) == "in/deep/b/gone: is a broken symbolic link; check what it points to"


def test_a_directory_that_may_not_be_entered_is_no_empty_one(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != "in" and access(path, mode))
    assert files_like("absent/*").errors == []
    (error,) = files_like("in/absent/*").errors
    assert str(error) == "in/absent: cannot be read (No such file or directory); check the path"
