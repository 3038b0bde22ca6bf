#!/usr/bin/env bash
# What the README and the guides quote is in the source: a block after `<!-- source: <file> -->` stands in that file, line
# for line. Every block of C++ in README.md has a source, and the program in it is all of apps/examples/hello/main.cpp,
# which the build compiles, less its first comment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

# quotes <page>: fails where a quoted block is not in its source; prints how many there are.
quotes()
{
    local page=$1 file='' block='' inside=0 count=0 line text
    while IFS= read -r line; do
        if [[ $line =~ ^'<!-- source: '(.*)' -->'$ ]]; then
            file=${BASH_REMATCH[1]}
        elif [[ $line == '```cpp' && -n $file ]]; then
            inside=1 block=''
        elif [[ $line == '```' && $inside == 1 ]]; then
            text=$(cat "$file")
            if [[ $'\n'$text$'\n' != *$'\n'"$block"* ]]; then
                echo "$page quotes what is not in $file:" >&2
                echo "$block" >&2
                return 1
            fi
            inside=0 file='' count=$((count + 1))
        elif [[ $inside == 1 ]]; then
            block+=$line$'\n'
        fi
    done < "$page"
    echo "$count"
}

[ "$(quotes README.md)" = "$(grep -c '^```cpp$' README.md)" ]
[ "$(quotes README.md)" -ge 2 ]
[ "$(quotes docs/parallel.md)" -ge 2 ]
[ "$(quotes docs/adding-a-family.md)" -ge 1 ]

# That a difference is seen.
page=$(mktemp)
trap 'rm -f "$page"' EXIT
sed 's/co_await attend(i, input);/co_await attend(input, i);/' docs/parallel.md > "$page"
if quotes "$page" 2> /dev/null; then
    echo "a changed quotation is not noticed" >&2
    exit 1
fi

program=$(sed -n '/^<!-- source: apps\/examples\/hello\/main.cpp -->$/,/^```$/p' README.md | sed '1,2d;$d')
diff <(echo "$program") <(sed -n '/^#include/,$p' apps/examples/hello/main.cpp)
