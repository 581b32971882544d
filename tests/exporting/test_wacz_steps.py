"""The steps of an export as WACZ: what is refused, what is left for the next run, who signs, and what is listed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from cdxmill.commands.exporting import wacz
from cdxmill.commands.exporting.wacz import export_wacz
from cdxmill.errors import HeldError, InputError, StoppedError, UsageError
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.resume import WorkDirectory
from cdxmill.storage.location import Location, locate
from cdxmill.version import __version__

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from .test_exported_lines import LINES

HASH, TIME = "sha256:ab", "2020-01-01T00:00:00Z"


def asked(output: str = "x.wacz", source: str = "c.cdxj", **options: Any) -> Exporting:
    return Exporting(source, format="wacz", output=output, **{"processes": 1, **options})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the lines c.cdxj."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1577836800")
    write_plain(tmp_path / "c.cdxj", LINES)
    return tmp_path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def quiet() -> Failures:
    return Failures(printed=False)


@pytest.mark.parametrize(
    ("output", "options", "reason"),
    [
        ("x.wacz", {}, ""),
        ("X.WACZ", {}, ""),
        ("new/x.wacz", {}, ""),
        ("old.wacz", {"replace": True}, ""),
        ("x.zip", {}, "x.zip: the name of a WACZ ends in .wacz"),
        ("wacz", {}, "wacz: the name of a WACZ ends in .wacz"),
        ("old.wacz", {}, "already exists; use --replace"),
        ("full.wacz", {"replace": True}, "is a directory"),
        ("pipe.wacz", {"replace": True}, "pipe.wacz: is not a file; choose another output file"),
        ("mine.wacz", {}, "_mine.wacz.failures: is not of cdxmill"),
        ("x.wacz", {"sign_command": "sh -c x"}, ""),
        ("x.wacz", {"sign_command": "no-such-program x"}, "no-such-program is not found or not executable"),
        ("x.wacz", {"sign_command": "./c.cdxj"}, "./c.cdxj is not found or not executable"),
        ("x.wacz", {"sign_command": ""}, "--sign-command: is empty; give a program and its arguments"),
        ("x.wacz", {"sign_command": "'"}, "--sign-command ': No closing quotation"),
        ("http://h/x.wacz", {}, "http:// cannot be written"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(
    output: str, options: dict[str, Any], reason: str, here: Path
) -> None:
    (here / "old.wacz").write_text("x")
    (here / "full.wacz").mkdir()
    os.mkfifo(here / "pipe.wacz")
    (here / "_mine.wacz.failures").write_text("precious\n")
    (here / "_x.wacz.failures").write_text("a.warc.gz\t7\tis bad\tfetch it\n")
    if reason:
        with pytest.raises(UsageError) as found:
            wacz._output(asked(output, **options))
        assert reason in str(found.value)
    else:
        assert wacz._output(asked(output, **options)) == locate(output)


def test_what_is_at_a_url_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace(is_directory=False, size=3)
    monkeypatch.setattr(Location, "status", lambda place: known if place.text.endswith("/x.wacz") else None)
    assert wacz._output(asked("hdfs://n/x.wacz", replace=True)) == locate("hdfs://n/x.wacz")
    with pytest.raises(UsageError, match="already exists"):
        wacz._output(asked("hdfs://n/x.wacz"))


def test_the_words_of_a_command() -> None:
    assert wacz._words("sign --key 'a b' c") == ["sign", "--key", "a b", "c"]


def test_the_options_of_the_copy() -> None:
    given = {"from_ts": "2020", "to": "2021", "filter": "=status:200", "match_type": "host"}
    made = asked(archives="warcs", related=True, progress=print, **given)
    made.quiet = True
    found = wacz._copying(made)
    assert {name: getattr(found, name) for name in given} == given
    assert (found.source, found.archives, found.processes, found.progress) == ("c.cdxj", "warcs", 1, print)
    assert (found.related, found.originals, found.quiet) == (True, True, True)
    made = asked(processes=3)
    made.quiet = False
    plain = wacz._copying(made)
    assert (plain.archives, plain.processes, plain.related, plain.quiet) == (None, 3, False, False)


@pytest.mark.parametrize(
    ("archives", "is_pipe", "output", "is_input"),
    [
        (None, False, "x.wacz", False),
        (None, False, "c.cdxj", True),
        (None, True, "c.cdxj", False),
        ("a.wacz", True, "a.wacz", True),
        ("a.wacz/archive/x.warc.gz", False, "a.wacz", True),
        ("a.wacz", False, "x.wacz", False),
    ],
)
def test_the_output_is_no_input(
    archives: str | None, is_pipe: bool, output: str, is_input: bool, here: Path
) -> None:
    (here / "a.wacz").touch()
    found: Any = SimpleNamespace(sources=[SimpleNamespace(cluster="c.cdxj", is_pipe=is_pipe)])
    options = wacz._copying(asked(archives=archives))
    if is_input:
        with pytest.raises(UsageError, match=f"{output}: is an input"):
            wacz._check_sources(locate(output), found, options)
    else:
        wacz._check_sources(locate(output), found, options)


def test_unfinished_work_is_beside_the_output(here: Path) -> None:
    notes = quiet()
    with wacz._work_directory(locate("d/x.wacz"), notes) as directory:
        assert directory == Path("d/.x.wacz.work/.work")
        with pytest.raises(HeldError), in_another_thread(locate("d/x.wacz")):
            pass
    assert (names(here), names(here / "d") if Path("d").exists() else []) == (["c.cdxj", "d"], [])
    with pytest.raises(KeyError), wacz._work_directory(locate("x.wacz"), notes) as directory:
        directory.mkdir()
        raise KeyError
    assert names(here / ".x.wacz.work") == [".work"]
    with wacz._work_directory(locate("x.wacz"), notes) as directory:
        directory.rmdir()
    assert names(here) == ["c.cdxj", "d"]


@contextmanager
def in_another_thread(place: Location) -> Iterator[None]:
    from concurrent.futures import ThreadPoolExecutor

    def held() -> None:
        with wacz._work_directory(place, quiet()):
            pass

    with ThreadPoolExecutor(1) as pool:
        pool.submit(held).result()
    yield


@pytest.mark.usefixtures("here")
def test_unfinished_work_for_a_url_is_temporary() -> None:
    with wacz._work_directory(locate("s3://b/x.wacz"), quiet()) as directory:
        assert (directory.name, directory.parent.is_dir()) == (".work", True)
    assert not directory.parent.exists()


@pytest.mark.parametrize(
    ("files", "outages", "failures", "error"),
    [
        (["x-00000.warc.gz"], 0, 0, None),
        (["x-00000.warc.gz"], 0, 2, None),
        (["x-00000.warc.gz"], 1, 1, StoppedError("the WACZ is not complete: a machine was at fault; run it again to continue")),
        ([], 1, 1, StoppedError("the WACZ is not complete: a machine was at fault; run it again to continue")),
        (["x.cdxj"], 0, 0, InputError("a,b", "no capture matches the query; no WACZ is written", "check QUERY")),
        ([], 0, 1, InputError("a,b", "none of the captures could be copied; no WACZ is written", "check QUERY")),
    ],
)  # fmt: skip
def test_a_copy_with_something_in_it_is_packed(
    files: list[str],
    outages: int,
    failures: int,
    error: Exception | None,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: Any = SimpleNamespace(sources=[SimpleNamespace(name="a"), SimpleNamespace(name="b")])
    options, reported = wacz._copying(asked()), quiet()

    def copied(*args: object) -> SimpleNamespace:
        assert args == (found, "copy", options, reported)
        for name in files:
            Path("copy", name).touch()
        return SimpleNamespace(captures=3, present=4)

    (here / "copy").mkdir()
    monkeypatch.setattr(wacz, "copy", copied)
    for number in range(failures):
        reported.report(Failure("a.warc", 1, "is bad", is_outage=number < outages))
    if error is None:
        assert wacz._copy(found, Path("copy"), options, reported) == 7
    else:
        with pytest.raises(type(error)) as raised:
            wacz._copy(found, Path("copy"), options, reported)
        assert str(raised.value) == str(error)


@pytest.mark.parametrize("error", [InputError("a", "b"), UsageError("a"), StoppedError("a"), None])
@pytest.mark.parametrize("has_archives", [False, True])
def test_work_stays_if_another_run_can_continue_it(
    error: Exception | None, has_archives: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    def copied(_: object, directory: Path, *__: object) -> int:
        assert directory == Path(".x.wacz.work/.work/copy/x")
        directory.mkdir(parents=True)
        (directory / ("x.warc.gz" if has_archives else "x.cdxj")).touch()
        if error is not None:
            raise error
        return 5

    monkeypatch.setattr(wacz, "_copy", copied)

    def packed(place: Location, *_: object) -> int:
        done.append(place)
        return 2

    monkeypatch.setattr(wacz, "_pack", packed)
    monkeypatch.setattr(wacz, "_list_failed", lambda *args: done.append(args[0]))
    if error is None:
        assert export_wacz(asked(), quiet()) == (5, 2)
        assert done == [locate("x.wacz")] * 2
    else:
        with pytest.raises(type(error)):
            export_wacz(asked(), quiet())
        assert done == []
    is_kept = isinstance(error, StoppedError) or (error is not None and has_archives)
    assert names(here) == [*[".x.wacz.work"] * is_kept, "c.cdxj"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("query", "urls"), [(None, ["*"]), ("a.com", ["a.com"]), (("a.com", "b.com/*"), ["a.com", "b.com/*"]), ((), ["*"])]
)  # fmt: skip
def test_all_queries_are_asked(query: Any, urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []
    write_raw_cluster(Path("c"), LINES)

    def copied(given: Any, *_: object) -> int:
        found.extend(given.urls)
        raise InputError("a", "b")

    monkeypatch.setattr(wacz, "_copy", copied)
    for source in ("c", "c.cdxj"):
        with pytest.raises(InputError):
            given = iter(query) if isinstance(query, tuple) else query
            export_wacz(asked(source=source, query=given), quiet())
    assert found == urls * 2


def test_an_input_is_refused_before_anything_is_made(here: Path) -> None:
    (here / "a.wacz").write_text("x")
    before = names(here)
    with pytest.raises(UsageError, match=r"a\.wacz: is an input"):
        export_wacz(asked("a.wacz", archives="a.wacz", replace=True), quiet())
    assert names(here) == before


@pytest.mark.parametrize("replace", [False, True])
def test_what_appears_meanwhile_stays(replace: bool, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(wacz, "sync_directory", synced.append)
    (here / "d").mkdir()
    place, made = locate(here / "d/x.wacz"), here / "made/package"

    def write() -> None:
        with wacz._writing(place, replace, made) as out:
            out.write(b"new")
            (here / "d/x.wacz").write_text("mine")

    if replace:
        write()
        assert synced == [here / "d"]
    else:
        with pytest.raises(UsageError, match="already exists"):
            write()
        assert synced == []
    assert (here / "d/x.wacz").read_text() == ("new" if replace else "mine")
    assert made.exists() != replace


def test_a_wacz_at_a_url_is_written_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[Any] = []

    @contextmanager
    def writing(place: Location, *, replace: bool) -> Iterator[object]:
        asked_for.append((place, replace))
        yield asked_for
        asked_for.append("end")

    monkeypatch.setattr(wacz, "writing", writing)
    for replace in (False, True):
        with wacz._writing(locate("s3://b/x.wacz"), replace, here / "made") as out:
            assert out is asked_for  # type: ignore[comparison-overlap]
        assert asked_for == [(locate("s3://b/x.wacz"), replace), "end"]
        asked_for.clear()
    assert names(here) == ["c.cdxj"]


def test_the_list_of_failures_is_that_of_this_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, failures, listed = WorkDirectory(here / "w", "job"), quiet(), here / "_x.wacz.failures"
    listed.write_text("old\n")
    failures.add("a.warc", 7, "is bad")
    wacz._list_failed(locate(here / "x.wacz"), work, failures)
    assert listed.read_text() == "a.warc\t7\tis bad\t\n"
    assert not (here / "w/failures").exists()
    wacz._list_failed(locate(here / "x.wacz"), work, quiet())
    assert not listed.exists()
    written: list[object] = []
    monkeypatch.setattr(wacz, "list_failures", lambda *args: written.append(args))
    wacz._list_failed(locate("s3://b/x.wacz"), work, failures)
    assert written == [(locate("s3://b/_x.wacz.failures"), failures)]


def test_a_file_is_done_when_the_next_one_is_asked_for() -> None:
    done: list[int] = []
    progress: Any = SimpleNamespace(advance=lambda: done.append(1))
    files = wacz._counted(iter([("a", Path("a")), ("b", Path("b"))]), progress)
    assert (next(files), len(done)) == (("a", Path("a")), 0)
    assert (next(files), len(done)) == (("b", Path("b")), 1)
    assert (list(files), len(done)) == ([], 2)


def test_a_package_says_what_is_known_about_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def write(
        files: object, out: IO[bytes], about: dict[str, str], sign: Callable[..., Any], tick: object
    ) -> None:
        found.append((about, sign(b"package")))
        out.write(b"PK")

    monkeypatch.setattr(wacz, "write_wacz", write)
    monkeypatch.setattr(wacz, "_signed", lambda *args: args)
    (here / "copy").mkdir()
    work = WorkDirectory(here / "w", "job")
    known = {"created": TIME, "software": f"cdxmill {__version__}"}
    digest = "sha256:" + hashlib.sha256(b"package").hexdigest()
    assert wacz._pack(locate("x.wacz"), asked(title="T", sign_command="s"), here / "copy", work) == 0
    assert found.pop() == ({"title": "T", **known}, ("s", digest, TIME))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "9")
    (here / "w/made").rename(here / "gone")
    wacz._pack(locate("x.wacz"), asked(description="D", replace=True), here / "copy", work)
    assert found.pop() == ({"description": "D", **known}, (None, digest, TIME))
    assert Path("x.wacz").read_bytes() == b"PK"
