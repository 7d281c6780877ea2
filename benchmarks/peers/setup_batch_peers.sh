#!/usr/bin/env bash
# Installs the peers that batchrpc's batch inference is compared with. Skips what is installed.
#
#   benchmarks/peers/setup_batch_peers.sh [--ray] [--moolib]
#
#   --ray     only Ray, which is all that `benchmarks/compare envs` needs
#   --moolib  also moolib, in .venv/moolib: it has no wheels, and compiling takes some minutes
#
# pip installs Ray Serve and TorchRL into .venv/peers. PyPI's torch for x86-64 is the build for CUDA, which
# cannot be imported without several GB of CUDA's libraries, so pip installs these too. If an
# index in PIP_EXTRA_INDEX_URL has the CPU build of the same version, pip prefers that, which needs 1.4 GB
# in all. torch.distributed.rpc is Debian's python3-torch (1.13); moolib is built against it too.
set -euo pipefail
cd "$(dirname "$0")/../.."

torch=2.13.0 torchrl=0.14.1 ray=2.60.0
moolib=0.0.9b0 pybind11=2.10.4  # moolib's own pybind11 does not support Python 3.11
with_moolib=no only_ray=no
for argument in "$@"; do
  case $argument in
    --moolib) with_moolib=yes ;;
    --ray) only_ray=yes ;;
    *) echo "usage: benchmarks/peers/setup_batch_peers.sh [--ray] [--moolib]" >&2 && exit 2 ;;
  esac
done

packages=(python3-torch python3-venv)
if [ "$with_moolib" = yes ]; then
  packages+=(python3-dev python3-pip libtorch-dev cmake ninja-build g++)
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "setup_batch_peers: run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

venv=.venv/peers
if [ "$only_ray" = yes ]; then
  [ -e "$venv" ] || /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "ray==$ray" numpy
  exit
fi
if [ ! -e "$venv/installed-$torch-$torchrl-$ray" ]; then
  free=$(df --output=avail -BG . | tail -1 | tr -dc 0-9)
  if [ "$free" -lt 12 ]; then
    echo "setup_batch_peers: only $free GB are free, but torch with CUDA's libraries may need 10" >&2
    exit 1
  fi
  echo "setup_batch_peers: installing Ray Serve and TorchRL into $venv"
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check \
    "torch==$torch" "torchrl==$torchrl" "ray[serve]==$ray"
  "$venv/bin/python" -c 'import ray.serve, torchrl.modules.inference_server'
  touch "$venv/installed-$torch-$torchrl-$ray"
fi

[ "$with_moolib" = yes ] || exit 0
target=$PWD/.venv/moolib
if [ -e "$target/installed-$moolib" ]; then
  exit 0
fi
echo "setup_batch_peers: compiling moolib $moolib into $target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip=(/usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work")
# The source distribution includes its third-party code.
"${pip[@]}" --no-binary moolib --no-build-isolation "moolib==$moolib"
"${pip[@]}" --only-binary :all: "pybind11==$pybind11"
tar -xzf "$work/moolib-$moolib.tar.gz" -C "$work"
source=$work/moolib-$moolib
/usr/bin/python3 -m zipfile -e "$work"/pybind11-*.whl "$work/pybind11"
rm -r "$source/third_party/pybind11/include/pybind11"
cp -r "$work/pybind11/pybind11/include/pybind11" "$source/third_party/pybind11/include/"
# A reference to void in a branch that is never taken; GCC 12 rejects it.
sed -i 's/void(const T&)>> f;/void(const std::conditional_t<std::is_void_v<T>, int, T>\&)>> f;/' \
  "$source/src/rpc.h"
mkdir "$work/bin"
ln -s /usr/bin/python3 "$work/bin/python"  # moolib's CMakeLists.txt calls `python` to find torch
export PATH=$work/bin:$PATH
cmake -G Ninja -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DUSE_CUDA=OFF \
  -DPYTHON_EXECUTABLE=/usr/bin/python3 >/dev/null
cmake --build "$work/build" --target _C >"$work/log" 2>&1 || {
  tail -30 "$work/log" >&2
  exit 1
}
mkdir -p "$target/moolib"
cp "$work"/build/_C.*.so "$source/py/moolib/__init__.py" "$target/moolib/"
PYTHONPATH=$target /usr/bin/python3 -c 'import torch, moolib'
touch "$target/installed-$moolib"
