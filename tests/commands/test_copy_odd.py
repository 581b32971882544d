"""`copy` beside files of others, after a kill that left junk, and of lines that lead astray: nothing is lost or written twice."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.copying.output import CopyOutput

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
    assert run("out", "-q") == 0
    assert rows("out") == rows("whole/out")
    assert not Path("out/.work").exists()


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
