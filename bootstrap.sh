#!/usr/bin/env bash
# Prepares a node for step 1 (bin/runindexwarcs.sh): installs Python 3.11 and the libraries that cdxmill needs.
#
#   bootstrap.sh [FOLDER [OPTIONS OF pip install]]
#
# FOLDER is /opt/cdxmill by default. conf/mrjob-emr.conf uses this script as a bootstrap action of EMR 7 (Amazon Linux
# 2023, x86-64 and aarch64). On your own Hadoop, if the nodes have dnf, run it as root on every node. cdxmill itself is
# sent with the job. Steps 2 and 3 need only Python 3.9 or later, and not this script.
# If the nodes cannot reach PyPI, give a mirror: bootstrap.sh /opt/cdxmill --index-url https://pypi.example.org/simple
set -euo pipefail

folder=${1:-/opt/cdxmill}
shift $(($# > 0))

# PyPI has wheels for both architectures, so nothing is compiled. The versions are those of constraints.txt.
libraries=(ada-url==4.0.0 boto3==1.44.5 deflate==0.8.1 isal==1.9.1 msgspec==0.22.0 orjson==3.13.0
    resiliparse==2.0.1 selectolax==1.0.2 stringzilla==5.3.2 urllib3==2.8.0 zstandard==0.25.0)

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    else
        sudo "$@"
    fi
}

command -v python3.11 >/dev/null || as_root dnf install --assumeyes --quiet python3.11 python3.11-pip
as_root python3.11 -m venv --clear -- "$folder"
as_root "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
    --only-binary :all: --retries 10 "$@" "${libraries[@]}"
"$folder/bin/python" -c 'import ada_url, boto3, deflate, isal, msgspec, orjson, resiliparse, selectolax, stringzilla, urllib3, zstandard'
