#!/usr/bin/env bash
# Installs the static and the shared library into a temporary prefix, and builds and runs the
# programs of tests/downstream against each; then it builds, without OpenSSL, the program that has batchrpc as a
# subdirectory (with OpenSSL it is only configured). Compiles README's excerpt and those on tensors, futures, late
# answers, retries, completion tokens and tests in docs/getting-started.md; builds and runs the test in
# docs/testing.md. Checks the requested version, the shared libraries' SONAME, and that a subdirectory adds no tests or
# programs.
#
# Build build/release first (scripts/test.sh). BATCHRPC_DOWNSTREAM_TORCH=OFF leaves
# LibTorch out.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=${BATCHRPC_DOWNSTREAM_TORCH:-AUTO}
work=$PWD/build/downstream
rm -rf "$work"
mkdir -p "$work"
builds=()  # what runs in the background
trap 'kill "${builds[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
passed=0
unity=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=20)  # as in the preset release

run() {  # run <name> <command>
  if ! timeout 60 "${@:2}"; then
    echo "install: $1 failed" >&2
    exit 1
  fi
  passed=$((passed + 1))
}

configure_downstream() {  # configure_downstream <project> <build folder> [cmake arguments]
  cmake -G Ninja -S "tests/downstream/$1" -B "$2" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" "${@:3}" >/dev/null
}

build_downstream() {  # build_downstream <processors> <project> <build folder> [cmake arguments]
  configure_downstream "${@:2}"
  cmake --build "$3" --parallel "$1" >"$3.log" || { cat "$3.log" && echo "install: $3 does not build" && exit 1; } >&2
}

build_in_background() {  # build_in_background <project> <build folder> [cmake arguments]
  build_downstream 1 "$@" &
  builds+=($!)
}

wait_for_builds() {  # waits for all builds in the background, and fails if one has failed
  local build status=0
  for build in "${builds[@]}"; do wait "$build" || status=1; done
  builds=()
  return "$status"
}

check_targets() {  # check_targets <build folder of a project that has batchrpc as a subdirectory>
  local targets
  targets=$(cmake --build "$1" --target help)
  if grep -E '^(test_|header_checks|add:|cartpole|call_benchmark)' <<<"$targets"; then
    echo "install: as a subdirectory, batchrpc must not add these targets" >&2
    exit 1
  fi
  passed=$((passed + 1))
}

check_refusal() {  # check_refusal <missing component> <find_package's message about it>
  if cmake -G Ninja -S tests/downstream/components -B "$work/refused-$1-$kind" -DCMAKE_PREFIX_PATH="$prefix" \
    -DWANTED="$1" &>"$work/refusal"; then
    echo "install: find_package(batchrpc COMPONENTS $1) found a component that was not installed ($kind)" >&2
    exit 1
  fi
  run "refusal of component $1, $kind" grep -qF "$2" <(tr -s ' \n' ' ' <"$work/refusal")
}

cmake -G Ninja -B build/shared -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
  "${unity[@]}" -DBATCHRPC_TORCH="$torch" -DBATCHRPC_TESTS=OFF -DBATCHRPC_EXAMPLES=OFF -DBATCHRPC_BENCHMARKS=OFF \
  -DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}" >/dev/null
cmake --build build/shared --parallel "$(nproc)"
scripts/check_symbols.sh build/shared/src/*.so
if [ -e build/shared/bin/batchrpc-keys ]; then  # installed, and no test of build/release needs it
  cmake --build build/release --parallel "$(nproc)" --target batchrpc-keys
fi
version=$(sed -nE 's/^#define BATCHRPC_VERSION_(MAJOR|MINOR) //p' include/batchrpc/base/version.hpp | paste -sd .)
for library in build/shared/src/*.so; do
  run "SONAME of $library" grep -qxF "$(basename "$library").$version" \
    <(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
done

cut_out() {  # cut_out <name>: of the first excerpt, declarations up to the first empty line, then statements
  sed -n '/^```cpp$/,/^```$/p' | sed '1d; /^```$/,$d; s/…//g' |
    awk -v at="$work/excerpts/$1_" '/^$/ {part = 1} {print > (at (part ? "statements.inc" : "declarations.inc"))}'
}
mkdir "$work/excerpts"
cut_out readme <README.md
while read -r name heading; do
  sed -n "/^##* $heading\$/,\$p" docs/getting-started.md | cut_out "$name"
done <<'END'
tensors Tensors
futures Futures
late Answers that come too late
retrying Retrying
tokens Completion tokens
testing Log and tests
END
sed -n '/^```cpp$/,/^```$/p' docs/testing.md | sed '1d; /^```$/,$d' >"$work/excerpts/agent_test.cpp"

for kind in release shared; do
  prefix=$work/prefix  # the same for both, so that ccache has the second's programs
  rm -rf "$prefix"
  cmake --install "build/$kind" --prefix "$prefix" >/dev/null
  if grep -rn "$PWD" "$prefix/lib/cmake" "$prefix/include"; then
    echo "install: $kind contains the path of its build folder" >&2
    exit 1
  fi
  has() { [ -e "$prefix/lib/cmake/batchrpc/batchrpc_$1_targets.cmake" ]; }
  if has torch; then
    build_in_background torch "$work/torch-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DEXCERPTS="$work/excerpts"
  fi
  build_in_background core "$work/core-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DEXCERPTS="$work/excerpts"
  build_in_background components "$work/components-$kind" -DCMAKE_PREFIX_PATH="$prefix"
  if has status; then build_in_background status "$work/status-$kind" -DCMAKE_PREFIX_PATH="$prefix"; fi
  wait_for_builds
  run "core, $kind" "$work/core-$kind/core"
  run "docs/testing.md, $kind" "$work/core-$kind/agent_test"
  run "find_package(batchrpc $version), $kind" cmake -G Ninja -S tests/downstream/core -B "$work/version-$kind" \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXCERPTS="$work/excerpts" -DBATCHRPC_WANTED="$version"
  if cmake -S tests/downstream/core -B "$work/version-$kind" -DBATCHRPC_WANTED=999 &>"$work/refusal"; then
    echo "install: find_package(batchrpc 999) accepted version $version" >&2
    exit 1
  fi
  run "refusal of version 999, $kind" grep -q 'requested version "999"' "$work/refusal"
  run "components, $kind" "$work/components-$kind/components"
  for capnp_first in ON OFF; do
    run "found twice, its Cap'n Proto first: $capnp_first, $kind" cmake -G Ninja -S tests/downstream/twice \
      -B "$work/twice-$capnp_first-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DCAPNP_FIRST="$capnp_first" \
      -DWANTED="$(ls "$prefix/lib/cmake/batchrpc" | sed -n 's/^batchrpc_\(.*\)_targets.cmake$/\1/p' | paste -sd ';')"
  done
  check_refusal colour "it has no component colour, only env, profile, testing, tls, status and torch"
  mv "$prefix/lib/cmake/batchrpc/batchrpc_env_targets.cmake" "$work/env"
  check_refusal env "it was built without its component env"
  mv "$work/env" "$prefix/lib/cmake/batchrpc/batchrpc_env_targets.cmake"
  if has tls; then
    build_downstream "$(nproc)" components "$work/tls-$kind" -DCMAKE_PREFIX_PATH="$prefix" -DWANTED='env;profile;testing;tls'
    run "tls, $kind" "$work/tls-$kind/components"
    run "batchrpc-keys, $kind" "$prefix/bin/batchrpc-keys" token "$work/token-$kind"
  fi
  if has status; then run "status, $kind" "$work/status-$kind/status"; fi
  if has torch; then run "torch, $kind" "$work/torch-$kind/tensors"; fi
done
configure_downstream subdirectory "$work/subdirectory"
check_targets "$work/subdirectory"
# Without OpenSSL the core has no TLS, and compiles all the same. To compile and to run is enough, so at -O0.
build_downstream "$(nproc)" subdirectory "$work/notls" "${unity[@]}" -DCMAKE_CXX_FLAGS_RELEASE='-O0 -DNDEBUG' \
  -DBATCHRPC_TLS=OFF -DBATCHRPC_STATUS=OFF -DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}"
run "subdirectory, without OpenSSL" "$work/notls/subdirectory"
check_targets "$work/notls"
echo "$passed passed, 0 failed"
