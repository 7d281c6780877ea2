#!/usr/bin/env bash
# Records the frames that a version sends in tests/recorded/<major>.<minor>. Run it once for each version of
# the protocol, when that is released. Tests replay them from then on.
#
#   scripts/record_frames.sh [commit]
#
# commit: a commit of an earlier version; by default the present sources.
set -euo pipefail
cd "$(dirname "$0")/.."

source=$PWD
if [ $# -gt 0 ]; then
  source=$(mktemp -d)
  trap 'rm -rf "$source"' EXIT
  git archive "$1" include src | tar -x -C "$source"
fi
program=$(mktemp)
"${CXX:-g++}" -std=c++20 -I"$source/include" -I"$source/src" -Itests/support -o "$program" tests/helpers/record_frames.cpp \
  "$source"/src/wire/{decoder,encoder,frame,record,strings}.cpp \
  "$source"/src/base/{bytes,error,plain_text,result,utf8}.cpp
"$program" tests/recorded
rm "$program"
