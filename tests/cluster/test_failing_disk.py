"""A disk that fails is no missing file: what decides how a run goes on is read, or the run stops."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.cluster.manifest_file import manifest_beside, staged_manifest
from cdxmill.cluster.split_files import stored_splits
from cdxmill.cluster.write import fault_of, kept_shards, read_record
from cdxmill.commands.collections import other_clusters
from cdxmill.commands.exporting.listed_files import files_listed
from cdxmill.errors import OutageError, StoppedError
from cdxmill.storage.location import Location
from cdxmill.storage.reading import bytes_if_any, look, open_unchanged

READS: list[Callable[[Location], object]] = [
    read_record,
    kept_shards,
    manifest_beside,
    staged_manifest,
    fault_of,
    files_listed,
    lambda place: stored_splits(place / "splits.txt"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Location:
    """A cluster of one line, and with each file that a command may find there."""
    (tmp_path / "a.cdxj").write_text('com,a)/ 20200101000000 {"url": "http://a.com/"}\n')
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "c", shards=1)
    for name in (".kept.json", "_cdxmill/export.json", ".change/cluster.json"):
        (tmp_path / "c" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "c" / name).write_text("{}")
    return Location(str(tmp_path / "c"))


@pytest.mark.parametrize("read", READS)
def test_a_disk_that_fails_is_an_outage(
    read: Callable[[Location], object], cluster: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(cluster)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(OutageError, match="Input/output error"):
        read(cluster)


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert bytes_if_any(Location(str(tmp_path / "absent"))) is None
    assert bytes_if_any(Location(str(tmp_path))) is None


def test_a_disk_that_does_not_tell_the_size_of_a_file_is_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    place = Location(str(tmp_path / "file"))

    def fail(*_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", fail)
        with pytest.raises(OutageError):
            look(place, 0)
    with pytest.raises(OutageError), open_unchanged(place):
        monkeypatch.setattr(os, "stat", fail)  # it is asked again at the end


def test_merge_does_not_take_a_shard_for_corrupt_that_cannot_be_read(
    cluster: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(place: Location) -> str:
        raise OutageError(place.text, "cannot be read (Input/output error)", "")

    monkeypatch.setattr(other_clusters, "sha256_of", fail)
    with pytest.raises((OutageError, StoppedError), match="Input/output error"):
        cdxmill.merge(str(cluster), output=tmp_path / "m")
    assert not (tmp_path / "m/cluster.json").exists()


def test_a_directory_that_the_disk_does_not_show_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It would be listed in failures.tsv, and stay there: no archive has its name."""
    (tmp_path / "in").mkdir()
    real = os.stat

    def fail(path: Any, **more: Any) -> os.stat_result:
        if str(path).endswith("/in"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, **more)

    monkeypatch.setattr(os, "stat", fail)
    assert main(["index", "-q", "-o", str(tmp_path / "out"), str(tmp_path / "in")]) == 3
    assert f"{tmp_path}/in: cannot be read (Input/output error)" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()
