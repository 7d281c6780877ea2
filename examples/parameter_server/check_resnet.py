#!/usr/bin/python3
"""Compares this folder's ResNet-50 with torchvision's. Called by scripts/check_resnet.sh.

    check_resnet.py build/release/bin/resnet_outputs

Both get the same weights, statistics of batch norm, images and labels. Names, shapes and their
order must be the same; so must outputs in eval() and in train(), the gradients of an MSE loss, and
the statistics after it, to 1e-4 of the largest value in each tensor. The weights that each draws
must have the same means and deviations, as far as their number allows a statement. Without
torchvision it exits with 77.
"""

import argparse
import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
CLASSES = 30
TOLERANCE = 1e-4

for needed in ("torch", "torchvision"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: ResNet-50 is not compared, because {sys.executable} has no {needed}")
        print("(Debian: apt-get install python3-torchvision)")
        sys.exit(SKIPPED)

import torch  # noqa: E402
import torchvision  # noqa: E402


class Comparison:
    def __init__(self):
        self.failures = 0

    def check(self, holds, what):
        if not holds:
            self.failures += 1
            print(f"differs: {what}")
        return holds

    def names_and_shapes(self, what, ours, theirs):
        """Whether two dicts of tensors have the same names and shapes in the same order."""
        failures = self.failures
        self.check(len(ours) == len(theirs), f"{len(ours)} {what}, not {len(theirs)}")
        for (our_name, our), (name, tensor) in zip(ours.items(), theirs.items()):
            mine, expected = f"{our_name} {list(our.shape)}", f"{name} {list(tensor.shape)}"
            self.check(mine == expected, f"{what}: {mine}, not {expected}")
        values = sum(tensor.numel() for tensor in ours.values())
        print(f"{what}: {len(ours)} names and shapes, {values} values")
        return self.failures == failures

    def values(self, what, ours, theirs):
        if not self.names_and_shapes(what, ours, theirs):
            return
        worst = 0.0
        for name, expected in theirs.items():
            difference = (ours[name].double() - expected.double()).abs().max().item()
            largest = expected.double().abs().max().item()
            ratio = difference / largest if difference > 0 and largest > 0 else difference
            self.check(ratio <= TOLERANCE, f"{what}: {name} by {ratio:.1e} of {largest:.1e}")
            worst = max(worst, ratio)
        print(f"{what}: largest difference {worst:.1e} of a tensor's largest value")

    def distributions(self, ours, theirs):
        """Compares means and deviations of weights that were drawn from different seeds."""
        if not self.names_and_shapes("initial parameters", ours, theirs):
            return
        for name, expected in theirs.items():
            our = ours[name].double()
            expected = expected.double()
            if expected.min() == expected.max():
                self.check(torch.equal(our, expected), f"initial {name}, which is constant")
                continue
            deviation = expected.std().item()
            noise = 5 / math.sqrt(expected.numel())
            mean_apart = abs(our.mean().item() - expected.mean().item()) / deviation
            apart = abs(our.std().item() / deviation - 1)
            drawn_alike = max(mean_apart, apart) <= noise * math.sqrt(2)
            self.check(drawn_alike, f"how initial {name} is drawn")


def prepared_model():
    """A model in which no value is an initial one, so that mix-ups are noticed."""
    model = torchvision.models.resnet50(num_classes=CLASSES)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
    return model


def run_theirs(model, images, labels):
    outputs = {"eval": model.eval()(images).detach()}
    outputs["train"] = model.train()(images)
    outputs["loss"] = torch.nn.MSELoss()(outputs["train"], labels)
    outputs["loss"].backward()
    return {name: tensor.detach() for name, tensor in outputs.items()}


def run_ours(program, model, images, labels):
    with tempfile.TemporaryDirectory() as folder:
        given = pathlib.Path(folder) / "given.pt"
        results = pathlib.Path(folder) / "results.pt"
        state = dict(model.state_dict())
        torch.save({"state": state, "images": images, "labels": labels}, given)
        result = subprocess.run([program, given, results], check=False)
        if result.returncode != 0:
            sys.exit(f"{program} exited with {result.returncode}")
        return torch.load(results)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=pathlib.Path, help="resnet_outputs")
    options = parser.parse_args()

    torch.manual_seed(543)
    initial = torchvision.models.resnet50(num_classes=CLASSES)
    model = prepared_model()
    images = torch.randn(20, 3, 64, 64)
    classes = torch.randint(CLASSES, (20, 1))
    labels = torch.zeros(20, CLASSES).scatter_(1, classes, 1)

    ours = run_ours(options.program, model, images, labels)
    outputs = run_theirs(model, images, labels)
    comparison = Comparison()
    comparison.distributions(ours["initial"], dict(initial.named_parameters()))
    comparison.values("outputs", ours["outputs"], outputs)
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    comparison.values("gradients", ours["gradients"], gradients)
    comparison.values("buffers after train()", ours["buffers"], dict(model.named_buffers()))
    if comparison.failures:
        sys.exit(f"ResNet-50 differs from torchvision's in {comparison.failures} places")
    print(f"ResNet-50 is torchvision {torchvision.__version__}'s")


if __name__ == "__main__":
    main()
