"""What the functions of the command line call, and what they say at the end. The commands themselves are replaced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import UsageError
from cdxmill.running.failures import Failures

Call = Callable[..., object]


class Called:
    """Functions of the package that are replaced. It notes what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.given: list[tuple[Any, ...]] = []
        self.named: list[dict[str, Any]] = []

    def replace(self, name: str, answer: Call | object) -> None:
        """Replace a function by one that notes its arguments, and gives the answer, or calls it."""

        def call(*given: Any, **named: Any) -> object:
            self.given.append(given)
            self.named.append(named)
            return answer(*given) if callable(answer) else answer

        self._patch.setattr(f"cdxmill.{name}", call)


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text("x\n")
    Path("none").write_text("\n")
    return Called(monkeypatch)


def ended(capfd: pytest.CaptureFixture[str], call: str) -> tuple[int, str, str]:
    """The status of a call, and what it printed."""
    status = main(call.split())
    out, error = capfd.readouterr()
    return status, out, error


@pytest.mark.parametrize(
    ("call", "out", "told"),
    [
        ("cat a --table t", "", "t: 3 records\n"),
        ("cat a --table -", "rows\n", "3 records\n"),
        ("cat a --offset 1", "content", ""),
    ],
)
def test_cat_prints_a_record_or_writes_a_table(
    call: str, out: str, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    def table(asked: object, failures: Failures, out: Any = None) -> int:
        if out is not None:
            out.write(b"rows\n")
        return 3

    called.replace("commands.cat.table_asked", table)
    called.replace("commands.cat.content_asked", [b"con", b"tent"])
    assert ended(capfd, call) == (0, out, told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("copy C u", "cdxmill: give -o OUTPUT, or --dry-run\n"),
        ("copy C -o out -i none", "cdxmill: none: has no queries\n"),
        ("copy C --dry-run -i none", "cdxmill: none: has no queries\n"),
    ],
)
def test_copy_has_to_know_what_and_where(
    call: str, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace("commands.copying.plan.ask", "plan")
    assert ended(capfd, call) == (2, "", told)
    assert called.given == []


@pytest.mark.parametrize(("failed", "more"), [(0, ""), (2, "2 failures, listed in out/copy-failures.tsv\n")])
def test_copy_asks_all_queries_and_says_where_failures_are(
    failed: int, more: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    def copied(asked: object, output: str, options: object, failures: Failures) -> str:
        failures.count += failed
        return "done"

    called.replace("commands.copying.plan.ask", "plan")
    called.replace("commands.copying.copy.copy", copied)
    assert ended(capfd, "copy C u v -o out -i a") == (1 if failed else 0, "", f"out: done\n{more}")
    (_, queries), (plan, output, *_) = called.given
    assert (queries, plan, output) == (["u", "v", "x"], "plan", "out")


def test_without_a_query_all_lines_are_copied(called: Called, capfd: pytest.CaptureFixture[str]) -> None:
    called.replace("commands.copying.plan.ask", "plan")
    called.replace("commands.copying.copy.copy", "done")
    assert ended(capfd, "copy a -o out") == (0, "", "out: done\n")
    assert called.given[0][1] == []


@pytest.mark.parametrize(("option", "out"), [("", "table"), (" --json", "json")])
def test_a_dry_run_prints_sizes(
    option: str, out: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, answer in (
        ("plan.ask", "plan"),
        ("check.check", "sizes"),
        ("check.as_json", "json"),
        ("check.as_table", "table"),
    ):
        called.replace(f"commands.copying.{name}", answer)
    assert ended(capfd, f"copy C u --dry-run{option}") == (0, out, "")


@pytest.mark.parametrize(
    ("is_new", "option", "told"),
    [(True, "", "C: done\nnext\n"), (False, "", "C: done\n"), (True, " -q", "")],
)
def test_zipnum_says_what_comes_next_after_a_new_cluster(
    is_new: bool, option: str, told: str, called: Called, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Done(SimpleNamespace):
        def __str__(self) -> str:
            return "done"

    called.replace("commands.clusters.next_step.next_lookup", "next")
    called.replace("commands.clusters.zipnum.build_cluster", Done(new=is_new))
    status, out, error = ended(capfd, f"zipnum -o C -s 1 a b{option}")
    assert (status, out, error.replace(f"{tmp_path}/", "")) == (0, "", told)
    paths, _, options, _ = called.given[0]
    assert (paths, options.make, options.is_far) == (["a", "b"], None, False)
    assert len(called.given) == (2 if is_new and not option else 1)


@pytest.mark.parametrize(
    ("call", "name", "against", "told"),
    [
        ("verify C", "clusters.verify.verify", None, "C: done\n"),
        ("verify C -q", "clusters.verify.verify", None, ""),
        ("verify C --against a b", "clusters.verify.verify", ["a", "b"], "C: done\n"),
        ("verify C b --against a", "clusters.verify.verify", ["a", "b"], "C: done\n"),
        ("verify C a", "per_archive.verify_archives.verify_archives", None, "a: done\n"),
    ],
)
def test_verify_takes_a_cluster_or_two_archives(
    call: str,
    name: str,
    against: list[str] | None,
    told: str,
    called: Called,
    capfd: pytest.CaptureFixture[str],
) -> None:
    called.replace(f"commands.{name}", "done")
    assert ended(capfd, call) == (0, "", told)
    ((asked, _),) = called.given
    assert asked.quiet == ("-q" in call)
    assert getattr(asked, "against", None) == against


def test_verify_takes_no_three_archives(called: Called, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, error = ended(capfd, "verify C a b")
    assert (status, error[:32]) == (2, "cdxmill: b: unexpected argument;")


@pytest.mark.parametrize(
    ("call", "watched"), [("serve C", None), ("serve C --watch in --settle 3 -p 2", ("C", "in", 3))]
)
def test_serve_may_watch_a_directory(
    call: str, watched: tuple[object, ...] | None, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace("commands.collections.watch.WatchedDirectory", "watched")
    called.replace("commands.clusters.serve.serve", 7)
    assert ended(capfd, call) == (7, "", "")
    *made, (_, given) = called.given
    assert given == (None if watched is None else "watched")
    assert [one[:3] for one in made] == ([] if watched is None else [watched])


def test_serve_may_write_the_configuration_alone(called: Called, capfd: pytest.CaptureFixture[str]) -> None:
    called.replace("commands.clusters.serve.write_config", Path("pywb/config.yaml"))
    told = "pywb/config.yaml: written; start pywb: wayback -d pywb -b 127.0.0.1 -p 8080\n"
    assert ended(capfd, "serve C --config-only pywb") == (0, "", told)


@pytest.mark.parametrize(
    ("call", "name", "told"),
    [
        ("add C a", "add.add", "advice\nC: done\n"),
        ("compact C", "compact.compact", "advice\nC: done\n"),
        ("remove C u", "remove.remove", "advice\nC: done\n"),
        ("merge -o all C", "merge.merge", "all: done\n"),
    ],
)
def test_commands_that_change_a_cluster_say_what_they_did_and_what_comes_next(
    call: str, name: str, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace(f"commands.collections.{name}", "done")
    called.replace("commands.collections.summary.advice", "advice")
    assert ended(capfd, call) == (0, "", told)


def test_a_removal_may_be_tried(called: Called, capfd: pytest.CaptureFixture[str]) -> None:
    def removed(asked: object, failures: Failures, write: Callable[[bytes], object]) -> object:
        write(b"line\n")
        return SimpleNamespace(counts=SimpleNamespace(removed=1234))

    called.replace("commands.collections.remove.remove", removed)
    assert ended(capfd, "remove C u --dry-run") == (0, "line\n", "C: 1,234 lines would be removed\n")


def test_add_reads_no_pipe_and_archives_on_this_machine_alone(
    called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    for call, told in (
        ("add C -", "cdxmill: add cannot read from a pipe"),
        ("add C a -", "cdxmill: add cannot read from a pipe"),
        ("add C a --engine spark", "cdxmill: --engine spark "),
    ):
        status, out, error = ended(capfd, call)
        assert (status, out, error[: len(told)]) == (2, "", told)


@pytest.mark.parametrize(
    ("call", "what", "inputs"),
    [
        ("count tags -o t a b", "tags", ["a", "b"]),
        ("count -o t --call m:f a b", None, ["a", "b"]),
        ("count -o t --call m:f --manifest list", None, []),
        ("count -o - tags a", "tags", ["a"]),
    ],
)
def test_count_takes_a_kind_of_item_or_a_function(
    call: str, what: str | None, inputs: list[str], called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace("commands.count.count_asked", "done")
    assert ended(capfd, call) == (0, "", "done\n")
    ((asked, output, *engine),) = called.given
    assert (asked.what, list(asked.inputs), len(engine)) == (what, inputs, 1)
    assert isinstance(output, str) is ("-o t" in call)


@pytest.mark.parametrize("name", ["estimate", "recompress"])
def test_recompress_may_only_estimate(name: str, called: Called, capfd: pytest.CaptureFixture[str]) -> None:
    called.replace(f"commands.per_archive.ask.{name}_asked", name)
    option = "--estimate" if name == "estimate" else "-o out"
    assert ended(capfd, f"recompress {option} a") == (0, "", f"{name}\n")
    assert len(called.given[0]) == 2


@pytest.mark.parametrize(("option", "told"), [("", "done\n"), (" --explain", "one\ntwo\ndone\n")])
def test_scan_explains_its_conditions_on_request(
    option: str, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    class Done(SimpleNamespace):
        def __str__(self) -> str:
            return "done"

    called.replace("commands.scanning.ask.scan_asked", Done(measured=["one", "two"]))
    assert ended(capfd, f"scan -o out a{option}") == (0, "", told)
    assert len(called.given[0]) == 2


@pytest.mark.parametrize(
    ("option", "out"),
    [("", "tables"), (" -q", ""), (" --json -", "json"), (" --json - -q", "json"), (" --json x", "tables")],
)
def test_report_prints_tables_or_json(
    option: str, out: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace("commands.reporting.report.report_asked", "made")
    called.replace("commands.reporting.report.format_json", b"json")
    called.replace("stages.report.terminal.format_tables", "tables")
    assert ended(capfd, f"report a{option}") == (0, out, "")
    assert [given[0] for given in called.given[1:]] == (["made"] if out else [])


@pytest.mark.parametrize(("output", "told"), [("-", ""), ("x.csv", "x.csv: done\n")])
def test_export_says_nothing_of_what_goes_to_stdout(
    output: str, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    called.replace("commands.exporting.export.export", "done")
    assert ended(capfd, f"export C --to csv -o {output}") == (0, "", told)
    assert called.given[0][2:] == (() if output == "-" else (None,))


@pytest.mark.parametrize(
    ("call", "status", "told"),
    [
        ("t.tree http://a.com/", 0, ""),
        ("t.tree -i a", 1, "cdxmill: wrong query\n"),
        ("t.tree", 2, "cdxmill: give either a QUERY or --input FILE\n"),
        ("t.tree u -i a", 2, "cdxmill: give either a QUERY or --input FILE\n"),
    ],
)
@pytest.mark.parametrize("header", [None, b"header"])
def test_the_items_of_a_tree_are_printed(
    header: bytes | None, call: str, status: int, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    def search(
        index: object, queries: object, prepared: object, report: Callable[[UsageError], None] | None
    ) -> object:
        yield [b"one", b"two"]
        if report is not None:
            report(UsageError("wrong query"))
        yield [b"three"]

    called.replace("search.prefix_index.open_prefix_index", nullcontext(SimpleNamespace(layout="layout")))
    called.replace("search.tree_query.PreparedTreeQuery", SimpleNamespace(header=header))
    called.replace("search.tree_query.search_tree", search)
    first = "" if header is None else "header\n"
    out = f"{first}one\ntwo\nthree\n" if status < 2 else ""
    assert ended(capfd, f"prefix-index search {call}") == (status, out, told)


@pytest.mark.parametrize(
    ("call", "status", "told"),
    [
        ("-o x.cdxj a", 0, "done\nnext x.cdxj\n"),
        ("-o x.cdxj a -q", 0, ""),
        ("-o X.CDXJ.GZ a", 0, "done\nnext X.CDXJ.GZ\n"),
        ("-o x.cdx a", 0, "x.cdx: note: the lines are CDXJ; for CDX lines, use --cdx11\ndone\nnext x.cdx\n"),
        ("-o x.cdx a -q", 0, ""),
        ("-o x.cdx a --cdx9", 0, "done\nnext x.cdx\n"),
        ("-o x.cdxj.gz a --cdx11", 2, "cdxmill: x.cdxj.gz: --cdx11 writes no CDXJ; choose a name that ends in .cdx or .cdx.gz\n"),
        ("-o x.cdxj a --update", 2, "cdxmill: --update needs an output directory\n"),
        ("-o - a", 0, "done\n"),
        ("-o 'out' a", 0, "gone\ndone out\nnext: cdxmill zipnum -o CLUSTER ''\"'\"'out'\"'\"''\n"),
    ],
)  # fmt: skip
def test_index_writes_one_file_or_a_directory_and_says_what_comes_next(
    call: str, status: int, told: str, called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    class Done(SimpleNamespace):
        def report(self, failures: Failures, listed: str) -> str:
            return "done out" if listed else "done"

    for kind in ("directory", "file", "stream"):
        called.replace(f"commands.per_archive.index.index_to_{kind}", Done(captures=3))
    called.replace("commands.clusters.next_step.next_lookup", lambda output: f"next {output}")
    called.replace("commands.clusters.next_step.as_typed", "cdxmill")
    called.replace("outputs.gone.outputs_of_gone", ["gone"])
    called.replace("outputs.gone.note_of_gone", "gone")
    assert ended(capfd, f"index {call}") == (status, "", told)
    assert (("x.cdxj",) in called.given) is ("next x.cdxj" in told), "else nobody reads it"


def test_an_index_without_captures_has_no_next_step(
    called: Called, capfd: pytest.CaptureFixture[str]
) -> None:
    summary = SimpleNamespace(captures=0, report=lambda failures, listed: "done")
    called.replace("commands.per_archive.index.index_to_file", summary)
    called.replace("commands.clusters.next_step.next_lookup", "next")
    assert ended(capfd, "index -o x.cdxj a") == (0, "", "done\n")
