"""HDFS by WebHDFS: from a name node that fails as it is told. tests/hadoop reads and writes a real one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from io import BytesIO

import pytest

from cdxmill.errors import AbsentError, InputError, OutageError, StoppedError, UsageError
from cdxmill.storage.cache import open_cached
from cdxmill.storage.hadoop import hdfs, web_hdfs
from cdxmill.storage.location import locate

from .contract import check_storage, check_writing
from .name_node import NameNode, name_node

BODY = random.Random(7).randbytes(1 << 20)
PATH = "/crawl/a.warc.gz"
URL = f"hdfs://namenode:9000{PATH}"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    """A name node that has an archive."""
    with name_node() as running:
        running.put(PATH, BODY)
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running


@pytest.fixture
def other(node: NameNode, monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    """A second name node of the same files; the first is in standby for as long as anybody asks."""
    with name_node() as running:
        running.files = node.files
        node.refusals = [(403, "StandbyException")] * 100
        monkeypatch.setenv("CDXMILL_WEBHDFS", f"{node.address}, {running.address}/")
        yield running


def error_of(url: str) -> str:
    with pytest.raises(InputError) as caught, locate(url).open_ranges() as read_at:
        read_at(0, 100)
    assert caught.value.path == url
    return str(caught.value).removeprefix(f"{url}: ")


def test_hdfs_keeps_the_contract(node: NameNode) -> None:
    def put(name: str, body: bytes) -> str:
        node.put(f"/stored/{name}", body)
        return f"hdfs:///stored/{name}"

    check_storage(put)
    check_writing("hdfs://host:9000/written")


def test_ranges_of_the_asked_size_are_read_as_the_user(
    node: NameNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "archivist")
    with locate(URL).open_ranges() as read_at:
        assert read_at(100, 1000) == BODY[100:1100]
    wanted = {"offset": "100", "length": "1000", "user.name": "archivist"}
    assert node.seen[1:3] == [("OPEN", PATH, wanted), ("data OPEN", PATH, wanted)]


def test_a_user_without_a_name_is_told(node: NameNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_name() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", no_name)
    with pytest.raises(UsageError, match="set HADOOP_USER_NAME"):
        locate(URL).status()


def test_names_are_taken_as_they_are(node: NameNode) -> None:
    name = "/a dir/b+c=ü%41#d?e.warc"
    node.put(name, b"content")
    assert locate(f"hdfs://host{name}").read_bytes() == b"content"
    with locate(f"hdfs://host{name}2").write_atomic() as file:
        file.write(b"written")
    assert node.files[f"{name}2"].body == b"written"


@pytest.mark.parametrize("name", ["StandbyException", "RetriableException", "SafeModeException"])
def test_a_name_node_that_is_not_ready_is_asked_again(node: NameNode, hurry: None, name: str) -> None:
    with locate(URL).open_ranges() as read_at:
        node.refusals = [(403, name)] * 3
        assert read_at(0, 10) == BODY[:10]
    assert node.operations().count("OPEN") == 4


def test_the_other_name_node_is_asked_at_once_and_from_then_on(
    node: NameNode, other: NameNode, slept: list[float]
) -> None:
    assert locate(URL).read_bytes() == BODY
    assert slept == []
    assert len(node.seen) == 1
    with locate("hdfs://namenode:9000/b").write_atomic() as file:
        file.write(b"written")
    assert node.files["/b"].body == b"written"
    assert len(node.seen) == 1


def test_a_name_node_that_is_gone_is_left_for_the_other(
    node: NameNode, other: NameNode, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "http://127.0.0.1:1,http://no-such-host.invalid:9870"
    monkeypatch.setenv("CDXMILL_WEBHDFS", f"{nowhere},{other.address}")
    assert locate(URL).read_bytes() == BODY
    assert slept == []


def test_no_name_node_that_is_active_is_told(node: NameNode, other: NameNode, slept: list[float]) -> None:
    other.refusals = list(node.refusals)
    trouble = f"did not answer (StandbyException: {other.address}) after 8 tries; run it again"
    assert error_of(URL) == trouble
    assert len(slept) == 7


def test_a_name_node_that_is_down_is_told_with_its_address(
    monkeypatch: pytest.MonkeyPatch, slept: list[float], down: str
) -> None:
    monkeypatch.setenv("CDXMILL_WEBHDFS", down)
    assert error_of(URL) == f"did not answer (no connection: {down}) after 8 tries; run it again"
    with pytest.raises(StoppedError, match="did not answer"), locate(URL).write_atomic() as file:
        file.write(b"1")


def test_a_host_that_does_not_exist_is_told_at_once(slept: list[float]) -> None:
    told = error_of("hdfs://no-such-host.invalid:9000/a")
    assert told == (
        "unknown host: http://no-such-host.invalid:9870;"
        " set HADOOP_CONF_DIR, or CDXMILL_WEBHDFS=http://HOST:PORT"
    )
    assert slept == []


@pytest.mark.parametrize("page", [b"<html>", b"[]", b'{"RemoteException": 1}', b""])
def test_what_is_no_name_node_is_told(node: NameNode, page: bytes) -> None:
    node.page = page
    told = f"{node.address} is not a WebHDFS server (404 Not Found); set HADOOP_CONF_DIR, or CDXMILL_WEBHDFS=http://HOST:PORT"
    assert error_of(URL) == told


def test_what_is_refused_is_told_at_once(node: NameNode) -> None:
    node.refusals = [(403, "AccessControlException")]
    told = "refused (403 AccessControlException: AccessControlException of the test); check the access rights"
    assert error_of(URL) == told


def test_a_name_node_does_not_lead_to_a_link_local_address(node: NameNode) -> None:
    node.data_node = "http://169.254.169.254"
    told = "http://169.254.169.254 has the link-local address 169.254.169.254, which is not allowed"
    assert error_of(URL) == told
    with pytest.raises(StoppedError, match="link-local"), locate(URL).write_atomic() as file:
        file.write(b"secret")


def test_a_large_answer_is_an_error(node: NameNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are 256 MiB, and 1 MiB for the text of an error."""
    assert (web_hdfs._LARGEST, web_hdfs._LARGEST_ERROR) == (256 << 20, 1 << 20)
    monkeypatch.setattr(web_hdfs, "_LARGEST", 100)
    assert error_of(URL).startswith("the answer has more than 100 bytes")
    monkeypatch.undo()
    monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)
    monkeypatch.setattr(web_hdfs, "_LARGEST_ERROR", 10)
    node.refusals = [(403, "AccessControlException")]
    assert "AccessControlException" not in error_of(URL)


def test_absent_files_and_directories_are_told(node: NameNode) -> None:
    assert error_of("hdfs:///crawl/none") == "cannot be read (no such file); check the path"
    assert error_of("hdfs:///crawl") == "is a directory; name a file, or a directory with archives"
    assert error_of("hdfs://host") == "the URL has no path; use hdfs://[HOST[:PORT]]/PATH"
    with pytest.raises(AbsentError, match="no such file"), open_cached("hdfs:///crawl/none"):
        pass


def test_a_body_that_is_cut_is_continued(node: NameNode, hurry: None) -> None:
    node.cuts = [100_000, 0, 0]
    with locate(URL).open_ranges() as read_at:
        assert read_at(0, 500_000) == BODY[:500_000]
    offsets = [int(query["offset"]) for op, _, query in node.seen if op == "OPEN"]
    assert offsets[0] == 0
    assert offsets[1] == offsets[2] == offsets[3] > 0, "from where it was cut"


def test_a_data_node_in_trouble_is_asked_again(node: NameNode, hurry: None) -> None:
    with locate(URL).open_ranges() as read_at:
        node.data_refusals = [(500, "RuntimeException"), (503, "IOException")]
        assert read_at(5, 10) == BODY[5:15]


@pytest.mark.parametrize("says_length", [True, False])
def test_bodies_that_bring_nothing_are_given_up(says_length: bool, node: NameNode, hurry: None) -> None:
    node.cuts, node.says_length = [0] * 100, says_length
    assert error_of(URL) == "did not answer (connection lost) after 8 tries; run it again"


def test_a_file_that_changes_while_it_is_read_is_refused(node: NameNode) -> None:
    with (
        pytest.raises(InputError, match="has changed while it was read"),
        locate(URL).open_ranges() as read_at,
    ):
        assert read_at(0, 10) == BODY[:10]
        node.put(PATH, BODY)


def test_a_write_that_fails_on_its_way_is_sent_again_whole(node: NameNode, hurry: None) -> None:
    node.data_refusals = [(503, "IOException"), (500, "RuntimeException")]
    with locate("hdfs:///b").write_atomic() as file:
        file.write(BODY)
    assert node.files["/b"].body == BODY
    assert node.files.keys() == {PATH, "/b"}


def test_a_file_that_was_not_written_completely_is_sent_again(node: NameNode, hurry: None) -> None:
    node.short = [0, len(BODY) - 1]
    with locate("hdfs:///b").write_atomic() as file:
        file.write(BODY)
    assert node.files["/b"].body == BODY
    assert node.operations().count("data CREATE") == 3


def test_a_rename_whose_answer_is_lost_was_done(node: NameNode, hurry: None) -> None:
    node.lost = ["RENAME"]
    with locate("hdfs:///b").write_atomic() as file:
        file.write(BODY)
    assert node.files["/b"].body == BODY
    assert node.operations().count("RENAME") == 2


@pytest.mark.parametrize("at_data_node", [True, False])
def test_a_write_that_is_refused_leaves_nothing(node: NameNode, at_data_node: bool) -> None:
    with pytest.raises(StoppedError) as caught, locate(URL).write_atomic() as file:
        file.write(b"new")
        refusals = node.data_refusals if at_data_node else node.refusals
        refusals.append((403, "DSQuotaExceededException"))
    assert str(caught.value) == (
        f"{URL}: cannot be written: refused (403 DSQuotaExceededException:"
        " DSQuotaExceededException of the test); free space there, or raise the quota"
    )
    assert {path: file.body for path, file in node.files.items()} == {PATH: BODY}


def test_two_that_write_one_file_do_not_meet(node: NameNode) -> None:
    with locate(URL).write_atomic() as one, locate(URL).write_atomic() as other:
        one.write(b"1" * 100)
        other.write(b"2" * 50)
    assert locate(URL).read_bytes() == b"1" * 100
    assert len({path for op, path, _ in node.seen if op == "CREATE"}) == 2
    assert node.files.keys() == {PATH}


def test_clients_are_made_once_for_each_file_system(node: NameNode) -> None:
    for _ in range(3):
        assert locate(URL).status() is not None
    assert hdfs._client.cache_info().misses == 1


def test_a_page_that_wants_a_login_is_a_refusal(node: NameNode) -> None:
    node.page, node.page_status = b"<html>Authentication required", 401
    wants = f"{node.address} wants a login, as with Kerberos (401)"
    assert error_of(URL) == f"{wants}; set HADOOP_CONF_DIR, so that hadoop fs is used"


@pytest.mark.parametrize("page", [b"<html>", b"[]", b"[" * 100_000])
def test_a_server_that_answers_something_else_is_no_name_node(node: NameNode, page: bytes) -> None:
    node.page, node.page_status = page, 200
    told = "the answer is not WebHDFS; "
    with pytest.raises(InputError, match=told):
        locate(URL).status()
    with pytest.raises(StoppedError, match=told), locate(URL).write_atomic() as file:
        file.write(b"x")
    assert node.files[PATH].body == BODY


def test_a_name_that_hdfs_does_not_give_stops_the_run(node: NameNode) -> None:
    node.page, node.page_status = b'{"boolean": false}', 200
    with pytest.raises(StoppedError, match="HDFS does not rename to this name; check the directory"):
        locate(URL).move(locate("hdfs://namenode:9000/other"))


def test_ranges_one_after_the_other_are_read_from_one_answer(node: NameNode, slept: list[float]) -> None:
    node.put("/crawl/long", BODY)
    with locate("hdfs:///crawl/long").open_ranges() as read_at:
        assert [read_at(100 * number, 100) for number in range(9)] == [
            BODY[100 * number : 100 * number + 100] for number in range(9)
        ]
        assert node.operations().count("data OPEN") <= 2
        for offset in (5000, 5100, 0):
            assert read_at(offset, 100) == BODY[offset : offset + 100], "another place is another answer"
        assert read_at(len(BODY) - 50, 100) == BODY[-50:]
    assert slept == []


def test_a_file_with_a_known_content_is_replaced(node: NameNode) -> None:
    place = locate("hdfs:///lock")
    assert not place.swap(b"old", b"new")
    for text in (b"old and more", b"ol", b""):
        node.put("/lock", text)
        assert not place.swap(b"old", b"new")
        assert not place.swap(None, b"new")
        assert node.files["/lock"].body == text
    node.put("/lock", b"old")
    assert place.swap(b"old", b"new")
    assert node.files["/lock"].body == b"new"
    assert node.files.keys() == {PATH, "/lock"}


def test_a_private_file_has_its_rights_before_its_content(node: NameNode) -> None:
    for is_private in (True, False):
        hdfs.put(BytesIO(b"secret"), "hdfs:///keys", is_private=is_private)
    given = [query.get("permission") for op, _, query in node.seen if op == "CREATE"]
    assert given == ["600", None]


@pytest.mark.parametrize("name", ["number", "modified", "body"])
def test_any_change_of_a_file_is_noticed(name: str, node: NameNode) -> None:
    """It has another id, time or size."""
    with (
        pytest.raises(InputError, match="has changed while it was read; run it again"),
        locate(URL).open_ranges() as read_at,
    ):
        read_at(0, 10)
        setattr(node.files[PATH], name, b"" if name == "body" else 7)


def test_connections_go_back_to_the_pool_or_are_closed(node: NameNode, hurry: None) -> None:
    """A body that was read to its end, or is short, keeps its connection; one with much left ends it."""
    pool = hdfs._client(os.getpid(), "")._pool.connection_from_url(node.address)
    with locate("hdfs:///crawl/a.warc.gz").open_ranges() as read_at:
        for _ in range(3):
            read_at(0, len(BODY))
        assert pool.num_connections == 1
        read_at(0, 100)
        read_at(100, 100)
        read_at(0, 100)
    locate("hdfs:///crawl/a.warc.gz").status()
    assert pool.num_connections == 2


def test_rights_are_those_of_another_directory(node: NameNode) -> None:
    node.put("/one/a", b"")
    node.put("/other/a", b"")
    node.modes["/one"] = "711"
    hdfs.copy_mode("hdfs:///one", "hdfs:///other")
    hdfs.copy_mode("hdfs:///absent", "hdfs:///other")
    assert node.modes == {"/one": "711", "/other": "711"}


def test_what_does_not_exist_is_not_moved(node: NameNode, hurry: None) -> None:
    node.put("/target", b"kept")
    with pytest.raises(StoppedError, match="no such file"):
        locate("hdfs:///absent").move(locate("hdfs:///target"))
    assert node.files["/target"].body == b"kept"
    node.refusals = [(403, "RetriableException")]
    with pytest.raises(StoppedError, match="no such file"):
        locate("hdfs:///absent").move(locate("hdfs:///other"))


def test_the_time_of_a_file_is_in_seconds(node: NameNode) -> None:
    entry = locate(URL).status()
    assert entry is not None
    assert (entry.modified, entry.tag) == (node.files[PATH].modified / 1000, str(node.files[PATH].modified))


def test_attributes_of_others_are_no_stamp(node: NameNode) -> None:
    stored = node.put("/stamped", b"")
    stored.attributes |= {"user.other": '"theirs"', "user.cdxmill": '"mine"'}
    assert locate("hdfs:///stamped").stamped()[1] == "mine"
    del stored.attributes["user.cdxmill"]
    assert locate("hdfs:///stamped").stamped()[1] == ""


def test_a_body_that_drips_is_given_up(node: NameNode, monkeypatch: pytest.MonkeyPatch, hurry: None) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "0.1")
    with locate(URL).open_ranges() as read_at:
        node.drips = 0.01
        with pytest.raises(OutageError, match=r"did not answer \(sends too slowly\)"):
            read_at(0, 500_000)
        node.drips = 0.0
