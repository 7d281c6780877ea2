#!/usr/bin/env bash
# Compares the example's ResNet-50 with torchvision's: names and shapes, outputs, gradients. Without
# torchvision it reports that and exits with 77.
#
#   scripts/check_resnet.sh [build folder]
#
#   PYTHON=/usr/bin/python3  a Python with torchvision (Debian: python3-torchvision)
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}
program=$build/bin/resnet_outputs
if [ ! -x "$program" ]; then
  echo "check_resnet: $program is missing; build it with cmake --build $build --target resnet_outputs" >&2
  exit 1
fi
exec "${PYTHON:-/usr/bin/python3}" examples/parameter_server/check_resnet.py "$program"
