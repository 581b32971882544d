"""Which storage a path or URL belongs to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.storage.choose import check_libraries, file_size, is_newer, open_ranges, total_size

from .range_server import RangeServer


def read(path: str) -> bytes:
    with open_ranges(path) as read_at:
        return read_at(0, 100)


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_schemes_are_known_in_any_case(server: RangeServer, scheme: str) -> None:
    server.add("/a", b"content")
    assert read(server.url.replace("http", scheme) + "/a") == b"content"


@pytest.mark.parametrize("start", ["file://", "FILE://", "file://localhost"])
def test_file_urls_name_files_of_this_machine(tmp_path: Path, start: str) -> None:
    (tmp_path / "a b?c#d.warc").write_bytes(b"content")
    assert read(f"{start}{tmp_path}/a%20b%3Fc#d.warc") == b"content"


def test_file_names_of_any_bytes_are_read(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xfc.warc")
    (tmp_path / name).write_bytes(b"content")
    assert read(str(tmp_path / name)) == read(f"file://{tmp_path}/a%FC.warc") == b"content"


@pytest.mark.parametrize("url", ["file://elsewhere/a.warc", "file://", "ftp://host/a.warc", "hdfs:///a.warc"])
def test_what_cannot_be_read_is_an_input_error(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_ranges(url)
    assert caught.value.path == url
    assert caught.value.hint
    assert file_size(url) == 0
    assert not is_newer(Path("/dev/null"), url) or not url.startswith("file:")


def test_the_total_size_is_not_told_where_it_would_take_requests(server: RangeServer, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    local = [str(tmp_path / "a"), (tmp_path / "a").as_uri()]
    assert total_size(local) == 10
    assert total_size([*local, f"{server.url}/a"]) == 0
    assert server.seen == []


def test_an_output_of_a_url_is_finished_where_it_stands(server: RangeServer, tmp_path: Path) -> None:
    output = tmp_path / "a.cdx.gz"
    assert not is_newer(output, f"{server.url}/a.warc.gz")
    output.write_bytes(b"")
    assert is_newer(output, f"{server.url}/a.warc.gz")
    assert is_newer(output, "s3://bucket/a.warc.gz")
    assert server.seen == []


def test_an_output_of_a_file_is_finished_where_it_is_newer(tmp_path: Path) -> None:
    output, archive = tmp_path / "a.cdx.gz", tmp_path / "a.warc.gz"
    for path, second in ((output, 5), (archive, 6)):
        path.write_bytes(b"")
        os.utime(path, (second, second))
    assert not is_newer(output, archive.as_uri())
    os.utime(output, (7, 7))
    assert is_newer(output, archive.as_uri())


def test_missing_libraries_are_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    check_libraries(["a.warc", "https://host/a.warc"])
    with pytest.raises(UsageError, match=r"pip install 'cdxmill\[s3\]'"):
        check_libraries(["a.warc", "s3a://bucket/a.warc"])


def test_reading_files_loads_no_library_for_servers(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    program = (
        "import sys; from cdxmill.storage.choose import open_ranges\n"
        "with open_ranges(sys.argv[1]) as read_at: read_at(0, 1)\n"
        "print([name for name in ('urllib3', 'boto3', 'http.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
