"""The options of the CDX server."""

from cdxmill.options.option import Options, argument, option


class CdxServing(Options):
    """The arguments of `cdx-server`."""

    clusters: list[str] = argument(
        "CLUSTER...",
        "ZipNum clusters: directory, URL (http, https, s3) or name of a crawl, such as CC-MAIN-2024-22 or CC-MAIN-2024-*."
        " NAME=CLUSTER gives it a name; without one, it has the name of its directory. Several with the same NAME are"
        " searched as one.",
    )
    bind: str = option(
        "--bind ADDRESS",
        "IP address to listen on. 0.0.0.0: all addresses of this machine.",
        default="127.0.0.1",
    )
    port: int = option("--port", "Port to listen on. 0: any free port.", default=8090, min=0, max=65535)
    workers: int = option(
        "--workers N", "Number of processes that answer requests.", default=1, min=1, max=256
    )
    replay: str | None = option(
        "--replay URL",
        "Address of the replay server, such as http://localhost:8080/web/. Timemaps, the timegate and the page link to it.",
        default=None,
    )
    access: list[str] = option(
        "--access FILE",
        "Access rules in pywb's .aclj form. Captures that they exclude or block are not shown. May be repeated.",
        default=(),
    )
    embargo: str | None = option(
        "--embargo RULE",
        "Captures that are not shown, unless a rule has allow_ignore_embargo: newer:PERIOD, older:PERIOD (such as 1y6m"
        " or 30d), before:TIME or after:TIME.",
        default=None,
    )
    rate: int = option(
        "--rate N",
        "Requests per second that one client may send, over 10 seconds. More get the status 429. 0: no limit.",
        default=0,
        min=0,
    )
    cache: int | None = option(
        "--cache N",
        "Memory of each worker, in MiB, for answers, and sections of blocks, that are asked for again. 0: none."
        " Default: its part of 1/32 of the memory of this machine or container, at least 64 and at most 512.",
        default=None,
        min=0,
        max=1 << 20,
    )
    log: str | None = option(
        "--log FILE", "Write a line for each request to this file; - is stderr.", default=None
    )
