#!/usr/bin/env bash
# Whoever includes <plait/actors/actors.hpp> alone does not get Asio:  includes.test.sh <compiler> <include folder>
set -euo pipefail
compiler=$1
folder=$2

# The headers of Asio that come with a header of plait.
of_asio()
{
    echo "#include <plait/$1>" |
        "$compiler" -std=c++20 -DASIO_HAS_CO_AWAIT -DASIO_HAS_STD_COROUTINE -I "$folder" -M -x c++ - |
        tr -d '\\' | tr ' ' '\n' | sed "s|^$folder/||" | { grep -E '(^|/)asio(/|\.hpp$)' || true; }
}

# The bridge has them, so that it would be seen if they were found no more.
[ -n "$(of_asio actors/asio.hpp)" ]
found=$(of_asio actors/actors.hpp)
[ -z "$found" ] || { echo "plait/actors/actors.hpp includes Asio:"; head -n 5 <<< "$found"; exit 1; }
