#!/usr/bin/env bash
# From a clone to a trained CartPole: installs the dependencies, builds, trains with one agent and ten
# observers as separate processes, then compares batch with no batch. Figures go to out/.
#
#   scripts/demo.sh [--budget short]
#
#   --budget short  only a few episodes, to check that it works
#   SEED=543        another seed
set -euo pipefail
cd "$(dirname "$0")/.."

train=(--world-size 11 --batch true --until-solved)
sweep=(--sweep "2,5,8,11")
case "${1:-} ${2:-}" in
  " ") ;;
  "--budget short")
    train=(--world-size 3 --batch true --episodes 3 --steps 200)
    sweep=(--sweep "2,3" --episodes 2 --steps 200)
    ;;
  *) echo "usage: scripts/demo.sh [--budget short]" >&2 && exit 2 ;;
esac

scripts/setup.sh
[ -e build/release/build.ninja ] || cmake --preset release >/dev/null
[ -t 1 ] || quiet=--quiet  # on a terminal ninja shows its progress in one line; a first build takes minutes
cmake --build build/release --parallel "$(nproc)" --target cartpole -- ${quiet:+"$quiet"}

mkdir -p out
cartpole=build/release/bin/cartpole
"$cartpole" "${train[@]}" --seed "${SEED:-543}" --json out/cartpole.json --figure out/learning_curve.svg
"$cartpole" "${sweep[@]}" --seed "${SEED:-543}" --json out/sweep.json \
  --figure out/batch_against_no_batch.svg

echo "Figures:"
for figure in learning_curve batch_against_no_batch; do
  ls "out/$figure.svg" "out/$figure.png"
done
