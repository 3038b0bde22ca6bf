#!/usr/bin/env bash
# The program in README.md is apps/examples/hello/main.cpp, which the build compiles, less its first comment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
readme=$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '/^```/d')
[ -n "$readme" ]
diff <(echo "$readme") <(sed -n '/^#include/,$p' apps/examples/hello/main.cpp)
