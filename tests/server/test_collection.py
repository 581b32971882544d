"""What a collection knows of itself: whether it is on this machine, has a report, and has changed; and its report's process."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
from dataclasses import replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.errors import UsageError
from cdxmill.options.queries import Query
from cdxmill.search.sources import find_sources
from cdxmill.server import start
from cdxmill.server.access import Access, AccessRule, parse_embargo
from cdxmill.server.collections import Collection, Inquiry, prepare
from cdxmill.server.dialects import memento, pywb, xml_query
from cdxmill.server.dialects.request import Request
from cdxmill.server.log import AccessLog
from cdxmill.server.report import Reports, make
from cdxmill.server.routes import Endpoint
from cdxmill.server.watch import Watch

from .conftest import MANY, line

if TYPE_CHECKING:
    from cdxmill.search.sources import Source

RULES = Access({b"example,many)/": AccessRule("exclude", None)})


@pytest.fixture
def local(many_cluster: Path) -> Source:
    return find_sources(str(many_cluster), None)[0]


@pytest.fixture
def far(local: Source) -> Source:
    return local._replace(name="s3://bucket/many")


@pytest.fixture
def lines(local: Source, tmp_path: Path) -> Source:
    (tmp_path / "a.cdxj").write_text(line("example,many)/", "2020"))
    return local._replace(name=str(tmp_path / "a.cdxj"))


@pytest.mark.parametrize(
    ("kinds", "access", "has_report", "is_local"),
    [
        (["local"], None, True, True),
        (["local", "local"], None, True, True),
        (["local"], RULES, False, True),
        (["local", "far"], None, False, False),
        (["far"], None, False, False),
        (["local", "lines"], None, False, True),
    ],
    ids=["cluster", "clusters", "rules", "some far", "far", "some lines"],
)
def test_a_report_is_of_clusters_on_this_machine_that_all_may_see(
    kinds: list[str], access: Access | None, has_report: bool, is_local: bool, request: pytest.FixtureRequest
) -> None:
    collection = Collection("many", [request.getfixturevalue(kind) for kind in kinds], access)
    assert (collection.has_report, collection.is_local) == (has_report, is_local)


@pytest.mark.parametrize(
    ("access", "has_state"),
    [
        (None, True),
        (RULES, True),
        (Access({}, parse_embargo("before:2019")), True),
        (Access({}, parse_embargo("newer:1y")), False),
        (Access({b"a": AccessRule("exclude", parse_embargo("older:1y"))}), False),
    ],
    ids=["all", "rules", "moment", "embargo", "rule for a period"],
)
def test_the_state_is_known_once_it_is_open_unless_time_changes_answers(
    access: Access | None, has_state: bool, local: Source
) -> None:
    collection = Collection("many", [local, local], access)
    assert (collection.state(), collection.is_near) == (None, False)
    asked = Inquiry(collection, MANY + "same", prepare(Query(limit=1)), Watch())
    assert sum(map(len, asked.lists())) == (0 if access is RULES else 1)
    assert collection.is_near
    collection._look_again = 0.0
    state = collection.state()
    assert (state is not None, asked.state is not None) == (has_state, has_state)
    assert asked.state == state
    collection.close()


def test_the_state_is_another_one_after_a_change(many_cluster: Path, local: Source, tmp_path: Path) -> None:
    cluster = shutil.copytree(many_cluster, tmp_path / "c")
    collection = Collection("many", [local._replace(name=str(cluster))], None)
    collection.open()
    found = [collection.state()]
    os.utime(cluster / "cluster.idx", (1, 1))
    assert collection.state() == found[0], "it is not looked at for each question"
    collection._look_again = 0.0
    found.append(collection.state())
    collection._look_again = 0.0
    assert None not in found
    assert found[0] != found[1] == collection.state()
    collection.close()


def test_messages_have_the_name_of_the_collection_in_place_of_paths(local: Source, lines: Source) -> None:
    collection = Collection("web", [local, lines], None)
    told = f"{local.cluster}/cdx-00000.gz and {lines.cluster}: x"
    assert collection.without_paths(told) == "web/cdx-00000.gz and web: x"


@pytest.mark.parametrize("hidden", [b"example,many)/", b"example,many)/x"])
def test_an_answer_that_is_404_without_captures_waits_where_some_are_hidden(
    hidden: bytes, local: Source
) -> None:
    collection = Collection("many", [local], Access({hidden: AccessRule("exclude", None)}))
    collection.open()

    def unreported(_: Collection) -> None:
        raise AssertionError

    report: object = unreported
    request = Request(collection, b"url=many.example/", {}, {}, None, Watch(), report, "")  # type: ignore[arg-type]
    assert pywb.index_answer(request).is_quick == (hidden != b"example,many)/")
    assert pywb.answer(request).is_quick
    collection.close()


@pytest.mark.parametrize("answer", [memento.link_timemap, memento.json_timemap])
def test_timemaps_are_made_while_others_are_answered(answer: Endpoint, local: Source) -> None:
    """A URL may have any number of captures."""
    collection = Collection("many", [local], None)
    collection.open()
    report: object = None
    request = Request(collection, b"", {}, {}, "http://replay/", Watch(), report, MANY)  # type: ignore[arg-type]
    assert not answer(request).is_quick
    assert memento.timegate(
        replace(request, headers={b"accept-datetime": b"Sun, 26 Jan 2014 20:00:00 GMT"})
    ).is_quick
    collection.close()


def test_an_xml_query_waits_until_its_collection_is_open(local: Source) -> None:
    collection = Collection("many", [local], None)
    report: object = None
    request = Request(collection, b"q=url:many.example/", {}, {}, None, Watch(), report, "")  # type: ignore[arg-type]
    assert not xml_query.answer(request).is_quick
    collection.open()
    assert xml_query.answer(request).is_quick
    collection.close()


def test_pages_of_hidden_lines_are_those_of_usual_blocks_if_the_cluster_does_not_say(
    many_cluster: Path, local: Source, tmp_path: Path
) -> None:
    cluster = shutil.copytree(many_cluster, tmp_path / "c")
    (cluster / "cluster.json").unlink()
    rules = Access({b"example,many)/same": AccessRule("exclude", None)})
    collection = Collection("many", [local._replace(name=str(cluster))], rules)
    query = Query(match_type="prefix", page_size=1)
    found = Inquiry(collection, MANY, prepare(query), Watch()).pages()
    assert (found.pages, found.blocks) == (2, 2)
    sizes = []
    for page in range(2):
        asked = Inquiry(collection, MANY, prepare(replace(query, page=page)), Watch())
        sizes.append(sum(map(len, asked.lists())))
    assert sizes == [3000, 2000]
    collection.close()


def test_pages_of_what_no_rule_touches_are_those_without_rules(local: Source) -> None:
    found = []
    for access in (None, Access({b"example,other)/": AccessRule("exclude", None)})):
        collection = Collection("many", [local], access)
        query = Query(match_type="prefix", page_size=3, page=1)
        found.append(list(Inquiry(collection, MANY, prepare(query), Watch()).lists()))
        collection.close()
    assert found[0] == found[1]
    assert sum(map(len, found[0])) == 900


def test_one_report_is_made_at_a_time(local: Source, tmp_path: Path) -> None:
    reports, collection = Reports(tmp_path), Collection("many", [local], None)
    collection.open()
    state = collection.state()
    assert state is not None
    place = reports.place(collection, state)
    assert place != reports.place(Collection("other", [local], None), state)
    with (tmp_path / "making").open("ab") as file:  # by another worker
        fcntl.flock(file, fcntl.LOCK_EX)
        assert reports.page(collection).status == 202
        assert active_children() == []
        other = get_context("spawn").Process(target=make, args=(place, [local.cluster]))
        other.start()
        other.join()
        assert other.exitcode == 0
    assert not place.parent.exists()
    collection.close()


def test_a_log_that_cannot_be_written_costs_its_lines_only(tmp_path: Path) -> None:
    log = AccessLog("/dev/full")
    assert log.is_open
    log.write("1.2.3.4", "GET / HTTP/1.1", 200, 5, 0.5)
    log.close()
    log.close()
    log.write("1.2.3.4", "GET / HTTP/1.1", 200, 5, 0.5)
    assert not log.is_open
    assert not AccessLog(None).is_open
    with pytest.raises(UsageError, match="no/log: the log cannot be written"):
        AccessLog(str(tmp_path / "no/log"))


def test_a_log_may_be_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    log = AccessLog("-")
    log.write("1.2.3.4", 'GET /"\n', 200, 5, 0.25)
    log.close()
    said = capfd.readouterr().err
    assert said.startswith("1.2.3.4 - - [")
    assert (said.count("\n"), said.endswith(" 200 5 0.250000\n")) == (1, True)
    assert os.fstat(2)


def test_a_server_may_have_as_many_connections_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    try:
        for given, wanted in (256, most), (most, most):
            resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
            start._raise_file_limit()
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (wanted, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
