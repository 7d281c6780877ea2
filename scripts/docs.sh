#!/usr/bin/env bash
# Builds the reference, build/doxygen/html/index.html, and fails on any warning.
set -euo pipefail
cd "$(dirname "$0")/.."

# The program in getting-started.md must be examples/add.cpp, which is compiled.
if ! diff <(sed -n '/^```cpp$/,/^```$/p' docs/getting-started.md | sed '1d; /^```$/,$d') \
  <(sed 1,2d examples/add.cpp); then
  echo "docs: the first program of docs/getting-started.md differs from examples/add.cpp" >&2
  exit 1
fi

# The C++ of the tutorials must be that of the examples, except for line breaks, comments, and lines with a "…".
check_excerpts() {  # <document> <source>...
  local document=$1 sources line code
  shift
  sources=$(sed -E 's@(^|  )//.*@@' "$@" | tr -d '[:space:]')
  while read -r line; do
    code=$(sed -E 's@(^|  )//.*@@' <<<"$line" | tr -d '[:space:]')
    if [[ $sources != *"$code"* ]]; then
      echo "docs: $document shows code that is not in the example: $line" >&2
      return 1
    fi
  done < <(sed -n '/^```cpp$/,/^```$/p' "$document" | grep -vE '^```|…')
}
check_excerpts docs/from-torch-rpc.md examples/cartpole/*.cpp examples/cartpole_observer/*.cpp
check_excerpts docs/parameter-server.md examples/parameter_server/*.[ch]pp
check_excerpts <(sed -n '/^## A whole program$/,/^## An environment$/p' docs/vectorised-environments.md) examples/walk.cpp

scripts/check_links.py

mkdir -p build/doxygen
doxygen docs/Doxyfile
# No comment is required for operators, copying and moving, and names from std (value_type).
# Specializations are described at the template, and some confuse doxygen.
harmless='^$|Member (operator|([A-Za-z]+)\((const )?\2 &|(value|element)_type )'
harmless+='|Member .* of (class|struct) [^ ]*<.*> is not documented'
harmless+='|Compound .*<.*is not documented|potential recursive class relation'
# Links within pages, and to files that are not part of the reference: scripts/check_links.py checks them.
harmless+='|\.md:[0-9]+: warning: unable to resolve reference'
if grep -vE "$harmless" build/doxygen/warnings.txt; then
  echo "docs: doxygen printed these warnings:" >&2
  exit 1
fi
echo "docs: build/doxygen/html/index.html"
