#!/usr/bin/env bash
# clang-tidy over the sources of one floor that the build compiles (not: peers of the bench that are not installed).
#
#   tidy.sh <build folder> <floor>
set -euo pipefail
build=$1
floor=$2
cd "$(dirname "$(readlink -f "$0")")/../.."
sources=()
while IFS= read -r -d '' source; do
    if grep -qF "/$source\"" "$build/compile_commands.json"; then sources+=("$source"); fi
done < <(find "$floor" -name '*.cpp' -not -name '*.test.cpp' -not -name '*.fuzz.cpp' -print0)
[ ${#sources[@]} -gt 0 ] || { echo "$build compiles nothing of $floor"; exit 1; }
printf '%s\0' "${sources[@]}" |
    xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$build" 2>&1 |
    { grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' || true; }
