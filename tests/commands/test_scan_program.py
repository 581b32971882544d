"""What a scan is asked for, compiled: conditions, lists, functions of the user, and what decides how an output looks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.scanning import ask as asking
from cdxmill.commands.scanning import options as module
from cdxmill.commands.scanning.options import CALL, ListPlace, ScanOptions, compiled, needs_watch
from cdxmill.errors import AbsentError, InputError, OutageError, StoppedError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.options.contents import Scanning
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failures
from cdxmill.stages.scan.columns import Type
from cdxmill.storage.location import Location, locate

SOURCE = """
from typing import TypedDict
class Words(TypedDict):
    one: int
    two: str
def plain(record): return {"a": 1}
def typed(record) -> int: return 1
def words(record) -> Words: return {"one": 1, "two": "x"}
number = 5
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working directory with the module own_program and the list `hosts`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_program.py").write_text(SOURCE)
    (tmp_path / "broken_program.py").write_text("raise KeyError('x')")
    (tmp_path / "hosts").write_bytes(b"\xef\xbb\xbfa.com\r\nb.com\n")
    importlib.invalidate_caches()
    compiled.cache_clear()
    yield
    sys.modules.pop("own_program", None)
    compiled.cache_clear()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("m:f", (None, "m", "f", None)),
        ("p.m:f", (None, "p.m", "f", None)),
        ("c:m.f", ("c", "m", "f", None)),
        ("c:p.m.f", ("c", "p.m", "f", None)),
        ("c:m.f:int", ("c", "m", "f", "int")),
        ("m:f:int", None),
        ("m", None),
        ("m.f", None),
        (":f", None),
        ("m:", None),
        ("c:.f", None),
        ("c:m.", None),
        ("c:m.f:", None),
        ("a:b:m.f", None),
        ("m:f.g.", None),
    ],
)
def test_the_name_of_a_function(name: str, parts: tuple[str | None, ...] | None) -> None:
    found = CALL.fullmatch(name)
    assert (found and found.group("column", "module", "function", "type")) == parts


@pytest.mark.parametrize("to", ["jsonl.gz", "parquet"])
@pytest.mark.parametrize(
    ("name", "of_line", "of_table"),
    [
        ("own_program:plain", {}, {"plain": Type.JSON}),
        ("own_program:typed", {}, {"typed": Type.JSON}),
        ("own_program:words", {"one": Type.INT, "two": Type.TEXT}, {"one": Type.INT, "two": Type.TEXT}),
        ("n:own_program.plain", {"n": Type.JSON}, {"n": Type.JSON}),
        ("n:own_program.typed", {"n": Type.INT}, {"n": Type.INT}),
        ("n:own_program.typed:text", {"n": Type.TEXT}, {"n": Type.TEXT}),
    ],
)
def test_the_columns_of_a_function(
    name: str, of_line: dict[str, Type], of_table: dict[str, Type], to: str
) -> None:
    for of_page in (False, True):
        step = module._user_step(name, of_page, [], to == "parquet")
        assert (step.name, step.of_page, step.is_value) == (name, of_page, name.startswith("n:"))
        columns = {step.column: Type.JSON} if step.column else step.columns
        assert columns == (of_table if to == "parquet" else of_line)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "own_program",
            "invalid --call 'own_program'; expected MODULE:FUNCTION, or NAME:MODULE.FUNCTION:TYPE",
        ),
        ("absent_program:f", "--call absent_program:f: cannot be imported (ModuleNotFoundError"),
        ("broken_program:f", "--call broken_program:f: cannot be imported (KeyError: 'x')"),
        ("own_program:none", "--call own_program:none: own_program has no function none"),
        ("own_program:number", "--call own_program:number: own_program has no function number"),
        ("n:own_program.typed:date", "'date' is no type; expected text, int"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError) as found:
        compiled(ScanOptions(calls=(name,)))
    assert reason in str(found.value)


def test_the_files_that_options_name_are_part_of_them() -> None:
    files = compiled(
        ScanOptions(where=("host@hosts",), calls=("own_program:plain",), page_calls=("math:sqrt",))
    ).files
    assert files[:2] == [Path("hosts").read_bytes(), SOURCE.encode()]
    source = getattr(sys.modules["math"], "__file__", None)
    assert files[2:] == ([Path(source).read_bytes()] if source else [])
    compiled.cache_clear()
    steps = compiled(ScanOptions(calls=("own_program:plain",), page_calls=("sys:intern",)))
    assert steps.files == [SOURCE.encode()]
    assert [step.of_page for step in steps.extractor._steps] == [False, True]


def test_a_list_is_lines() -> None:
    read: list[Any] = []
    program = module._program(ScanOptions(), lambda path: read.append(path) or [], [])  # type: ignore[func-returns-value]
    assert (read, program.files) == ([], [])
    (group,) = [compiled(ScanOptions(where=("host@hosts",))).plan]
    assert "match.host" in group.matched()
    assert compiled(ScanOptions(where=("host@hosts",))) is compiled(ScanOptions(where=("host@hosts",)))


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("", "hosts", "hosts"),
        ("/base", "hosts", "/base/hosts"),
        ("/base", "/own/hosts", "/own/hosts"),
        ("/base", "s3://b/hosts", "s3://b/hosts"),
        ("", "http://h/hosts", "http://h/hosts"),
        ("", "file:///own/a%20b", "file:///own/a%20b"),
        ("/base", "file:///own/a%20b", "/own/a b"),
    ],
)
def test_a_list_is_where_the_command_was_started(
    base: str, path: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ListPlace, "base", base)
    assert ListPlace.of(path) == locate(expected)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AbsentError("hosts", "is not there"), UsageError),
        (InputError("hosts", "is odd"), UsageError),
        (OutageError("hosts", "no answer"), StoppedError),
    ],
)
def test_a_list_that_cannot_be_read_is_named(
    error: InputError, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Location) -> bytes:
        raise error

    monkeypatch.setattr(Location, "read_bytes", fails)
    with pytest.raises(kind, match=f"--where: hosts: {error.reason}"):
        compiled(ScanOptions(where=("host@hosts",)))


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({}, True),
        ({"seconds": 1.0}, True),
        ({"memory": 1}, True),
        ({"processes": 9}, True),
        ({"existing": Rule.REPLACE}, True),
        ({"quiet": True}, True),
        ({"where": ("status=404",)}, False),
        ({"extract": "url"}, False),
        ({"finds": ("x=url~a",)}, False),
        ({"calls": ("own_program:plain",)}, False),
        ({"page_calls": ("own_program:plain",)}, False),
        ({"to": "jsonl"}, False),
        ({"detector": "py3langid"}, False),
        ({"sample": "1%"}, False),
        ({"seed": 1}, False),
        ({"limit": 0.5}, False),
    ],
)
def test_what_decides_how_an_output_looks(changed: dict[str, Any], is_same: bool) -> None:
    plain = ScanOptions().settings("")
    other = ScanOptions(**changed).settings("")
    assert (other == plain) == is_same
    assert other != ScanOptions(**changed).settings("digest")


def test_an_output_is_made_again_if_a_list_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ScanOptions(where=("host@hosts",))
    before = options.settings("")
    assert before == options.settings("")
    Path("hosts").write_bytes(b"c.com\n")
    compiled.cache_clear()
    assert options.settings("") != before
    plain = ScanOptions().settings("")
    monkeypatch.setattr(module, "__version__", "0")
    assert ScanOptions().settings("") != plain


def test_settings_do_not_prove_anything() -> None:
    settings, archive = ScanOptions().settings(""), Input(locate("a.gz"), "a.gz", "a.gz")
    assert settings.is_proven(locate("o"), archive) is False
    assert settings.fits(locate("o"), archive) is True
    digests = {
        settings.digest("a.gz"),
        settings.digest("b.gz"),
        ScanOptions(to="jsonl").settings("").digest("a.gz"),
    }
    assert len(digests) == 3
    assert len(settings.digest("\udcff")) == 64


@pytest.mark.parametrize(
    ("changed", "is_watched"),
    [
        ({}, False),
        ({"to": "jsonl"}, False),
        ({"to": "jsonl.zst"}, False),
        ({"to": "parquet"}, True),
        ({"to": "warc.gz"}, True),
        ({"to": "wet.zst"}, True),
        ({"where": ("status=200",)}, False),
        ({"where": ("url~a",)}, True),
        ({"where": ("title:a",)}, True),
        ({"extract": "title"}, True),
        ({"finds": ("x=url~a",)}, True),
        ({"calls": ("own_program:plain",)}, True),
        ({"page_calls": ("own_program:plain",)}, True),
    ],
)
def test_a_scan_that_may_take_long_is_watched(changed: dict[str, Any], is_watched: bool) -> None:
    assert needs_watch(ScanOptions(**changed)) == is_watched


@pytest.mark.parametrize(
    ("changed", "conditions"),
    [
        ({}, ()),
        ({"where": ("a", "b")}, ("a", "b")),
        ({"limit": 0.25}, ("sample<=0.25",)),
        ({"sample": "5"}, ()),
        ({"sample": "100%"}, ()),
        ({"sample": "1%"}, ("sample<0.01",)),
        ({"where": ("a",), "limit": 0.5, "sample": "50%"}, ("a", "sample<=0.5", "sample<0.5")),
        ({"limit": 0.0}, ("sample<=0.0",)),
    ],
)
def test_a_sample_is_a_condition(changed: dict[str, Any], conditions: tuple[str, ...]) -> None:
    assert module._conditions(ScanOptions(**changed)) == conditions


@pytest.mark.parametrize(
    ("changed", "missing", "named"),
    [
        ({"extract": "title"}, "selectolax.lexbor", r"selectolax is not installed; .*\[scan\]"),
        ({"extract": "lang"}, "resiliparse.parse.lang", r"resiliparse is not installed; .*\[scan\]"),
        ({"where": ("title:a",)}, "ada_url", r"ada_url is not installed; .*\[scan\]"),
        ({"page_calls": ("own_program:plain",)}, "ada_url", r"ada_url is not installed"),
        ({"extract": "url"}, "ada_url", ""),
        ({"extract": "title"}, "py3langid", ""),
        (
            {"extract": "title", "detector": "py3langid"},
            "py3langid",
            r"py3langid is not installed; .*\[languages\]",
        ),
        ({"to": "parquet"}, "pyarrow", r"pyarrow is not installed; .*\[parquet\]"),
    ],
)
def test_a_library_is_asked_for_if_it_is_needed(
    changed: dict[str, Any], missing: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing.split(".")[0], None)
    monkeypatch.setitem(sys.modules, missing, None)
    if named:
        with pytest.raises(UsageError, match=named):
            compiled(ScanOptions(**changed))
    else:
        compiled(ScanOptions(**changed))


def test_a_library_without_a_name_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ModuleNotFoundError("a part of a library")

    monkeypatch.setattr(module, "_program", fails)
    with pytest.raises(UsageError, match="is not installed"):
        compiled(ScanOptions())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"where": ("odd",)}, "odd"),
        ({"extract": "none"}, "none"),
        ({"sample": "0"}, "invalid --sample '0'"),
        ({"to": "parquet", "extract": ""}, "a Parquet file has at least one column; give --extract"),
    ],
)
def test_what_cannot_be_compiled_is_wrong_usage(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        compiled(ScanOptions(**changed))
    if changed.get("extract") == "":
        assert compiled(ScanOptions(extract="")).extractor.columns == {}


def asked(**options: Any) -> Scanning:
    return Scanning(["w"], output="o", **options)


def test_the_options_of_a_scan() -> None:
    made = asked(
        where="a", find=iter(["x", "y"]), call="m:f", call_page=["m:g"], detector="py3langid", sample=5, seed=7,
        timeout=3.5, memory=2, processes=3, to="jsonl", extract="url", replace=True,
    )  # fmt: skip
    made.quiet = False
    assert asking._scan_options(made) == ScanOptions(
        where=("a",), extract="url", finds=("x", "y"), calls=("m:f",), page_calls=("m:g",), to="jsonl",
        detector="py3langid", sample="5", seed=7, seconds=3.5, memory=2 << 20, processes=3, existing=Rule.REPLACE,
    )  # fmt: skip
    plain = asking._scan_options(asked())
    assert (plain.where, plain.finds, plain.calls, plain.page_calls) == ((), (), (), ())
    assert (plain.sample, plain.seed, plain.existing, plain.quiet) == (None, 0, Rule.REFUSE, True)


@pytest.mark.parametrize(
    ("to", "extract", "expected"),
    [
        ("jsonl", None, "url,time,type,status,mime,offset,length"),
        ("jsonl", "title", "title"),
        ("jsonl", "", ""),
        ("wet.gz", None, "text_lines"),
        ("wet.zst", " main_text ", "main_text"),
        ("wet.gz", "text_lines", "text_lines"),
        ("wet.gz", "text", "text"),
        ("wet.gz", "title", None),
        ("wet.zst", "text,url", None),
        ("wet.gz", "", None),
    ],
)
def test_the_fields_of_an_output(to: str, extract: str | None, expected: str | None) -> None:
    made = asked(to=to, extract=extract)
    if expected is None:
        with pytest.raises(UsageError, match=rf"--to {to} writes texts; expected --extract text_lines, main_text or text, not {extract}"):  # fmt: skip
            asking._fields(made)
    else:
        assert asking._fields(made) == expected


def test_what_is_asked_for_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def scan(*args: Any) -> str:
        given.extend(args)
        return "done"

    monkeypatch.setattr(asking, "scan", scan)
    Path("w/o").mkdir(parents=True)
    for name in ("a.warc.gz", "o/b.warc.gz"):
        Path("w", name).write_bytes(b"x")
    failures = Failures(printed=False)
    run: Any = object()
    made = Scanning(["w"], output="w/o", to="jsonl", captures=Path("L"))
    assert asking.scan_asked(made, failures, run) == "done"  # type: ignore[comparison-overlap]
    names, output, options, *rest = given
    assert {one.path: name for one, name in names.items()}["w/a.warc.gz"] == "a.warc.jsonl"
    assert (output, options.to, rest) == ("w/o", "jsonl", [failures, "L", run])
    with pytest.raises(UsageError, match="an archive from a pipe has no name for its output; give a file"):
        asking.scan_asked(Scanning(["-"], output="o"), failures)
