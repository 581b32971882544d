"""The report of a collection: the page of `cdxmill report`, made once in a process of its own, and again after a change."""

from __future__ import annotations

import json
import shutil
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cdxmill
from cdxmill.errors import StoppedError
from cdxmill.search.sources import find_sources
from cdxmill.server.answers import RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.server.report import Reports, _page, make

from .conftest import line, many_lines

if TYPE_CHECKING:
    from tests.material.cdx_server import CdxServer


def collection_of(*clusters: Path) -> Collection:
    sources = [source for one in clusters for source in find_sources(str(one), None)]
    return Collection("many", sources, None)


def made(reports: Reports, collection: Collection) -> Response:
    """The report, once its process has ended."""
    waiting = reports.page(collection)
    assert waiting.status == 202
    assert reports.page(collection) == waiting  # no second process
    (process,) = active_children()
    process.join()
    return reports.page(collection)


def test_it_is_that_of_the_command_until_the_cluster_changes(many_cluster: Path, tmp_path: Path) -> None:
    cluster, page, shared = tmp_path / "c", tmp_path / "report.html", tmp_path / "shared"
    shutil.copytree(many_cluster, cluster)
    shared.mkdir()
    reports, collection = Reports(shared), collection_of(cluster)
    found = made(reports, collection)
    cdxmill.report(cluster, html=page)
    wanted = page.read_text().replace(f"{cluster}/", "").replace(str(cluster), "many")
    assert (found.status, b"".join(found.body)) == (200, wanted.encode())
    assert Reports(shared).page(collection) == found  # another worker
    (tmp_path / "more.cdxj").write_text(line("example,other)/", "20210101000000"))
    cdxmill.add(cluster, tmp_path / "more.cdxj", cdx=True)
    changed = b"".join(made(reports, collection).body)
    assert f"{len(many_lines()) + 1:,}" in changed.decode()
    assert len(list((shared / "many").iterdir())) == 1
    assert str(tmp_path).encode() not in changed
    collection.close()


def test_a_collection_without_a_report_says_why(
    many_cluster: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.cdxj").write_text(line("example,a)/", "2020"))
    lines, cluster = collection_of(tmp_path / "a.cdxj"), collection_of(many_cluster)
    assert (lines.has_report, cluster.has_report) == (False, True)
    with pytest.raises(RequestError, match="clusters on the machine of the server only") as error:
        Reports(tmp_path).page(lines)
    assert error.value.code == 404
    cluster.open()
    state = cluster.state()
    assert state is not None
    reports = Reports(tmp_path)
    failing = get_context("spawn").Process(target=make, args=(reports.place(cluster, state), ["/absent"]))
    failing.start()
    failing.join()
    with pytest.raises(RequestError, match="the messages of the server say why") as error:
        reports.page(cluster)
    assert error.value.code == 500
    assert "/absent: " in capfd.readouterr().err
    lines.close()
    cluster.close()


def test_the_server_has_reports(server: CdxServer) -> None:
    assert server.get("/many/report").status in (200, 202)
    listed = json.loads(server.get("/collinfo.json").body)
    assert [one["report"] for one in listed] == [f"{server.site}/web/report", f"{server.site}/many/report"]


def test_what_is_no_cluster_any_more_gets_no_page(tmp_path: Path) -> None:
    """A source that is a cluster when the server starts may be a file of lines when the report is made."""
    lines = tmp_path / "lines.cdxj"
    lines.write_text(line("com,a)/", "20200101000000"))
    with pytest.raises(StoppedError, match="is no cluster any more"):
        _page("many", [str(lines)])
