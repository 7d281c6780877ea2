#!/usr/bin/env bash
# Formats all C++ files that git does not ignore. With --check it changes nothing, reports differences,
# and fails if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

format=$(command -v clang-format-14) || {
  echo "format: needs clang-format-14 (Debian: clang-format-14; scripts/setup.sh --ci installs it)" >&2
  exit 2
}
mapfile -d '' -t files < <(git ls-files -z -co --exclude-standard '*.hpp' '*.cpp')
case ${1:-} in
  "") "$format" -i "${files[@]}" ;;
  --check) "$format" --dry-run --Werror "${files[@]}" && echo "format: ${#files[@]} files are formatted" ;;
  *) echo "usage: scripts/format.sh [--check]" >&2 && exit 2 ;;
esac
