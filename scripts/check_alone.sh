#!/usr/bin/env bash
# Checks that each file of the library compiles on its own. Presets compile many files as one, which hides
# missing includes. Uses clang, which only checks the syntax, without LibTorch.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/alone
cmake --preset debug -B "$build" -DCMAKE_CXX_COMPILER=clang++-14 \
  -DBATCHRPC_TORCH=OFF -DBATCHRPC_TESTS=OFF -DBATCHRPC_EXAMPLES=OFF -DBATCHRPC_BENCHMARKS=OFF >/dev/null
ninja -C "$build" -t targets all | sed -nE 's/^(generated[^:]*\.(h|cpp)): .*/\1/p' | xargs cmake --build "$build" --target >/dev/null
python3 - "$build" <<'END' | xargs -P "$(nproc)" -d '\n' -n 1 bash -c "cd $build"' && $0 || exit 255'
import json, re, sys

for entry in json.load(open(sys.argv[1] + "/compile_commands.json")):
    if "/generated/" not in entry["file"]:
        print(re.sub(r" -o \S+ -c ", " -fsyntax-only ", entry["command"]))
END
echo "alone: each file compiles on its own"
