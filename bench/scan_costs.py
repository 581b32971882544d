"""Where the time of `scan` goes: CPU time of runs that do more and more with each page.

python -m bench.scan_costs ARCHIVE [RUNS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from statistics import median

from bench.contenders import program

PAGE = "mime=text/html and "
STEPS = (
    ("decompress and find the records", ["--where", "url:nowhere-to-be-found"]),
    ("HTTP head", ["--where", "status=999"]),
    ("body", ["--where", PAGE + "body:nowhere-to-be-found"]),
    ("title", ["--where", PAGE + "title:nowhere-to-be-found"]),
    ("links", ["--where", PAGE + "(title:nowhere-to-be-found or link:nowhere-to-be-found)"]),
    ("parse the HTML, text and language", ["--where", PAGE + "(link:nowhere-to-be-found or lang=ba)"]),
    ("rows as JSON", ["--where", "mime=text/html", "--extract", "url,title,text,links,lang"]),
)


def cpu_seconds(archive: str, options: list[str]) -> float:
    """User and system time of a run."""
    with tempfile.TemporaryDirectory() as directory:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            program("cdxmill"),
            "scan",
            "-q",
            "-p",
            "1",
            "--to",
            "jsonl",
            "-o",
            f"{directory}/out",
            *options,
        ]
        subprocess.run([*command, archive], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    archive, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    before = 0.0
    print("| step | CPU s | more |\n|---|--:|--:|")
    for name, options in STEPS:
        seconds = median(cpu_seconds(archive, options) for _ in range(runs))
        print(f"| {name} | {seconds:.2f} | {seconds - before:.2f} |", flush=True)
        before = seconds


if __name__ == "__main__":
    main()
