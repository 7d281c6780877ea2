#!/usr/bin/env bash
# Prints the CPU time that a compiler needs at -O0 for a user's file with one typed call: alone, with the library's
# header precompiled, and for the standard headers alone that the library includes. With --torch, also the time at
# -O0 -g for a learner, with and without batchrpc: LibTorch, a batcher and four exposed functions. Each is the median
# of five runs. Nothing fails, because the times depend on the machine; compare their ratios.
#
#   scripts/compile_time.sh [--torch] [compiler]
#
# LibTorch is Debian's, or that of BATCHRPC_TORCH, a folder with include/.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=no
if [ "${1:-}" = --torch ]; then torch=yes && shift; fi
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
once() {  # <flag or file>...
  { time compile "$@" -c -o /dev/null; } 2>&1 | awk '{print $1 + $2}'
}
median() { sort -n | sed -n 3p; }
seconds() {  # <flag or file>...
  for _ in 1 2 3 4 5; do once "$@"; done | median
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

[ "$torch" = yes ] || exit 0
cat >"$folder/learner.cpp" <<'END'
#include <torch/torch.h>

#include <string>
#ifdef LEARNER
#include <batchrpc/torch.hpp>
#endif

torch::nn::Linear net(4, 2);
at::Tensor act(const at::Tensor& rows) { return net->forward(rows); }
at::Tensor twice(const at::Tensor& x) { return x * 2; }
int one(int a) { return a; }
std::string two(const std::string& a) { return a; }
double four(double x, int n) { return x * n; }

int main() {
#ifdef LEARNER
  batchrpc::Node node({.name = "learner"});
  batchrpc::Batcher<at::Tensor(at::Tensor)> batcher({.max_size = 8}, &act);
  node.expose("act", batcher);
  node.expose<&twice>();
  node.expose<&one>();
  node.expose<&two>();
  node.expose<&four>();
#else
  return static_cast<int>(act(twice(at::ones({one(1), 4}))).numel()) + static_cast<int>(four(1, 2)) +
         static_cast<int>(two("").size());
#endif
}
END
flags+=(-g -isystem "${BATCHRPC_TORCH:-/usr}/include/torch/csrc/api/include")
[ -z "${BATCHRPC_TORCH:-}" ] || flags+=(-isystem "$BATCHRPC_TORCH/include")
for _ in 1 2 3 4 5; do  # in turn, so that both meet the same machine
  once "$folder/learner.cpp" >>"$folder/without"
  once -DLEARNER "$folder/learner.cpp" >>"$folder/with"
done
without=$(median <"$folder/without") with=$(median <"$folder/with")
echo "$with s for a learner at -g, $(awk "BEGIN {printf \"%.2f\", $with / $without}") times the $without s without batchrpc"
