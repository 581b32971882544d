"""Options of prefix B-trees."""

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.option import AnyPath, Argument, Option, Paths, Replace
from cdxmill.options.queries import OUTPUTS, CaptureFilters, Fields


@dataclass(kw_only=True, repr=False, eq=False)
class TreeQuery(CaptureFilters):
    """What a prefix B-tree is asked besides the URL. `resume` is the key to start at."""

    limit: Annotated[int | None, Option(min=1, metavar="N", help="Print at most N lines.")] = None
    resume: Annotated[
        str | None,
        Option(
            metavar="KEY",
            help="Start at this key, such as the first field of the last line that was printed.",
        ),
    ] = None
    fields: Fields = None
    output: Annotated[
        str | None,
        Option(metavar="FORMAT", choices=OUTPUTS, help="Output format: cdxj, json, text, cdx or csv."),
    ] = None
    layout: Annotated[
        str | None,
        Option(
            metavar="LAYOUT",
            help="Fields of a pointer, as in prefix-index build. Default: those in FILE.layout, else capture.",
        ),
    ] = None
    keys: Annotated[
        str | None,
        Option(
            metavar="TYPE",
            choices=("surt", "reversed", "plain"),
            help="How keys are written: surt (com,example)/a), reversed (com.example/a:http) or plain. Default: that"
            " of the layout.",
        ),
    ] = None


@dataclass(kw_only=True, repr=False, eq=False)
class TreeOptions:
    """How a prefix B-tree is built. Without a layout it is `capture` for CDX lines, `classic` for pointers."""

    block_size: Annotated[int, Option(min=1, metavar="N", help="Bytes of a block.")] = 65536
    layout: Annotated[
        str | None,
        Option(
            metavar="LAYOUT",
            help="Fields of a pointer: capture, classic, or NAME:TYPE,NAME:TYPE... with the types u8, u16, u32 and"
            " u64. Default: capture for CDX lines, classic for pointers.",
        ),
    ] = None
    replace: Replace = False
    quiet: bool = field(default=True, init=False)


@dataclass(kw_only=True, repr=False, eq=False)
class TreeBuilding(TreeOptions):
    """The arguments of `prefix-index build`."""

    inputs: Annotated[
        Paths,
        Argument(
            "INPUT...",
            "Sorted CDX or CDXJ files, clusters, or files of keys and pointers; - reads standard input.",
        ),
    ] = field(kw_only=False)
    output: Annotated[
        AnyPath, Option("--output", "-o", metavar="FILE", help="File to write: path, s3 or hdfs URL.")
    ]
