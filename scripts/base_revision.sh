#!/usr/bin/env bash
# Prints the revision that a change is compared with, or nothing if none is known. On a branch it is the point where the
# branch left origin's main branch. On main itself it is the last commit made at least a day before the newest one.
#
#   scripts/base_revision.sh              the revision
#   scripts/base_revision.sh --changed    the files that differ from it and still exist
set -euo pipefail
cd "$(dirname "$0")/.."

base() {
  local branch found head
  head=$(git rev-parse HEAD)
  for branch in origin/HEAD origin/main origin/master; do
    found=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
    [ "$found" = "$head" ] || { echo "$found" && return; }
  done
  git rev-list -1 --first-parent --before="$(($(git log -1 --format=%ct) - 86400))" HEAD
}

case ${1:-} in
  "") base ;;
  --changed) base=$(base) && git diff --name-only --diff-filter=d "${base:-$(git hash-object -t tree /dev/null)}" -- ;;
  *) echo "usage: scripts/base_revision.sh [--changed]" >&2 && exit 2 ;;
esac
