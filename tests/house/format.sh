#!/usr/bin/env bash
# Every C++ file is laid out as .clang-format says. Run with --fix to lay them out so.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)
find actors streams kernels kv model engine apps tests \( -name '*.cpp' -o -name '*.hpp' \) \
    -not -path 'tests/house/lint/examples/*' -print0 | xargs -0 -n 20 -P "$(nproc)" clang-format-19 "${mode[@]}"
