# shellcheck shell=bash
# Shared by the launchers: options, index_env.sh, checks before a job, the job, the last message.
#
# Launchers source this file and call its functions, in the order in which they are defined here.
# Exit status: that of the job; 2 if a check before the job fails.
set -euo pipefail

launcher=$(basename -- "$0")
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
started_in=$PWD
dry_run=false
background=false
worst=0
runner=''
arguments=()
positional=()
INDEX_OPTIONS=()
SAMPLE_OPTIONS=()
ZIPNUM_OPTIONS=()
again='run this again'

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

# Parses the launcher's own options. All others stay in `arguments`, for the job. -r RUNNER overrides $RUNNER.
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

# Moves the first words of `arguments`, at most $1, to `positional`: a year and week, and what follows it.
# --replace and --replace-cluster may be before them.
take_positional() {
    local flags=()
    while [[ ${#arguments[@]} -gt 0 && "${arguments[0]}" == --replace* ]]; do
        flags+=("${arguments[0]}")
        arguments=("${arguments[@]:1}")
    done
    while [[ ${#arguments[@]} -gt 0 && ${#positional[@]} -lt $1 && "${arguments[0]}" != -* ]]; do
        positional+=("${arguments[0]}")
        arguments=("${arguments[@]:1}")
    done
    arguments=("${flags[@]}" "${arguments[@]}")
    [[ ${#positional[@]} -eq 0 ]] || export YEARWEEK=${positional[0]}
}

# Reads index_env.sh; with the argument "optional" it may be missing.
read_settings() {
    local file=${INDEX_ENV:-$root/index_env.sh}
    [[ "$file" == /* ]] || file=$started_in/$file
    if [[ -r "$file" ]]; then
        bash -n "$file" || fail "$file is not a valid shell script; see the message above"
        set +eu
        # shellcheck source=/dev/null
        source "$file"
        set -eu
    elif [[ "${1:-}" != optional || -n "${INDEX_ENV:-}" ]]; then
        fail "$file is missing; run cp index_env.sample.sh index_env.sh, and fill it in"
    fi
    cd -- "$root" # relative paths mean the same, whatever directory a launcher is started in
}

# Of launchers with all steps. Parses YEAR-WEEK, list and split points, and reads the settings, which need not exist with these.
# Arguments: what the list is called, the launcher's arguments.
take_crawl() {
    local list=$1
    take_arguments "${@:2}"
    take_positional 3
    [[ ${#positional[@]} -ne 1 ]] || fail "$list is missing after ${positional[0]}; see bin/$launcher --help"
    if [[ ${#positional[@]} -gt 0 ]]; then
        read_settings optional
    else
        read_settings
    fi
}

# Sets RUNNER: from -r, else $RUNNER, else the argument, which is that of webarchive-indexing.
pick_runner() {
    RUNNER=${runner:-${RUNNER:-$1}}
    case "$RUNNER" in
        hadoop | emr | local | inline) ;;
        *) fail "invalid RUNNER $RUNNER: expected hadoop, emr or local" ;;
    esac
}

# Fails unless these settings are set.
need() {
    local name
    for name in "$@"; do
        [[ -n "${!name:-}" && "${!name}" != '<'*'>' ]] || fail "$name is not set; set it in index_env.sh"
    done
}

# Fails if ZIPNUM_CLUSTER_DIR is the same for every crawl: another crawl's cluster would be used.
check_year_and_week() {
    [[ "$ZIPNUM_CLUSTER_DIR" == *"$YEARWEEK"* ]] ||
        fail "ZIPNUM_CLUSTER_DIR=$ZIPNUM_CLUSTER_DIR does not contain $YEARWEEK; use \$YEARWEEK in its value in index_env.sh"
}

# Whether the jobs run on this machine. The ZipNum job then finds split points itself, if it gets none.
is_here() {
    [[ "${RUNNER:-}" == local || "${RUNNER:-}" == inline ]]
}

check_settings() {
    case "$1" in
        index)
            need WARC_MANIFEST WARC_CDX_BUCKET
            local manifests manifest
            read -r -a manifests <<<"$WARC_MANIFEST"
            for manifest in "${manifests[@]}"; do
                [[ "$manifest" == - || "$manifest" == *://* || -r "$manifest" ]] ||
                    fail "WARC_MANIFEST: $manifest: no such file; give a file, or an hdfs:// or s3:// URL"
            done
            ;;
        sample) need "$([[ -n "${WARC_CDX_SAMPLE:-}" ]] && echo WARC_CDX_SAMPLE || echo WARC_CDX)" SPLIT_FILE ;;
        zipnum)
            need WARC_CDX ZIPNUM_CLUSTER_DIR
            is_here || need SPLIT_FILE
            ;;
    esac
}

# Of launchers with all steps. Sets `index`: whether there is a list of archives; an empty one skips step 1.
check_crawl() {
    index=true
    [[ ${#positional[@]} -eq 0 || -n "$WARC_MANIFEST" ]] || index=false
    ! $index || check_settings index
    check_settings zipnum
}

find_python() {
    if [[ -n "${CDXMILL_VENV:-}" ]]; then
        python=$CDXMILL_VENV/bin/python
    elif [[ -x .venv/bin/python ]]; then
        python=$root/.venv/bin/python
    else
        python=$(command -v python3) || fail 'python3 not found; install Python 3.11 or later'
    fi
    "$python" -P -c 'import cdxmill' 2>/dev/null ||
        fail "$python cannot import cdxmill; run bin/setup-env jobs s3, or pip install -r requirements.txt"
}

# Finds mrjob's settings: MRJOB_CONF, else mrjob.conf as in webarchive-indexing, else the sample in conf/.
find_conf() {
    conf=${MRJOB_CONF:-$root/mrjob.conf}
    [[ -n "${MRJOB_CONF:-}" || -r "$conf" ]] || conf=$root/conf/mrjob-${RUNNER/inline/local}.conf
    [[ -r "$conf" ]] || fail "MRJOB_CONF: $conf: no such file; copy conf/mrjob-$RUNNER.conf"
}

# Fails if mrjob is not installed, or does not know a setting: it would ignore it, and start a cluster in another region.
check_mrjob() {
    "$python" -P -W ignore -m cdxmill.jobs.launcher.old_settings "$RUNNER" "$conf" || exit 2
}

check_hadoop() {
    local name
    for name in HADOOP_PREFIX HADOOP_HOME HADOOP_INSTALL HADOOP_MAPRED_HOME; do
        [[ -z "${!name:-}" || ! -x "${!name}/bin/hadoop" ]] || return 0
    done
    [[ -z "${HADOOP_HOME:-}" ]] || fail "HADOOP_HOME: $HADOOP_HOME/bin/hadoop: no such file; set HADOOP_HOME to the directory of Hadoop"
    command -v hadoop >/dev/null ||
        fail 'no hadoop command found; set HADOOP_HOME, put hadoop on the PATH, or use RUNNER=emr or RUNNER=local'
}

check_emr() {
    "$python" -P -c 'import boto3' 2>/dev/null || fail "boto3 is not installed; RUNNER=emr needs it: $python -m pip install '.[s3]' in the checkout"
    ! grep -q '^[^#]*s3://my-bucket/' -- "$conf" ||
        fail "$conf still has s3://my-bucket; copy conf/mrjob-emr.conf to mrjob.conf, and set your own bucket there"
    grep -q '^ *aws_access_key_id:' -- "$conf" ||
        "$python" -P -c 'import boto3, sys; sys.exit(boto3.Session().get_credentials() is None)' ||
        fail 'no AWS credentials found; run aws configure, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
}

# Checks what jobs of this RUNNER need on this machine. A dry run needs less.
check_engine() {
    find_python
    find_conf
    check_mrjob
    $dry_run && return
    case "$RUNNER" in
        hadoop) check_hadoop ;;
        emr) check_emr ;;
    esac
}

# Asks cdxmill about a path or URL. Status: 0 yes, 1 no, 2 cannot be determined (the reason is printed).
ask() {
    "$python" -P -c "
import sys
from cdxmill.errors import CdxmillError
from cdxmill.storage import walk
from cdxmill.storage.location import locate
path = sys.argv[1]
def has_files():
    found = walk.files_like(path) if walk.is_glob(path) else walk.files_below(path)
    if found.errors and not found.files:
        raise found.errors[0]
    return bool(found.files)
try:
    sys.exit(not ($1))
except CdxmillError as error:
    if '404' in str(error):
        sys.exit(1)
    print(error, file=sys.stderr)
    sys.exit(2)
except Exception as error:  # a traceback would end with status 1, which means no
    print(f'{type(error).__name__}: {error}', file=sys.stderr)
    sys.exit(2)" "$2"
}

exists() {
    ask 'locate(path).exists()' "$1"
}

has_files() {
    ask 'locate(path).exists() or has_files()' "$1"
}

# Checks that CDX files exist in S3, before a cluster is started. Elsewhere Hadoop reports within seconds that there are none.
check_cdx() {
    local pattern patterns found
    ! $dry_run || return 0
    read -r -a patterns <<<"$1"
    for pattern in "${patterns[@]}"; do
        [[ "$pattern" == s3*://* && "$pattern" != *'{'* ]] || continue
        found=0
        has_files "$pattern" || found=$?
        [[ $found -ne 1 ]] || fail "$pattern: no CDX file found; check WARC_CDX, or run bin/runindexwarcs.sh first"
    done
}

# With --background: starts the launcher again with the same arguments, in the background. All checks have passed.
go_to_background() {
    $background && ! $dry_run || return 0
    local words=() word log
    for word in "$@"; do
        [[ "$word" == --background ]] || words+=("$word")
    done
    log=$started_in/${launcher%.sh}-$(date +%Y%m%d-%H%M%S).log
    { : >"$log"; } 2>/dev/null || fail "$log: cannot be written; run $launcher in another directory"
    (cd -- "$started_in" && exec nohup "$root/bin/$launcher" "${words[@]}" >"$log" 2>&1 </dev/null) &
    say "started as process $!; output and exit status go to $log"
    exit 0
}

# Puts the command of a step's job into `job`. Further arguments are options of the job.
job_of() {
    local step=$1 input=()
    shift
    job=(-r "$RUNNER" --conf-path "$conf")
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
            job=("$python" "$root/jobs/zipnumclusterjob.py" "${job[@]}")
            [[ -z "${SPLIT_FILE:-}" ]] || job+=(--splitfile "$SPLIT_FILE")
            job+=(--zipnum-dir "$ZIPNUM_CLUSTER_DIR")
            [[ -z "${ZIPNUM_OUTPUT_DIR:-}" ]] || job+=(--output-dir "$ZIPNUM_OUTPUT_DIR")
            [[ -z "${SHARDS:-}" ]] || job+=(--shards "$SHARDS")
            job+=("${ZIPNUM_OPTIONS[@]}" "$@")
            read -r -a input <<<"$WARC_CDX"
            ;;
    esac
    job+=("${input[@]}")
}

# NAME=VALUE, whose value only the user may see; also --cmdenv=NAME=VALUE. In a URL, it is USER:PASSWORD before the host.
secret='^(--[a-z-]+=)?([[:alnum:]_.-]*(secret|password|passwd|token|credential|(access|account|api|private)[._-]?key)[[:alnum:]_.-]*)=.'

# Prints a command as a person would type it. Secrets among the options are replaced by the names of their variables.
typed() {
    local word line='' name option
    for word in "$@"; do
        while [[ "$word" =~ ^(.*://)[^/@]*:[^/]*@(.*)$ ]]; do
            word="${BASH_REMATCH[1]}***@${BASH_REMATCH[2]}"
        done
        if [[ "${word,,}" =~ $secret ]]; then
            option=${BASH_REMATCH[1]}
            name=${word:${#option}:${#BASH_REMATCH[2]}}
            if [[ "$name" =~ ^[A-Z_0-9]+$ ]]; then
                word="\"$option$name=\$$name\""
            else
                word="'$option$name=***'"
            fi
        elif [[ ! "$word" =~ ^[[:alnum:]_./:=@%+,-]+$ ]]; then
            word="'${word//"'"/"'\\''"}'"
        fi
        line+=" $word"
    done
    printf '%s\n' "${line# }"
}

# Runs a command and passes signals on to it. Sets `status` to its exit status.
run() {
    local signalled=false child
    status=0
    set -m # without it the command would ignore Ctrl-C
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

# Runs a command; with --dry-run only prints it. Sets `status` to its exit status.
run_or_show() {
    status=0
    if $dry_run; then
        typed "$@"
    else
        say "running $(typed "$@")"
        run "$@"
    fi
}

# Runs the job of a step. Sets `status` to its exit status.
run_step() {
    job_of "$@"
    run_or_show "${job[@]}"
}

# Prints the last message and exits. The argument is the next thing to do.
end() {
    $dry_run && exit 0
    case $status in
        0) say "done (exit status 0); next: $1" ;;
        1) say "done, but some inputs failed (exit status 1), see above; next: correct them and $again, or $1" ;;
        130 | 143) say "stopped by a signal (exit status $status); run it again to continue" ;;
        *) say "stopped (exit status $status); see the message above and docs/engines.md" ;;
    esac
    exit "$status"
}

# After one of several jobs: exits if it stopped, and else keeps the worst exit status.
go_on() {
    [[ $status -le 1 ]] || end ''
    worst=$((status > worst ? status : worst))
}

# Runs one step. Arguments: the step, the next thing to do, the launcher's arguments.
launch() {
    local step=$1 next=$2
    shift 2
    take_arguments "$@"
    read_settings
    pick_runner emr
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
