"""What answers of WebHDFS mean: which are waited for, whose fault the others are, and who asks."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError
from cdxmill.storage.hadoop import hdfs
from cdxmill.storage.location import locate

from .name_node import NameNode, name_node

BODY = bytes(range(256)) * 1000
URL = "hdfs:///a"


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:
    """A name node that has one file."""
    with name_node() as running:
        running.put("/a", BODY)
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        yield running


@pytest.mark.parametrize(
    ("status", "name", "kind", "told"),
    [
        (400, "IllegalArgumentException", InputError, "refused (400 IllegalArgumentException: "),
        (401, "AuthenticationException", RefusedError, "refused (401 AuthenticationException: "),
        (403, "AccessControlException", RefusedError, "refused (403 AccessControlException: "),
        (403, "NSQuotaExceededException", RefusedError, "refused (403 NSQuotaExceededException: "),
        (404, "FileNotFoundException", AbsentError, "cannot be read (no such file); check the path"),
        (403, "L" * 300, RefusedError, f"refused (403 {'L' * 300}: {'L' * 200}); check the access rights"),
    ],
)
def test_an_answer_that_no_other_try_changes_is_an_error_at_once(
    status: int, name: str, kind: type[InputError], told: str, node: NameNode, slept: list[float]
) -> None:
    node.refusals = [(status, name)]
    with pytest.raises(InputError) as caught:
        locate(URL).read_bytes()
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{URL}: {told}")
    assert slept == []


@pytest.mark.parametrize(
    "message",
    [
        "Failed to find datanode, suggest to check cluster health",
        "Could not obtain block: BP-1",
        "File /a could only be written to 0 of the 1 minReplication nodes",
    ],
)
def test_data_nodes_that_are_away_are_waited_for(message: str, node: NameNode, hurry: None) -> None:
    with locate(URL).open_ranges() as read_at:
        node.refusals = [(403, message)] * 3
        assert read_at(5, 10) == BODY[5:15]


def test_data_nodes_of_a_file_system_that_works_are_waited_for_longer(
    node: NameNode, slept: list[float]
) -> None:
    node.data_node = "http://127.0.0.1:1"
    with pytest.raises(OutageError, match=r"did not answer \(no connection: .*\) after 12 tries"):
        locate(URL).read_bytes()


def test_a_gateway_that_sends_the_content_itself_is_read(node: NameNode) -> None:
    node.is_gateway = True
    assert locate(URL).read_bytes() == BODY
    assert "data OPEN" not in node.operations()


@pytest.mark.parametrize(
    ("names", "user"),
    [
        ({"HADOOP_USER_NAME": "archivist", "mapreduce_job_user_name": "starter"}, "archivist"),
        ({"mapreduce_job_user_name": "starter"}, "starter"),
        ({"HADOOP_USER_NAME": ""}, "login"),
        ({}, "login"),
    ],
    ids=["named", "of the job", "empty", "none"],
)
def test_hdfs_is_asked_as_the_user_of_the_job_or_of_the_machine(
    names: dict[str, str], user: str, node: NameNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("mapreduce_job_user_name", raising=False)
    monkeypatch.setenv("LOGNAME", "login")
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    locate(URL).status()
    assert [query["user.name"] for _, _, query in node.seen] == [user]


def test_writes_share_a_connection(node: NameNode) -> None:
    pool = hdfs._client(os.getpid(), "")._pool.connection_from_url(node.address)
    for number in range(3):
        with locate(f"hdfs:///{number}").write_atomic(stamp=lambda: "mine") as file:
            file.write(BODY)
    assert pool.num_connections == 1


def test_a_file_has_no_entries_and_a_directory_only_those_below_it(node: NameNode) -> None:
    node.put("/d/a", b"1")
    node.put("/d/below/b", b"22")
    assert locate("hdfs:///d/a").entries() == {}
    assert {name: entry.is_directory for name, entry in locate("hdfs:///d").entries().items()} == {
        "a": False,
        "below": True,
    }
