#!/usr/bin/env bash
# Prints the CPU time that a compiler needs at -O0 for a user's file with one typed call: alone, with the library's
# header precompiled, and for the standard headers alone that the library includes. Each is the median of five runs.
# Nothing fails, because the times depend on the machine; compare their ratios.
#
#   scripts/compile_time.sh [compiler]
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=${1:-g++}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/typed.cpp" <<'END'
#include <batchrpc/batchrpc.hpp>
#include <iostream>

int add(int a, int b) { return a + b; }

int main() {
  batchrpc::Node node({.name = "worker0", .world_size = 2, .join = "tcp://127.0.0.1:29500"});
  std::cout << node.call<&add>("worker1", 1, 2).get() << '\n';
}
END
flags=(-std=c++20 -O0 -Iinclude)
exec 3>&2

compile() {  # <flag or file>...
  "$compiler" "${flags[@]}" "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&3 && exit 1; }
}
TIMEFORMAT='%U %S'
seconds() {  # <flag or file>...: the median
  for _ in 1 2 3 4 5; do
    { time compile "$@" -c -o /dev/null; } 2>&1
  done | awk '{print $1 + $2}' | sort -n | sed -n 3p
}

compile -H -fsyntax-only "$folder/typed.cpp"  # its log lists the headers
sed -nE 's|^\.+ .*/c\+\+/[^/]+/([a-z_]+)$|#include <\1>|p' "$folder/log" | sort -u >"$folder/standard.cpp"
[ -s "$folder/standard.cpp" ] || { echo "compile_time: $compiler lists no standard headers" >&2 && exit 1; }
echo '#include <batchrpc/batchrpc.hpp>' >"$folder/all.hpp"
compile -x c++-header "$folder/all.hpp" -o "$folder/all.hpp.gch"

alone=$(seconds "$folder/typed.cpp")
precompiled=$(seconds -include "$folder/all.hpp" "$folder/typed.cpp")
standard=$(seconds "$folder/standard.cpp")
echo "$alone s to compile a file with one typed call (CPU time, median of 5, -O0)"
echo "$precompiled s with the library's header precompiled"
echo "$standard s for its standard headers alone"
