#!/usr/bin/env bash
# Runs the tests of what batchrpc does with a GPU where there is none: beneath LibTorch for CUDA is
# a runtime that simulates streams, memory and graphs (tests/gpu/simulation/device.hpp says how, and
# what it cannot say). For who changes src/torch/policy_graphs.cpp or what is copied when.
#
#   scripts/simulated_gpu.sh ['<names of tests, as Catch2 has them>']
#
# Needs CUDA's toolkit (CUDA_HOME, or /usr/local/cuda; LibTorch's CMake files ask for it), and
# installs PyTorch with pip in .venv/torch-cuda: 5 GB. CI does not run it. Exported packages are
# left out: their kernels come from a compiler for a real GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

version=2.14.1  # whose kernels tests/gpu/simulation/kernels.cpp knows
toolkit=${CUDA_HOME:-/usr/local/cuda}
if [[ ! -x $toolkit/bin/nvcc ]]; then
  echo "simulated_gpu: needs CUDA's toolkit 13.0, and $toolkit/bin/nvcc is not there: set CUDA_HOME" >&2
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

# cuBLAS's headers are PyTorch's, and all others the toolkit's.
mkdir -p "$build/simulation/include"
ln -sf "$cuda"/include/cublas* "$build/simulation/include/"
c++ -std=c++20 -O1 -g -Wall -Wextra -Werror -shared -fPIC -pthread -Wl,-soname,libcuda.so.1 \
  -isystem "$toolkit/include" -isystem "$build/simulation/include" \
  tests/gpu/simulation/*.cpp -o "$build/simulation/libcuda.so.1"

tests=${1:-'"*on a GPU*"~"on a GPU a compiled policy*","a batch is on the device that its handler wants*"'}
if [[ -z $("$build/bin/test_torch" --list-tests "$tests" | grep '^  ') ]]; then
  echo "simulated_gpu: no test of test_torch is named like $tests" >&2
  exit 2
fi
# NoAssertions: a test that is left out for want of a GPU has none, and fails.
exec env LD_LIBRARY_PATH="$build/simulation" LD_PRELOAD="$PWD/$build/simulation/libcuda.so.1" \
  "$build/bin/test_torch" -w NoAssertions "$tests"
