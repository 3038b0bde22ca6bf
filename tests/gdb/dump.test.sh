#!/usr/bin/env bash
# What `plait dump` shows of a program that waits, and of its core file, in gdb.
#
#   dump.test.sh <subject> <folder for files>
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
subject=$1
folder=$2
script=$here/../../actors/dump/plait_gdb.py
if ! command -v gdb > /dev/null; then
    echo "skipped: not found: gdb"
    exit 0
fi
failures=0

# expect <text> <pattern>...: the patterns are found in the text, each after the one before
expect()
{
    local text=$1 pattern
    shift
    for pattern in "$@"; do
        if ! text=$(grep -A 1000 -E -- "$pattern" <<< "$text"); then
            echo "missing or in the wrong order: $pattern"
            failures=$((failures + 1))
            return
        fi
    done
}

line() { grep -n -F "// $1" "$here/subject.cpp" | cut -d: -f1; }

check()
{
    echo "$1"
    expect "$1" \
        "^actor shop::store #1: running, 0 of 256 messages waiting$" \
        "^  shop::store::get, called at .*subject.cpp:$(line asks)$" \
        "^    .*subject.cpp:$(line 'waits for the event') waits for an event$" \
        "^actor shop::client #2: running, 0 of 256 messages waiting$" \
        "^  shop::client::visit, called at .*subject.cpp:[0-9]+$" \
        "^ +.*subject.cpp:$(line fetches)$" \
        "^ +.*subject.cpp:$(line asks) waits for an answer of shop::store::get by shop::store #1$" \
        "^ +.*subject.cpp:$(line sleeps) waits for a time$" \
        "^task #1$" \
        "^ +.*subject.cpp:[0-9]+ runs$"
}

core=$folder/subject.core
rm -f "$core"
text=$(gdb -nx -batch -x "$script" -ex "set debuginfod enabled off" -ex run -ex "plait dump" \
    -ex "generate-core-file $core" "$subject" 2>&1 < /dev/null)
if grep -qiE "ptrace: operation not permitted|could not trace the inferior" <<< "$text"; then
    echo "skipped: not found: the right to trace a process"
    exit 0
fi
check "$text"
check "$(gdb -nx -batch -x "$script" -ex "plait dump" "$subject" "$core" 2>&1 < /dev/null)"
rm -f "$core"

expect "$(gdb -nx -batch -x "$script" -ex "plait dump" "$(command -v true)" 2>&1 < /dev/null)" "no runtime of plait here"
echo "$failures failures"
[ "$failures" = 0 ]
