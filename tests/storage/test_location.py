"""A path or URL and its storage."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Event, current_thread, main_thread
from threading import enumerate as enumerate_threads
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.errors import InputError, UsageError
from cdxmill.storage import location
from cdxmill.storage.location import Location, ask_all, locate, total_size
from cdxmill.storage.reach import LedUrl, Reach, reach_of

from .range_server import RangeServer


def bucket_of(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client that can write to the bucket `choose`."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="choose")
    return client


def read(path: str) -> bytes:
    with locate(path).open_ranges() as read_at:
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


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file://elsewhere/a.warc", "is not a local file; use file:///PATH"),
        ("file://", "is not a local file; use file:///PATH"),
        ("ftp:///a.warc", "ftp:// is not supported; use a path, or a file, http, https, s3 or hdfs URL"),
    ],
)
def test_what_cannot_be_read_is_an_input_error(url: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        locate(url).open_ranges()
    assert str(caught.value) == f"{url}: {told}"
    assert locate(url).size() == 0


def test_the_total_size_is_not_told_where_it_would_take_requests(server: RangeServer, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    local = [str(tmp_path / "a"), (tmp_path / "a").as_uri()]
    assert total_size(map(locate, local)) == 10
    assert total_size(map(locate, [*local, f"{server.url}/a"])) == 0
    assert server.seen == []


@pytest.mark.parametrize("url", ["http://host/out", "HTTPS://host/out", "ftp://host/out"])
def test_nothing_is_written_to_web_servers(url: str) -> None:
    for verb in (Location.write_atomic, Location.entries, Location.remove):
        with pytest.raises(UsageError) as caught:
            verb(locate(url))
        assert str(caught.value).startswith(
            f"{url}: {url.partition(':')[0].lower()}:// cannot be written or listed"
        )


def test_two_machines_at_one_file_of_a_shared_directory_do_not_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.cdx.gz")
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1_0001_m_000000_0")
    with locate(path).write_atomic() as one:
        monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1_0001_m_000000_1")
        with locate(path).write_atomic() as other:
            one.write(b"1" * 100)
            other.write(b"2" * 50)
    assert locate(path).read_bytes() == b"1" * 100
    assert list(locate(tmp_path).entries()) == ["a.cdx.gz"]


def test_a_directory_that_cannot_be_looked_into_is_an_input_error(tmp_path: Path) -> None:
    assert locate(tmp_path / "absent").entries() == {}
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match="cannot be read"):
        locate(loop).entries()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://b/c", "s3a://b/c/", True),
        ("s3://b/c", "s3://b/d", False),
        ("s3://b/c", "hdfs:///c", False),
        ("s3://b/c", "/c", False),
        ("/a/../c", "file:///c", True),
        ("hdfs://h:1/c", "hdfs://h:1/c/", True),
        ("hdfs://h:1/c", "hdfs://other/c", False),
        ("hdfs://h:1/c", "hdfs:///c", True),
    ],
)  # fmt: skip
def test_locations_are_compared_in_any_spelling(
    one: str, other: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("fs_defaultFS", "hdfs://h:1")
    assert locate(one).is_same(locate(other)) is locate(other).is_same(locate(one)) is same


def test_missing_libraries_are_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    for place in ("a.warc", "https://host/a.warc"):
        locate(place).require()
    with pytest.raises(UsageError, match=r"pip install './cdxmill\[s3\]'"):
        locate("s3a://bucket/a.warc").require()


def test_reading_files_loads_no_library_for_servers(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    program = (
        "import sys; from cdxmill.storage.location import locate\n"
        "with locate(sys.argv[1]).open_ranges() as read_at: read_at(0, 1)\n"
        "print([name for name in ('urllib3', 'boto3', 'http.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize("error", [InputError("a", "cannot be read"), KeyboardInterrupt()])
def test_after_an_error_other_requests_are_neither_waited_for_nor_sent(error: BaseException) -> None:
    released, asked, late, before = Event(), [], [], enumerate_threads()

    def ask(path: str) -> str:
        asked.append(path)
        if path.endswith("/1"):
            raise error
        if not path.endswith("/0") and not released.wait(60):
            late.append(path)
        return path

    with pytest.raises(type(error)):
        ask_all(ask, [f"http://host/{number}" for number in range(100)])
    released.set()
    for thread in enumerate_threads():
        if "ThreadPoolExecutor" in thread.name and thread not in before:
            thread.join(60)
    assert late == []
    assert len(asked) <= 1 + 1 + 16


def test_a_file_that_is_too_large_to_be_a_small_one_is_refused(
    server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "SMALL", 5 << 20)
    server.add("/cluster.json", bytes(9 << 20)).surplus = bytes(1 << 20)
    with pytest.raises(InputError, match="has more than 5 MiB, where a small file is expected"):
        locate(server.url + "/cluster.json").read_bytes()
    assert len(server.seen) == 3, "the first byte, and two pieces of 4 MiB"


def test_an_output_that_cannot_be_asked_for_is_not_taken_as_absent(
    server: RangeServer, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    server.add("/bucket/a.cdx.gz", b"lines").statuses = [503] * 99
    with pytest.raises(InputError, match=r"did not answer \(503\) after 8 tries"):
        locate("s3://bucket/a.cdx.gz").stamped()


@pytest.mark.parametrize(
    "text", ["a/b.warc", "file:///a%20b", "s3://bucket/a", "https://host/x.wacz/archive/a.warc"]
)
def test_a_location_is_a_value(text: str) -> None:
    place = locate(text)
    place.reads  # noqa: B018 - what it has found out is not sent
    assert pickle.loads(pickle.dumps(place)) == place == locate(place) == Location(text)
    assert hash(place) == hash(Location(text))
    assert str(place) == text
    assert place != locate(text + "x")


def test_a_location_keeps_the_reach_of_its_url() -> None:
    place = pickle.loads(pickle.dumps(locate(LedUrl("http://host/a", Reach.PUBLIC))))
    assert reach_of(place.text) == Reach.PUBLIC


@pytest.mark.parametrize("name", ["a.warc", "/a.warc", "/x/a.warc", "x/a.warc", "s3://bucket/x/a.warc"])
def test_names_beside_a_file(name: str) -> None:
    place = locate(name)
    assert str(place.with_name("b")) == name.replace("a.warc", "b")
    assert str(place.parent / place.name) in (name, f"./{name}")


def test_a_location_in_a_wacz_is_stored_in_it(tmp_path: Path) -> None:
    (tmp_path / "a b.wacz").touch()
    (tmp_path / "d.wacz").mkdir()
    wacz, inside = str(tmp_path / "a b.wacz"), "archive/a.warc.gz"
    assert locate(f"{wacz}/{inside}").stored_in == locate(wacz)
    assert locate(f"file://{tmp_path}/a%20b.wacz/{inside}").stored_in == locate(wacz)
    assert locate(f"s3://b/x.wacz/{inside}").stored_in == locate("s3://b/x.wacz")
    assert locate(f"http://h/x.wacz/{inside}?q=1").stored_in == locate("http://h/x.wacz?q=1")
    for place in (locate(wacz), locate(tmp_path / "d.wacz" / inside), locate("http://h/x.wacz")):
        assert place.stored_in is place


@pytest.mark.parametrize("size", [0, 9, 10, 11, 20, 25])
def test_a_file_is_read_in_pieces_up_to_one_that_is_not_full(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "_FILE_PIECE", 10)
    body, asked = bytes(range(size)), list[int]()

    def read_at(offset: int, wanted: int) -> bytes:
        asked.append(offset)
        return body[offset : offset + wanted]

    assert b"".join(location.pieces(read_at)) == body
    assert asked == list(range(0, size + 1, 10)), "no request more"


def test_a_small_file_has_at_most_the_size_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "SMALL", 10)
    place = locate(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"0123456789")
    assert place.read_bytes() == b"0123456789"
    (tmp_path / "a").write_bytes(b"0123456789x")
    with pytest.raises(InputError, match="where a small file is expected"):
        place.read_bytes()


@pytest.mark.parametrize(
    ("content", "replace", "told"),
    [
        (None, False, ""),
        (b"", False, ""),
        (b"x", True, ""),
        (b"x", False, "already exists; use --replace to replace it, or choose another output file"),
        ("directory", True, "is a directory; choose another output file"),
    ],
    ids=["absent", "empty", "replaced", "exists", "directory"],
)
def test_an_output_with_content_is_replaced_only_if_the_user_says_so(
    content: bytes | str | None, replace: bool, told: str, tmp_path: Path
) -> None:
    place = locate(tmp_path / "a")
    if isinstance(content, str):
        (tmp_path / "a").mkdir()
    elif content is not None:
        (tmp_path / "a").write_bytes(content)
    if told:
        with pytest.raises(UsageError) as caught:
            place.check_absent(replace=replace)
        assert str(caught.value) == f"{place}: {told}"
    else:
        place.check_absent(replace=replace)


def test_what_is_asked_for_may_be_nothing() -> None:
    for is_remote in (True, False, None):
        assert ask_all(lambda place: pytest.fail(str(place)), [], is_remote) == []


@pytest.mark.parametrize(
    ("places", "is_remote", "together"),
    [
        (["s3://b/0", "s3://b/1", "/2", "/3"], None, True),
        (["0", "1", "2", "3"], True, True),
        (["0", "1", "2", "3"], None, False),
        (["s3://b/0", "1", "2", "3"], False, False),
    ],
)
def test_requests_are_sent_together_if_one_of_them_is_remote(
    places: list[str], is_remote: bool | None, together: bool
) -> None:
    """The first is sent alone, so that a client is made once."""
    meeting = Barrier(3)

    def ask(place: str) -> str:
        if together and place != places[0]:
            meeting.wait(20)
        assert together or current_thread() is main_thread()
        return place.upper()

    assert ask_all(ask, places, is_remote) == [place.upper() for place in places]


def test_directories_are_joined_and_exchanged_where_they_are() -> None:
    assert str(locate("a:") / "b") == "a:/b"
    assert locate("s3://b/one").exchange(locate("s3://b/other")) is False
    assert locate("hdfs:///one").exchange(locate("hdfs:///other")) is False
