#!/usr/bin/env bash
# clang-tidy over the sources of one floor:  tidy.sh <build folder> <floor>
set -euo pipefail
build=$1
floor=$2
cd "$(dirname "$(readlink -f "$0")")/../.."
find "$floor" -name '*.cpp' -not -name '*.test.cpp' -not -name '*.fuzz.cpp' -print0 |
    xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$build" 2>&1 |
    { grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' || true; }
