#!/usr/bin/env bash
# Every script parses, can be started, and does not go on after a failure unnoticed.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
failures=0
while IFS= read -r script; do
    bash -n "$script" || failures=$((failures + 1))
    if [ ! -x "$script" ]; then
        echo "$script is not executable"
        failures=$((failures + 1))
    fi
    if ! grep -qE '^set -e?uo pipefail$' "$script"; then
        echo "$script does not set -u and pipefail"
        failures=$((failures + 1))
    fi
done < <(grep -rlE '^#!/usr/bin/env bash' .ci apps cmake tests)
for script in tests/run apps/chat/run; do
    if [ "$(head -n 1 "$script")" != '#!/usr/bin/env bash' ]; then
        echo "$script is not a bash script"
        failures=$((failures + 1))
    fi
done
echo "$failures failures"
[ "$failures" = 0 ]
