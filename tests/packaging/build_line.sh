#!/usr/bin/env bash
# The line that ./quickstart and ./test draw of a build: what ninja says in, what a reader sees out.
set -euo pipefail
shopt -s inherit_errexit  # as in ./test, where show_build is in no command substitution
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup.sh

expect() {
  local what=$1 said=$2 shown=$3 drawn
  drawn=$(printf '%b' "$said" | show_build no)  # no `||` behind it, which would switch `set -e` off inside
  [[ $drawn == "$shown" ]] || { printf '%s: expected "%s", drawn "%s"\n' "$what" "$shown" "$drawn" >&2; exit 1; }
}

expect "ninja counts its own work as step 0" '[0/2] Re-checking globbed directories...\n[1/12] one\n' ""
expect "a build that is soon done: its end alone" '[1/12] one\n[2/12] two\n[12/12] twelve\n' \
  '         12 of 12 steps in 0:00'
expect "what a compiler says stays" '[1/12] one\nx.cpp:1:1: error: no\nninja: Entering directory `x'"'"'\n' 'x.cpp:1:1: error: no'
