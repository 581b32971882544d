# shellcheck shell=bash
# What the launchers share: their options, index_env.sh, the checks before a job, the job, the word at the end.
#
# Sourced; says what it does in functions, which a launcher calls in the order in which they stand here.
# Exit status: that of the job, and 2 for what is found out before it starts.
set -euo pipefail

launcher=$(basename -- "$0")
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
started_in=$PWD
dry_run=false
background=false
runner=''
arguments=()
places=()
INDEX_OPTIONS=()
SAMPLE_OPTIONS=()
ZIPNUM_OPTIONS=()
# What tasks on one's own Hadoop are told of S3; on EMR the nodes' role says it all.
aws_settings=(AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION
    AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3)

say() {
    printf '%s: %s\n' "$launcher" "$1" >&2
}

fail() {
    say "$1"
    exit 2
}

# The comment at the top of the launcher.
usage() {
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$root/bin/$launcher"
}

# The launcher's own options; all others are left in `arguments`, for the job. -r is RUNNER by another name.
take_arguments() {
    while [[ $# -gt 0 ]]; do
        case "$1" in
            -h | --help)
                usage
                exit 0
                ;;
            --dry-run) dry_run=true ;;
            --background) background=true ;;
            -r | --runner)
                [[ $# -gt 1 ]] || fail "$1 needs a value: hadoop, emr or local"
                runner=$2
                shift
                ;;
            --runner=*) runner=${1#*=} ;;
            *) arguments+=("$1") ;;
        esac
        shift
    done
}

# Words that come first in `arguments`, no more than so many: a year and week, and what belongs to it, in `places`.
take_places() {
    while [[ ${#arguments[@]} -gt 0 && ${#places[@]} -lt $1 && "${arguments[0]}" != -* ]]; do
        places+=("${arguments[0]}")
        arguments=("${arguments[@]:1}")
    done
    [[ ${#places[@]} -eq 0 ]] || export YEARWEEK=${places[0]}
}

# index_env.sh; with "optional" as argument it may be absent.
read_settings() {
    local file=${INDEX_ENV:-$root/index_env.sh}
    [[ "$file" == /* ]] || file=$started_in/$file
    if [[ -r "$file" ]]; then
        bash -n "$file" || fail "$file is no shell script: the reason stands above"
        set +eu
        # shellcheck source=/dev/null
        source "$file"
        set -eu
    elif [[ "${1:-}" != optional || -n "${INDEX_ENV:-}" ]]; then
        fail "there is no $file: cp index_env.sample.sh index_env.sh, and fill it in"
    fi
    cd -- "$root" # relative paths mean the same from wherever a launcher is called
}

# Which engine: -r, else RUNNER, else the argument.
pick_runner() {
    RUNNER=${runner:-${RUNNER:-${1:-}}}
    case "$RUNNER" in
        hadoop | emr | local | inline) ;;
        '') fail "RUNNER is not set: say hadoop, emr or local in index_env.sh, or -r local" ;;
        *) fail "RUNNER is hadoop, emr or local, not $RUNNER" ;;
    esac
}

# Settings that a step cannot do without.
need() {
    local name
    for name in "$@"; do
        [[ -n "${!name:-}" && "${!name}" != '<'*'>' ]] || fail "$name is not set: fill it in in index_env.sh"
    done
}

# One crawl's cluster must not be taken for another's where index_env.sh has a fixed place.
check_year_and_week() {
    [[ "$ZIPNUM_CLUSTER_DIR" == *"$YEARWEEK"* ]] ||
        fail "ZIPNUM_CLUSTER_DIR=$ZIPNUM_CLUSTER_DIR is not that of $YEARWEEK: write \$YEARWEEK into it in index_env.sh"
}

check_settings() {
    case "$1" in
        index)
            need WARC_MANIFEST WARC_CDX_BUCKET
            local manifests manifest
            read -r -a manifests <<<"$WARC_MANIFEST"
            for manifest in "${manifests[@]}"; do
                [[ "$manifest" == - || "$manifest" == *://* || -r "$manifest" ]] ||
                    fail "WARC_MANIFEST: there is no $manifest: name a file, or an hdfs:// or s3:// URL"
            done
            ;;
        sample) need "$([[ -n "${WARC_CDX_SAMPLE:-}" ]] && echo WARC_CDX_SAMPLE || echo WARC_CDX)" SPLIT_FILE ;;
        zipnum) need WARC_CDX SPLIT_FILE ZIPNUM_CLUSTER_DIR ;;
    esac
}

find_python() {
    if [[ -n "${CDXMILL_VENV:-}" ]]; then
        python=$CDXMILL_VENV/bin/python
    elif [[ -x .venv/bin/python ]]; then
        python=$root/.venv/bin/python
    else
        python=$(command -v python3) || fail 'there is no python3: install Python 3.11'
    fi
    "$python" -c 'import cdxmill, mrjob' 2>/dev/null ||
        fail "$python cannot import cdxmill: run bin/setup-env s3, or pip install -r requirements.txt"
}

# mrjob's settings: MRJOB_CONF, or mrjob.conf as in webarchive-indexing, or the sample that comes with cdxmill.
find_conf() {
    conf=${MRJOB_CONF:-$root/mrjob.conf}
    [[ -n "${MRJOB_CONF:-}" || -r "$conf" ]] || conf=$root/conf/mrjob-${RUNNER/inline/local}.conf
    [[ -r "$conf" ]] || fail "MRJOB_CONF: there is no $conf: copy conf/mrjob-$RUNNER.conf"
}

check_hadoop() {
    local name
    for name in HADOOP_PREFIX HADOOP_HOME HADOOP_INSTALL HADOOP_MAPRED_HOME; do
        [[ -z "${!name:-}" || ! -x "${!name}/bin/hadoop" ]] || return 0
    done
    [[ -z "${HADOOP_HOME:-}" ]] || fail "HADOOP_HOME: there is no $HADOOP_HOME/bin/hadoop: set it to the folder of Hadoop"
    command -v hadoop >/dev/null ||
        fail 'there is no Hadoop: set HADOOP_HOME, or put hadoop on the PATH, or take RUNNER=emr or RUNNER=local'
}

check_emr() {
    "$python" -c 'import boto3' 2>/dev/null || fail "RUNNER=emr needs boto3: $python -m pip install boto3"
    ! grep -q '^[^#]*s3://my-bucket/' -- "$conf" ||
        fail "$conf has s3://my-bucket, which is not yours: cp conf/mrjob-emr.conf mrjob.conf, and change it there"
    grep -q '^ *aws_access_key_id:' -- "$conf" ||
        "$python" -c 'import boto3, sys; sys.exit(boto3.Session().get_credentials() is None)' ||
        fail 'there are no AWS credentials: run aws configure, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
}

# What jobs of this RUNNER need on this machine; a dry run goes without it.
check_engine() {
    find_python
    find_conf
    $dry_run && return
    case "$RUNNER" in
        hadoop) check_hadoop ;;
        emr) check_emr ;;
    esac
}

# Asks cdxmill of a path or URL: 0 yes, 1 no, 2 that cannot be told, and why is said.
ask() {
    "$python" -c "
import sys
from cdxmill.errors import CdxmillError
from cdxmill.storage import choose, walk
place = sys.argv[1]
try:
    sys.exit(not ($1))
except CdxmillError as error:
    if '404' in str(error):
        sys.exit(1)
    print(error, file=sys.stderr)
    sys.exit(2)" "$2"
}

is_there() {
    ask 'choose.exists(place)' "$1"
}

has_files() {
    ask 'choose.exists(place) or any(walk.files_like(place) if walk.is_glob(place) else walk.files_below(place))' "$1"
}

# CDX files in S3 are looked for before a cluster is started; where elsewhere none are, Hadoop says so in seconds.
check_cdx() {
    local pattern patterns found
    ! $dry_run || return 0
    read -r -a patterns <<<"$1"
    for pattern in "${patterns[@]}"; do
        [[ "$pattern" == s3*://* && "$pattern" != *'{'* ]] || continue
        found=0
        has_files "$pattern" || found=$?
        [[ $found -ne 1 ]] || fail "there is no CDX file at $pattern: see to WARC_CDX, or run bin/runindexwarcs.sh first"
    done
}

# Starts the launcher anew with the arguments that it was given, behind the shell; everything is checked by now.
go_to_background() {
    $background && ! $dry_run || return 0
    local words=() word log
    for word in "$@"; do
        [[ "$word" == --background ]] || words+=("$word")
    done
    log=$started_in/${launcher%.sh}-$(date +%Y%m%d-%H%M%S).log
    { : >"$log"; } 2>/dev/null || fail "$log cannot be written: call $launcher from another folder"
    (cd -- "$started_in" && exec nohup "$root/bin/$launcher" "${words[@]}" >"$log" 2>&1 </dev/null) &
    say "started as process $!; its words, the exit status last, go to $log"
    exit 0
}

# The words of a step's job, in `job`; further arguments are options for it.
job_of() {
    local step=$1 input=() name
    shift
    job=(-r "$RUNNER" --conf-path "$conf")
    if [[ "$RUNNER" == hadoop ]]; then
        for name in "${aws_settings[@]}"; do
            [[ -z "${!name:-}" ]] || job+=(--cmdenv "$name=${!name}")
        done
    fi
    case "$step" in
        index)
            job=("$python" "$root/jobs/indexwarcsjob.py" "${job[@]}" --cdx_bucket "$WARC_CDX_BUCKET")
            [[ -z "${WARC_BUCKET:-}" ]] || job+=(--warc_bucket "$WARC_BUCKET")
            [[ -z "${S3_LOCAL_TEMP_DIR:-}" ]] || job+=(--s3_local_temp_dir "$S3_LOCAL_TEMP_DIR")
            job+=("${INDEX_OPTIONS[@]}" "$@")
            read -r -a input <<<"$WARC_MANIFEST"
            ;;
        sample)
            job=("$python" "$root/jobs/dosample.py" "${job[@]}" --splitfile "$SPLIT_FILE")
            [[ -z "${SHARDS:-}" ]] || job+=(--shards "$SHARDS")
            job+=("${SAMPLE_OPTIONS[@]}" "$@")
            read -r -a input <<<"${WARC_CDX_SAMPLE:-$WARC_CDX}"
            ;;
        zipnum)
            job=("$python" "$root/jobs/zipnumclusterjob.py" "${job[@]}" --splitfile "$SPLIT_FILE")
            job+=(--zipnum-dir "$ZIPNUM_CLUSTER_DIR")
            [[ -z "${ZIPNUM_OUTPUT_DIR:-}" ]] || job+=(--output-dir "$ZIPNUM_OUTPUT_DIR")
            [[ -z "${SHARDS:-}" ]] || job+=(--shards "$SHARDS")
            job+=("${ZIPNUM_OPTIONS[@]}" "$@")
            read -r -a input <<<"$WARC_CDX"
            ;;
    esac
    job+=("${input[@]}")
}

# A command as a person would type it; keys are named and not shown.
typed() {
    local word line=''
    for word in "$@"; do
        if [[ "$word" =~ ^(AWS_[A-Z_]+)= ]]; then
            word="\"${BASH_REMATCH[1]}=\$${BASH_REMATCH[1]}\""
        elif [[ ! "$word" =~ ^[[:alnum:]_./:=@%+,-]+$ ]]; then
            word="'${word//"'"/"'\\''"}'"
        fi
        line+=" $word"
    done
    printf '%s\n' "${line# }"
}

# Runs a command so that signals to this script reach it; the exit status is the command's, in `status`.
run() {
    local signalled=false child
    status=0
    set -m # without it the command would not hear of Ctrl-C
    "$@" &
    child=$!
    set +m
    trap 'signalled=true; kill -s INT -- "$child" 2>/dev/null || true' INT
    trap 'signalled=true; kill -s TERM -- "$child" 2>/dev/null || true' TERM HUP
    wait "$child" || status=$?
    while $signalled; do
        signalled=false
        status=0
        wait "$child" || status=$?
    done
    trap - INT TERM HUP
}

# Runs a command, or shows it only; its exit status in `status`.
run_or_show() {
    status=0
    if $dry_run; then
        typed "$@"
    else
        say "runs $(typed "$@")"
        run "$@"
    fi
}

# Runs the job of a step; its exit status in `status`.
run_step() {
    job_of "$@"
    run_or_show "${job[@]}"
}

# The last word, and the end; the argument is what comes next.
end() {
    $dry_run && exit 0
    case $status in
        0) say "done (exit status 0); next: $1" ;;
        1) say "done but for what is named above (exit status 1); next: see to it and run this again, or $1" ;;
        130 | 143) say "stopped by a signal (exit status $status); run it again to go on" ;;
        *) say "stopped (exit status $status): the reason stands above, and docs/launchers.md says what to do" ;;
    esac
    exit "$status"
}

# A launcher of one step: the step, what to do next, the arguments.
launch() {
    local step=$1 next=$2
    shift 2
    take_arguments "$@"
    read_settings
    pick_runner
    check_settings "$step"
    check_engine
    case $step in
        sample) check_cdx "${WARC_CDX_SAMPLE:-$WARC_CDX}" ;;
        zipnum) check_cdx "$WARC_CDX" ;;
    esac
    go_to_background "$@"
    run_step "$step" "${arguments[@]}"
    end "$next"
}
