#!/usr/bin/env bash
# Runs the GPU tests on a machine without a GPU. Beneath LibTorch for CUDA is
# a runtime that simulates streams, memory and graphs (tests/gpu/simulation/device.hpp describes it and
# its limits). Run it after changes of src/torch/policy_graphs.cpp, or of the order of copies.
#
#   scripts/simulated_gpu.sh ['<test names, in the syntax of Catch2>']
#
# Needs CUDA's toolkit (CUDA_HOME, or /usr/local/cuda; LibTorch's CMake files require it), and
# installs PyTorch with pip in .venv/torch-cuda (5 GB). CI does not run it. Exported packages are
# left out, because their kernels come from a compiler for a real GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.14.1  # the version whose kernels tests/gpu/simulation/kernels.cpp supports
toolkit=${CUDA_HOME:-/usr/local/cuda}
if [[ ! -x $toolkit/bin/nvcc ]]; then
  echo "simulated_gpu: needs CUDA's toolkit 13.0, but $toolkit/bin/nvcc does not exist: set CUDA_HOME" >&2
  exit 2
fi
venv=$PWD/.venv/torch-cuda
if ! "$venv/bin/python" -c "import torch; assert torch.__version__.startswith('$version')" 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "torch==$version"
fi
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cuda=$packages/nvidia/cu13

build=build/torch-cuda
mkdir -p "$build"
nvrtc=$cuda/lib/libnvrtc.so.13
PATH=$toolkit/bin:$PATH cmake --preset release -B "$build" -DBATCHRPC_TORCH="$packages/torch" \
  -DCUDA_TOOLKIT_ROOT_DIR="$toolkit" -DCUDAToolkit_ROOT="$toolkit" \
  -DCUDA_nvrtc_LIBRARY="$nvrtc" -DCUDA_NVRTC_LIB="$nvrtc" >"$build/configure.log" 2>&1 ||
  { cat "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target test_torch

# cuBLAS's headers come from PyTorch, all others from the toolkit.
mkdir -p "$build/simulation/include"
ln -sf "$cuda"/include/cublas* "$build/simulation/include/"
c++ -std=c++20 -O1 -g -Wall -Wextra -Werror -shared -fPIC -pthread -Wl,-soname,libcuda.so.1 \
  -isystem "$toolkit/include" -isystem "$build/simulation/include" \
  tests/gpu/simulation/*.cpp -o "$build/simulation/libcuda.so.1"

tests=${1:-'"*on a GPU*"~"on a GPU a compiled policy*","a batch is on the device that its handler wants*"'}
if [[ -z $("$build/bin/test_torch" --list-tests "$tests" | grep '^  ') ]]; then
  echo "simulated_gpu: no test of test_torch matches $tests" >&2
  exit 2
fi
# NoAssertions: a test that skips itself because there is no GPU makes no assertion, and so fails.
exec env LD_LIBRARY_PATH="$build/simulation" LD_PRELOAD="$PWD/$build/simulation/libcuda.so.1" \
  "$build/bin/test_torch" -w NoAssertions "$tests"
