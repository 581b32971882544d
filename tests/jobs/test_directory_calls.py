"""jobs/launcher/hadoop_directory.py: which calls of a storage each of its functions makes, and what it does with their errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.errors import CdxmillError, InputError, StoppedError, UsageError
from cdxmill.storage.walk import Listing


@pytest.mark.parametrize(
    ("url", "made"), [("s3://b/c/", ["s3://b/c"]), ("gs://b/c", ["gs://b/c"]), ("file:///c", [])]
)
def test_only_a_directory_of_the_command_is_made(
    url: str, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    called: list[str] = []
    monkeypatch.setattr(hadoop_directory, "hadoop_fs", SimpleNamespace(make=called.append))
    hadoop_directory.RemoteDirectory(url, by_hadoop=True).make()
    assert called == made


@pytest.mark.parametrize("error", [None, StoppedError("it is full")])
def test_a_directory_is_made_and_gets_a_byte_to_try_it(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    done: list[object] = []

    class Place:
        def __init__(self, url: str) -> None:
            done.append(url)

        @contextmanager
        def write_atomic(self) -> Iterator[BytesIO]:
            file = BytesIO()
            yield file
            done.append(file.getvalue())
            if error is not None:
                raise error

        def remove_tree(self) -> None:
            done.append("removed")

    fake = SimpleNamespace(make=lambda url: done.append(f"made {url}"))
    monkeypatch.setattr(hadoop_directory, "hadoop_fs", fake)
    monkeypatch.setattr(hadoop_directory, "_ByHadoop", Place)
    directory = hadoop_directory.RemoteDirectory("s3://b/c", by_hadoop=True)
    if error is None:
        directory.check_writable()
    else:
        with pytest.raises(StoppedError, match=r"^s3://b/c: no file can be written there: it is full$"):
            directory.check_writable()
    wanted = ["made s3://b/c", f"s3://b/c/.cdxmill-{os.getpid()}.probe", b"\n", "removed"]
    assert done == wanted[: 4 if error is None else 3]


@pytest.mark.parametrize("step", ["check_writable", "entries"])
@pytest.mark.parametrize("error", [None, UsageError("no keys"), InputError("s3://b", "refused")])
def test_a_directory_is_reached_if_it_can_be_written_and_listed(
    step: str, error: CdxmillError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    def call() -> None:
        if error is not None:
            raise error

    calls: dict[str, Callable[[], object]] = {"check_writable": list, "entries": list, step: call}
    monkeypatch.setattr(hadoop_directory, "locate", lambda _: SimpleNamespace(**calls))
    assert hadoop_directory.is_reached("s3://b") is (error is None)


def test_the_sizes_of_files_are_those_of_the_pattern_or_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    for name, size in (("a1", 5), ("a[1]", 3), ("below/b", 7)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    sizes = hadoop_directory._sized_files
    at = tmp_path.as_posix()
    assert sizes(f"{at}/a[1]") == {f"{at}/a1": 5}
    assert sizes(f"{at}/below") == sizes(f"{at}/below/b") == {f"{at}/below/b": 7}
    gone = Listing([f"{at}/a1", f"{at}/gone"])
    monkeypatch.setattr(hadoop_directory, "files_below", lambda _: gone)
    assert sizes(at) == {f"{at}/a1": 5}, "a file may be deleted after it was listed"
    failed = Listing([f"{at}/a1"], errors=[InputError(f"{at}/closed", "cannot be listed")])
    monkeypatch.setattr(hadoop_directory, "files_below", lambda _: failed)
    with pytest.raises(InputError, match="closed: cannot be listed"):
        sizes(at)


@pytest.mark.parametrize("jar", ["/x/hadoop-streaming-3.4.2.jar", None])
def test_only_the_hadoop_runner_gets_another_file_system(
    jar: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_directory

    used: list[list[str]] = []
    monkeypatch.setattr(hadoop_directory, "use_command", used.append)

    def runner(alias: str) -> Any:
        return SimpleNamespace(
            alias=alias,
            fs=SimpleNamespace(hadoop=None),
            get_hadoop_bin=lambda: ["/x/hadoop"],
            get_hadoop_streaming_jar=lambda: jar,
        )

    emr, hadoop = runner("emr"), runner("hadoop")
    hadoop_directory.use_storage(emr)
    assert (emr.fs.hadoop, used) == (None, [])
    hadoop_directory.use_storage(hadoop)
    assert used == [["/x/hadoop"]]
    assert isinstance(hadoop.fs.hadoop, hadoop_directory.StorageFilesystem)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://b/odd", {"s3://b/odd": 3}),
        ("s3://b/*", {"s3://b/*.cdx": 1, "s3://b/a.cdx": 2}),
        ("s3://b/*.cdx", {"s3://b/*.cdx": 1, "s3://b/a.cdx": 2}),
    ],
)
def test_a_pattern_is_one_although_a_file_has_its_name_and_unfinished_work_is_no_input(
    url: str, found: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.jobs.launcher import hadoop_inputs

    sizes = {
        "s3://b/*.cdx": 1,
        "s3://b/a.cdx": 2,
        "s3://b/odd": 3,
        "s3://b/notes": 4,
        "s3://b/.work/c.cdx": 5,
    }
    place = SimpleNamespace(files=lambda: sizes)
    monkeypatch.setattr(hadoop_inputs, "directory_of", lambda *_: place)
    runner: Any = None
    assert hadoop_inputs.cdx_inputs([url], runner) == found
