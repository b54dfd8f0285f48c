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

# A build whose steps take ten seconds each: lines after 15 s, 30 s and a minute, each when the next step ends.
steps_of_ten_seconds() {
  unset SECONDS  # becomes a variable like any other
  SECONDS=0
  read() { builtin read "$@" && SECONDS=$((SECONDS + 10)); }
  show_build no
}
drawn=$(printf '[%d/12] x\n' 1 2 3 4 5 6 12 | steps_of_ten_seconds)
shown='         2 of 12 steps in 0:20, about 1:40 to go
         3 of 12 steps in 0:30, about 1:30 to go
         6 of 12 steps in 1:00, about 1:00 to go
         12 of 12 steps in 1:10'
[[ $drawn == "$shown" ]] || { printf 'expected "%s", drawn "%s"\n' "$shown" "$drawn" >&2; exit 1; }
