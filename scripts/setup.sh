#!/usr/bin/env bash
# Installs what batchrpc is built with, from Debian's packages. Does nothing when all is there.
#
#   scripts/setup.sh [--ci] [--torch2]
#
#   --ci      also what only CI uses: clang, sanitizers' run time, doxygen, torchrun, ip
#   --torch2  also LibTorch 2.13 from PyPI, in .venv/torch2 (preset release-torch2); exit status 3
#             when that cannot be had
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache pkg-config  # pkg-config: Cap'n Proto's CMake configuration calls it
  libasio-dev                              # sockets, timers, threads
  libcapnp-dev capnproto                   # the wire: library, schema compiler
  libspdlog-dev                            # log lines
  catch2                                   # tests
  libcli11-dev nlohmann-json3-dev          # examples and benchmarks: command lines, reports
  libcairo2-dev                            # figures
  libtorch-dev libopenblas0-pthread        # tensors; LibTorch is 3.6 times slower without OpenBLAS
)
ci_packages=(
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev doxygen
  iproute2       # tests over two network namespaces
  python3-torch  # torchrun
)
torch2=no
for argument in "$@"; do
  case $argument in
    --ci) packages+=("${ci_packages[@]}") ;;
    --torch2) torch2=yes && packages+=(python3-venv) ;;
    *) echo "usage: scripts/setup.sh [--ci] [--torch2]" >&2 && exit 2 ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=$(comm -13 <(sort -u <<<"$installed") <(printf '%s\n' "${packages[@]}" | sort -u) | xargs)
if [ -n "$missing" ]; then
  echo "setup: installing Debian packages to build batchrpc with: $missing"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  # shellcheck disable=SC2086  # one word a package
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

[ "$torch2" = yes ] || exit 0
version=2.13.0
venv=.venv/torch2
libtorch=$venv/libtorch
if [ -e "$libtorch/.batchrpc-$version" ]; then
  exit 0
fi
echo "setup: installing LibTorch $version from PyPI into $venv"
rm -rf "$venv"
# Only its headers and libraries are used: none of the packages that Python needs beside it.
if ! /usr/bin/python3 -m venv "$venv" ||
  ! "$venv/bin/pip" install --quiet --no-deps --disable-pip-version-check "torch==$version"; then
  echo "setup: LibTorch $version cannot be had here" >&2
  rm -rf "$venv"
  exit 3
fi
torch=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch
if [ -e "$torch/lib/libtorch_cuda.so" ] && ! command -v nvcc >/dev/null; then
  echo "setup: pip brought a LibTorch for CUDA, which needs the CUDA toolkit; name an index that" \
    "has the CPU build in PIP_EXTRA_INDEX_URL" >&2
  exit 3
fi
touch "$torch/.batchrpc-$version"
ln -s "$torch" "$libtorch"
