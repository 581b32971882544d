"""The commands of the pages print what the pages show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .pages import PAGES, ROOT, environment, fences, page_examples, page_name, run_examples, shows

WITH_EXAMPLES = [page for page in PAGES if page_examples(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=page_name)
def test_the_examples_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    shown = page_examples(page)
    printed = run_examples([example.command for example in shown], tmp_path)
    assert len(printed) == len(shown)
    wrong = [
        f"$ {example.command}\n--- the page shows\n{example.output}--- printed is\n{output}"
        for example, output in zip(shown, printed, strict=True)
        if not shows(example.output, output)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_first_commands_of_the_readme_can_be_pasted_line_by_line(tmp_path: Path) -> None:
    install, use = fences(ROOT / "README.md", "sh")[:2]
    assert not any("#" in line or "[" in line for line in (*install.splitlines(), *use.splitlines()))
    (tmp_path / "warcs").mkdir()
    (tmp_path / "warcs/iana.warc.gz").symlink_to(Path(sys.prefix) / "sample_archive/warcs/iana.warc.gz")
    build, lookup, serve = use.replace("~/", "").splitlines()
    assert serve == "cdxmill serve cluster"  # tests/serving starts it
    built, found = run_examples([build, lookup], tmp_path)
    assert "captures of 1 archive" in built, built
    assert found.startswith("org,iana)/ 20140126200624 "), found


def test_quickstart_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shown = next(text for text in fences(ROOT / "README.md", "text") if text.startswith("$ bin/quickstart\n"))
    env = {**environment(), "CDXMILL_VENV": sys.prefix}
    done = subprocess.run(
        [ROOT / "bin/quickstart"],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    printed = done.stdout.replace(f"{sys.prefix}/", ".venv/").replace("\n\n== ", "\n== ")
    wanted = shown.removeprefix("$ bin/quickstart\n")
    assert shows(f"...\n{wanted}", printed), printed


def test_two_weeks_of_a_collection_are_as_the_page_shows(tmp_path: Path) -> None:
    shown = next(text for text in fences(ROOT / "docs/collection.md", "text") if "bin/two_weeks.py" in text)
    command = [sys.executable, str(ROOT / "bin/two_weeks.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    wanted = shown.partition("\n")[2]
    assert (done.returncode, done.stderr) == (0, "")
    assert shows(wanted, done.stdout), done.stdout
