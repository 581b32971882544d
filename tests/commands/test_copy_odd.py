"""`copy` beside files of others, after a kill that left junk, and of lines that lead astray: nothing is lost or written twice."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.copying.output import CopyOutput
from cdxmill.messages import Step
from cdxmill.running.progress import listened_to
from cdxmill.running.resume import WorkDirectory

from ..material.trees import build
from .test_copy_classic import NAME


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The archives w/iana.warc.gz and w/example.warc.gz, and their index all.cdxj."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    Path("w").mkdir()
    Path("whole").mkdir()
    for name in ("example.warc.gz", "iana.warc.gz"):
        shutil.copyfile(pywb_warcs / name, Path("w", name))
    assert main(["index", "-q", "-p", "1", "-o", "all.cdxj", "w"]) == 0
    return tmp_path


def run(output: str, *words: str, source: str = "all.cdxj") -> int:
    return main(["copy", "-p", "1", "-o", output, "--archives", "w", source, "*.org", "*.com", *words])


def rows(output: str) -> list[str]:
    return sorted(
        row
        for path in Path(output).glob("*-0*.tsv")
        if path.is_file()
        for row in path.read_text().splitlines()[1:]
    )


@pytest.mark.usefixtures("here")
def test_a_directory_with_the_name_of_a_list_stays(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out/out-00000.tsv/below").mkdir(parents=True)
    assert run("out", "-q") == 0
    assert capsys.readouterr().err == ""
    assert Path("out/out-00000.tsv/below").is_dir()
    assert Path("out/out-00001.warc.gz").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b"{}", b'{"parts": 3}', b'{"parts": {"warc": {"size": 1}}}', b"null"]
)
def test_what_is_left_of_a_killed_run_and_cannot_be_read_is_copied_again(
    junk: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(output: CopyOutput, *given: object) -> None:
        raise KilledError

    assert run("whole/out", "-q") == 0
    with monkeypatch.context() as patch:
        patch.setattr(CopyOutput, "finish", killed)
        with pytest.raises(KilledError):
            run("out", "-q")
    results = sorted(Path("out/.work").glob("unit-*.json"))
    assert len(results) > 1
    results[1].write_bytes(junk)
    Path("out/.work", results[-1].name.replace(".json", ".warc")).unlink(missing_ok=True)
    steps: list[Step] = []
    with listened_to(steps.append):
        assert run("out", "-q") == 0
    assert steps[-1].done == steps[-1].total == len(rows("out")), "what was copied before counts"
    assert rows("out") == rows("whole/out")
    assert not Path("out/.work").exists()


@pytest.mark.usefixtures("here")
def test_a_result_that_cannot_be_read_back_stops_the_run_and_the_next_one_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = WorkDirectory.save

    def broken(work: WorkDirectory, name: str, content: object) -> None:
        save(work, name, content)
        if name == "unit-000001":
            (work.scratch.directory / f"{name}.json").write_bytes(b"{")

    with monkeypatch.context() as patch:
        patch.setattr(WorkDirectory, "save", broken)
        assert run("out", "-q") == 3
    assert "unit-000001.json: cannot be read; run it again" in capsys.readouterr().err
    assert rows("out") == []
    assert run("out", "-q") == run("whole/out", "-q") == 0
    assert rows("out") == rows("whole/out")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("name", "stem"), [("_", "copy"), ("a b&c", "a_b_c"), ("x-1.+", "x-1.+")])
def test_files_are_named_after_their_directory(name: str, stem: str) -> None:
    """Without characters that a shell or a URL takes for others."""
    assert run(name, "-q") == 0
    assert {path.name for path in Path(name).iterdir()} == {
        f"{stem}-00000.{kind}" for kind in ("cdxj", "tsv", "warc.gz")
    }


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("rate", "status"),
    [("0", 2), ("-1", 2), ("nan", 2), ("1000001", 2), ("0.5", 0), ("1", 0), ("1000000", 0)],
)
def test_a_rate_is_a_number_that_one_can_wait_for(
    rate: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = next(line for line in Path("all.cdxj").read_text().splitlines() if line.startswith("org,iana)/ab"))
    Path("one.cdxj").write_text(f"{line}\n")
    assert run("out", "-q", "--rate", rate, source="one.cdxj") == status
    assert ("expected a number of requests per second" in capsys.readouterr().err) == (status == 2)
    assert Path("out").exists() == (status == 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("number", [20, 21])
def test_the_first_record_names_what_was_asked_for(number: int) -> None:
    """Without the directories of this machine, and not a thousand URLs."""
    urls = ["*.org", *(f"host{n}.net" for n in range(1, number))]
    assert (
        main(
            ["copy", "-q", "-p", "1", "-o", "out", "--archives", "w", str(Path("all.cdxj").resolve()), *urls]
        )
        == 0
    )
    with gzip.open("out/out-00000.warc.gz") as file:
        head = file.read(2000).decode().partition("description: ")[2].partition("\r\n")[0]
    more = " ..." if number > 20 else ""
    assert head == f"captures of {', '.join(urls[:20])}{more}, copied from all.cdxj"


@pytest.mark.usefixtures("here")
def test_a_line_that_leads_outside_costs_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    lines = (
        Path("all.cdxj")
        .read_text()
        .replace('"filename": "example.warc.gz"', '"filename": "../example.warc.gz"')
    )
    Path("odd.cdxj").write_text(lines)
    assert run("out", source="odd.cdxj") == 1
    told = capsys.readouterr().err
    assert "../example.warc.gz" in told
    assert "an index line leads there, outside of --archives w" in told
    assert len(rows("out")) == 171
    assert len(Path("out/copy-failures.tsv").read_text().splitlines()) >= 2


@pytest.mark.usefixtures("here")
def test_a_record_with_two_lines_is_written_once() -> None:
    """Both lines are answered by one record; a key that is not that of the URL is no second one."""
    first, *_ = [
        line for line in Path("all.cdxj").read_text().splitlines() if line.startswith("org,iana)/about")
    ]
    Path("two.cdxj").write_text(first + "\n" + first.replace("org,iana)/about", "org,iana)/also") + "\n")
    assert run("out", "-q", source="two.cdxj") == 0
    assert len(rows("out")) == 1
    with gzip.open("out/out-00000.warc.gz") as file:
        assert file.read().count(b"WARC-Type: response") == 1


def test_captures_of_2012_are_known_if_they_were_copied_by_another_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their keys are no SURT, and their lines have no time, and the URL as the key has it: it is that of the copy."""
    monkeypatch.chdir(tmp_path)
    Path(NAME).parent.mkdir(parents=True)
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"
    member = gzip.compress(
        b"http://Example.com:80/A 192.0.2.1 20120601010203 text/html %d\n%b\n" % (len(page), page)
    )
    Path(NAME).write_bytes(member)
    Path("keys.tsv").write_text(f"com.example/A:http\t1346876860425 1346903912043 12 0 {len(member)}\n")
    build(tmp_path, Path("keys.tsv"))
    assert main(["index", "-q", "--dir-root", ".", "-o", "all.cdxj", "parse-output"]) == 0
    for source, copied in (("all.cdxj", "1 capture "), ("x.tree", "0 captures ")):
        assert main(["copy", "-p", "1", "-o", "out", "--archives", ".", source, "*.example.com"]) == 0
        assert f"out: {copied}" in capsys.readouterr().err
    assert len(rows("out")) == 1
