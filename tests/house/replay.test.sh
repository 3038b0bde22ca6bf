#!/usr/bin/env bash
# replay.test.sh <plait-actors-tests>: the command that a failing test of seeds or orders prints makes it fail again, in
# the same way and at once. The tests that it runs are there to fail.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
program=$1

# replay <variable> <test> <what it says when it fails>
replay()
{
    local variable=$1 test=$2 failure=$3 first again command
    if first=$("$program" --no-skip -tc="${test/,/?}"); then
        echo "\"$test\" did not fail" >&2
        return 1
    fi
    grep -qF "$failure" <<< "$first"
    command=$(grep -oE "$variable=[^ ]+ .*-tc=\"[^\"]*\"" <<< "$first" | head -n 1)
    [ -n "$command" ]
    if again=$(eval "$command"); then
        echo "this did not fail: $command" >&2
        return 1
    fi
    grep -qF "$failure" <<< "$again"
    grep -qE "test cases: +1 " <<< "$again"
    # Where the test counts its simulations: the second time it was one, and the first time more.
    if grep -q "simulations:" <<< "$first"; then
        grep -qE "simulations: ([2-9]|1[0-9])" <<< "$first"
        grep -qE "simulations: 1$" <<< "$again"
    fi
}

unset PLAIT_SEED PLAIT_CHOICES PLAIT_LONG
replay PLAIT_SEED "a test of seeds that fails, which is what it is for" "the last came first"
replay PLAIT_SEED "a test of seeds whose check fails, which is what it is for" "all.trace() % 50 != 7"
replay PLAIT_CHOICES "a test of all orders that fails, which is what it is for" "the last came first"
