#!/usr/bin/env bash
# Installs the build dependencies of batchrpc from Debian's packages. Skips what is installed.
#
#   scripts/setup.sh [--ci] [--peers] [--torch2]
#
#   --ci      also the tools that CI and some tests need: clang, doxygen, torchrun, ip
#   --peers   also the other systems that benchmarks/compare measures, and matplotlib for its figures;
#             benchmarks/peers/setup_batch_peers.sh installs those for batch inference that Debian lacks
#   --torch2  also LibTorch 2.13, with pip, in .venv/torch2 (preset release-torch2); exit status 3 if
#             that is not available, with the reason as the last line
set -euo pipefail
cd "$(dirname "$0")/.."

groups=(  # "<packages>: <what they are for>"
  'g++ cmake ninja-build ccache lld: compiling'
  "pkg-config: Cap'n Proto's CMake configuration calls it"
  'libasio-dev: sockets, timers, threads'
  'libcapnp-dev capnproto: the wire: library, schema compiler'
  'libspdlog-dev: log lines'
  'catch2: tests'
  'python3: benchmarks/compare, and its tests'
  'libcli11-dev nlohmann-json3-dev: command lines and reports of examples and benchmarks'
  'libcairo2-dev: figures'
  'libcpp-httplib-dev: the status page'
  'libssl-dev: TLS'
  'libtorch-dev: tensors'
  'libopenblas0-pthread: LibTorch is 3.6 times slower without OpenBLAS'
)
ci_groups=(
  'clang-14 libclang-rt-14-dev: a second compiler, and what its sanitizers link'
  'clang-format-14 clang-tidy-14 universal-ctags: style; data members of classes are counted'
  'doxygen: the reference'
  'iproute2: tests with two network namespaces'
  'chromium chromium-driver python3-selenium: the status page in a browser; a download of 120 MB'
  'valgrind: counts the instructions of a call'
  'prometheus: promtool, with which a test checks the text of metrics'
  'python3-matplotlib: figures of benchmark reports'
  'python3-torch: the test of torchrun'
  'python3-torchvision: a test compares the ResNet-50 of an example with it'
)
peer_groups=(
  'python3-torch: torch.distributed.rpc'
  'libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc: gRPC'
  'libtensorpipe-dev: TensorPipe'
  'util-linux: taskset, which pins processes to one CPU'
  'python3-matplotlib: figures of comparisons'
)
torch2=no
for argument in "$@"; do
  case $argument in
    --ci) groups+=("${ci_groups[@]}") ;;
    --peers) groups+=("${peer_groups[@]}") ;;
    --torch2) torch2=yes && groups+=('python3-venv: pip, which installs LibTorch 2') ;;
    *) echo "usage: scripts/setup.sh [--ci] [--peers] [--torch2]" >&2 && exit 2 ;;
  esac
done

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=()
for group in "${groups[@]}"; do
  read -ra packages <<<"${group%%:*}"
  mapfile -t absent < <(printf '%s\n' "${packages[@]}" | grep -vxFf <(echo "$installed"))
  [ ${#absent[@]} = 0 ] || echo "setup: packages to install: ${absent[*]} (${group#*: })"
  missing+=("${absent[@]}")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: only root may install packages, and sudo is missing; run as root:" \
        "apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

[ "$torch2" = yes ] || exit 0
version=2.13.0
venv=.venv/torch2
libtorch=$venv/libtorch
needs_cuda=$venv/needs-cuda-$version  # marks a build that must not be downloaded again
if [ -e "$libtorch/.batchrpc-$version" ] && "$venv/bin/python" -c 'import sympy, jinja2, networkx' 2>/dev/null; then
  exit 0
fi

pip_install() {  # <options of pip> <package>...
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
}
# Without dependencies: PyPI's build would install CUDA's libraries.
install_torch() { pip_install --no-deps "$@" "torch==$version"; }

if [ ! -e "$needs_cuda" ] && [ ! -e "$libtorch/.batchrpc-$version" ]; then
  echo "setup: installing LibTorch $version into $venv"
  rm -rf "$venv"
  # PyPI's build for x86-64 needs CUDA.
  if ! /usr/bin/python3 -m venv "$venv" ||
    ! { install_torch --retries 0 --index-url https://download.pytorch.org/whl/cpu || install_torch; }; then
    echo "setup: pip cannot find LibTorch $version for this machine" >&2
    rm -rf "$venv"
    exit 3
  fi
fi
torch=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch
if [ -e "$torch/lib/libtorch_cuda.so" ] && ! command -v nvcc >/dev/null; then
  touch "$needs_cuda"
  echo "setup: pip installed a LibTorch $version for CUDA, which needs the CUDA toolkit; remove $venv" \
    "to try again, with an index that has the CPU build in PIP_EXTRA_INDEX_URL" >&2
  exit 3
fi
# The packages for exporting policies (scripts/export_policy.py).
if ! pip_install typing_extensions sympy networkx jinja2 filelock fsspec numpy 'setuptools>=77'; then
  echo "setup: pip cannot install the packages that PyTorch needs to export policies; their tests will be left out" >&2
fi
touch "$torch/.batchrpc-$version"
ln -sfn "$torch" "$libtorch"
