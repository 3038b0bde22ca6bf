#!/usr/bin/env bash
# cmake/install-packages with stand-ins for dpkg-query, apt-get, sudo and id. Nothing is installed.
set -uo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
mkdir "$work/bin"

# Everything is installed but what $MISSING names; `id -u` is $USER_ID; sudo needs a password unless $SUDO is free.
cat > "$work/bin/dpkg-query" << 'FAKE'
#!/usr/bin/env bash
set -uo pipefail
case " $MISSING " in
    *" ${*: -1} "*) echo "dpkg-query: no packages found matching ${*: -1}" >&2; exit 1 ;;
    *) printf installed ;;
esac
FAKE
cat > "$work/bin/id" << 'FAKE'
#!/usr/bin/env bash
set -uo pipefail
echo "$USER_ID"
FAKE
cat > "$work/bin/sudo" << 'FAKE'
#!/usr/bin/env bash
set -uo pipefail
[ "$SUDO" = free ] || exit 1
[ "$1" != -n ] || exit 0
echo "sudo" >> "$CALLS"
exec "$@"
FAKE
cat > "$work/bin/apt-get" << 'FAKE'
#!/usr/bin/env bash
set -uo pipefail
echo "apt-get $* ($DEBIAN_FRONTEND)" >> "$CALLS"
case "$APT $*" in
    offline*install*) echo "E: Unable to fetch some archives" >&2; exit 100 ;;
    offline*) echo "W: Failed to fetch" >&2 ;;
esac
FAKE
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH CALLS=$work/calls MISSING= USER_ID=0 SUDO=free APT=ok

wrong()
{
    echo "WRONG: $*"
    failures=$((failures + 1))
}

# check <what> <exit code> <pattern of the message, empty for silence> <calls> [VARIABLE=value...]
check()
{
    local what=$1 code=$2 pattern=$3 calls=$4 got
    shift 4
    echo "-- $what"
    : > "$CALLS"
    env "$@" "$root/cmake/install-packages" build test > "$work/out" 2>&1 < /dev/null
    got=$?
    [ "$got" = "$code" ] || wrong "exit code $got, not $code: $(cat "$work/out")"
    if [ -n "$pattern" ]; then
        tr '\n' ' ' < "$work/out" | grep -qE -- "$pattern" || wrong "no message like '$pattern' in: $(cat "$work/out")"
    else
        [ ! -s "$work/out" ] || wrong "said: $(cat "$work/out")"
    fi
    [ "$(paste -sd '|' "$CALLS")" = "$calls" ] || wrong "called: $(paste -sd '|' "$CALLS")"
}

update="apt-get -q update (noninteractive)"
install="apt-get install -y --no-install-recommends cmake doctest-dev (noninteractive)"
missing=MISSING="cmake doctest-dev libcli11-dev"

check "all there: apt is not called" 0 "" ""
check "as root: what is missing of the groups asked for" 0 "Installing cmake doctest-dev" "$update|$install" "$missing"
check "with sudo" 0 "Installing" "sudo|$update|sudo|$install" "$missing" USER_ID=1000
check "neither root nor sudo: the one command" 1 \
    "as root:   apt-get update && apt-get install -y --no-install-recommends cmake doctest-dev $" "" \
    "$missing" USER_ID=1000 SUDO=password
check "no network" 1 "Unable to fetch.*could not be installed \(is the network there\?\)" "$update|$install" "$missing" APT=offline

echo "-- an unknown group"
"$root/cmake/install-packages" nonsense > "$work/out" 2>&1 && wrong "exit code 0"
grep -q "no group 'nonsense'" "$work/out" || wrong "said: $(cat "$work/out")"

echo "-- every package has a group and a reason"
awk '!/^#/ && NF < 3' "$root/cmake/packages.txt" | grep . && wrong "a line without a reason"

echo "$failures failures"
[ "$failures" = 0 ]
