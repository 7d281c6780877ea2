#!/usr/bin/env bash
# Builds the fuzz targets (tests/fuzz/) and runs each for a while, as many in parallel as there are
# processors. Prints "N passed, M failed" at the end. For a failed target it prints the path of the input that
# made it fail; run the target's program with that file to repeat the failure.
#
#   scripts/fuzz.sh [--seconds N] [target...]
#
# N: 60 by default. New inputs are kept in build/fuzz/corpus/ for the next run. build/release/bin/write_corpus
# writes the initial corpus in tests/fuzz/corpus/.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number} && shift 2 ;;
    -*) echo "usage: scripts/fuzz.sh [--seconds N] [target...]" >&2 && exit 2 ;;
    *) targets+=("$1") && shift ;;
  esac
done
if [ ${#targets[@]} = 0 ]; then
  for file in tests/fuzz/*.cpp; do
    name=$(basename "$file" .cpp)
    case $name in *_test) ;; *) targets+=("$name") ;; esac
  done
fi

cmake --preset asan -DBATCHRPC_WERROR="${BATCHRPC_WERROR:-OFF}" >/dev/null
cmake --build build/asan --parallel "$(nproc)" "${targets[@]/#/--target=fuzz_}"

fuzz() {  # <target>: in 2 GiB, no block of more than 256 MiB, and no input for longer than 20 s
  local kept=build/fuzz/corpus/$1 log=build/fuzz/$1.log
  mkdir -p "$kept" build/fuzz/failures
  ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    build/asan/bin/fuzz_"$1" -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb=256 \
    -timeout=20 -max_len=8192 -print_final_stats=1 -artifact_prefix=build/fuzz/failures/"$1"- \
    "$kept" tests/fuzz/corpus/"$1" >"$log" 2>&1
}

passed=0 failed=0 running=0
declare -A target_of
trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT
finish() {  # handles a target that has ended
  local status=0 process name log
  wait -n -p process || status=$?
  name=${target_of[$process]} log=build/fuzz/${target_of[$process]}.log
  running=$((running - 1))
  if [ "$status" = 0 ]; then
    passed=$((passed + 1))
    echo "$name: $(awk '/number_of_executed_units/ {print $2}' "$log") inputs," \
      "$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1)"
  else
    failed=$((failed + 1))
    echo "$name: FAILED (status $status)"
    # The report begins with the operation and ends with the origin of the memory.
    awk '/ERROR: |runtime error: /{told = 1} told' "$log" | head -n 150 | sed 's/^/    /'
    tail -n 8 "$log" | sed 's/^/    /'
  fi
}
for target in "${targets[@]}"; do
  if [ "$running" -ge "$(nproc)" ]; then finish; fi
  fuzz "$target" &
  target_of[$!]=$target
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do finish; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
