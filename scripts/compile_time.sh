#!/usr/bin/env bash
# Prints the CPU time that g++ needs at -O0 for a user's file with one typed call: the median of five runs. The goal
# is at most 2 s. Nothing fails above that, because it depends on the machine.
#
#   scripts/compile_time.sh [compiler]
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=${1:-g++}
file=$(mktemp --suffix .cpp)
trap 'rm -f "$file"' EXIT
cat >"$file" <<'END'
#include <batchrpc/batchrpc.hpp>
#include <iostream>

int add(int a, int b) { return a + b; }

int main() {
  batchrpc::Node node({.name = "worker0", .world_size = 2, .join = "tcp://127.0.0.1:29500"});
  std::cout << node.call<&add>("worker1", 1, 2).get() << '\n';
}
END

TIMEFORMAT='%U %S'
for _ in 1 2 3 4 5; do
  { time "$compiler" -std=c++20 -O0 -Iinclude -c "$file" -o /dev/null; } 2>&1
done | awk '{print $1 + $2}' | sort -n | sed -n "3s/$/ s to compile a file with one typed call (CPU time, median of 5, -O0)/p"
