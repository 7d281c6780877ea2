#!/usr/bin/env python3
"""Exports policies for batchrpc::load_policy; see docs/compiled-policies.md.

    .venv/torch2/bin/python scripts/export_policy.py atari FOLDER [--batch 1,4,16,64] [--forms frozen,script]

Needs a PyTorch of the program's LibTorch version: for compiled packages that of scripts/setup.sh --torch2;
for TorchScript Debian's is sufficient. Writes into FOLDER, depending on --forms:

    script.pt            TorchScript; the program loads it as frozen or updatable
    frozen/<size>.pt2    compiled by AOTInductor, one package per batch size, weights folded in
    dynamic/any.pt2      the same in one package, for any batch size
    updatable/<size>.pt2 like frozen, but weights can be changed while it serves

All have the same weights, from --seed or, trained, from --weights.
"""

import argparse
import ctypes
import hashlib
import os
import pathlib
import sys
import sysconfig
import tempfile

try:
    import torch
    from torch import nn
except ModuleNotFoundError:
    sys.exit("export_policy.py: this Python has no PyTorch: run scripts/setup.sh --torch2, then "
             ".venv/torch2/bin/python scripts/export_policy.py …")

KEY = "batchrpc_policy"  # the key of the description in a file
LARGEST_BATCH = 65536
FORMS = ("script", "frozen", "dynamic", "updatable")


class Atari(nn.Module):
    """examples/actor_critic/atari.cpp: RLlib's default network for Atari."""

    def __init__(self, actions: int):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, 8, 4, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 4, 2)
        self.conv3 = nn.Conv2d(32, 256, 11)
        self.policy = nn.Linear(256, actions)
        self.value = nn.Linear(256, 1)

    observation = torch.uint8, (4, 84, 84)

    def forward(self, frames):
        x = torch.relu(self.conv1(frames / 255))
        x = nn.functional.pad(x, (1, 2, 1, 2))
        x = torch.relu(self.conv2(x))
        # A convolution as large as its input; as a matrix product it is 2.5 to 5 times as fast.
        weight = self.conv3.weight.flatten(1)
        x = torch.relu(nn.functional.linear(x.flatten(1), weight, self.conv3.bias))
        return self.policy(x), self.value(x).squeeze(1)


class Mlp(nn.Module):
    """examples/actor_critic/mlp.cpp."""

    def __init__(self, actions: int):
        super().__init__()
        self.hidden1 = nn.Linear(4, 64)
        self.hidden2 = nn.Linear(64, 64)
        self.policy = nn.Linear(64, actions)
        self.value = nn.Linear(64, 1)

    observation = torch.float32, (4,)

    def forward(self, states):
        x = torch.tanh(self.hidden1(states))
        x = torch.tanh(self.hidden2(x))
        return self.policy(x), self.value(x).squeeze(1)


class TwoMlps(nn.Module):
    """examples/actor_critic/two_mlps.cpp: ppo's network for CartPole."""

    def __init__(self, actions: int):
        super().__init__()
        self.policy_hidden1 = nn.Linear(4, 64)
        self.policy_hidden2 = nn.Linear(64, 64)
        self.policy = nn.Linear(64, actions)
        self.value_hidden1 = nn.Linear(4, 64)
        self.value_hidden2 = nn.Linear(64, 64)
        self.value = nn.Linear(64, 1)

    observation = torch.float32, (4,)

    def forward(self, states):
        p = torch.tanh(self.policy_hidden2(torch.tanh(self.policy_hidden1(states))))
        v = torch.tanh(self.value_hidden2(torch.tanh(self.value_hidden1(states))))
        return self.policy(p), self.value(v).squeeze(1)


class MinAtar(nn.Module):
    """examples/actor_critic/minatar.cpp: ppo's network for MinAtar Breakout."""

    def __init__(self, actions: int):
        super().__init__()
        self.conv = nn.Conv2d(4, 16, 3)
        self.hidden = nn.Linear(16 * 8 * 8, 128)
        self.policy = nn.Linear(128, actions)
        self.value = nn.Linear(128, 1)

    observation = torch.bool, (4, 10, 10)

    def forward(self, planes):
        x = torch.relu(self.conv(planes.float())).flatten(1)
        x = torch.relu(self.hidden(x))
        return self.policy(x), self.value(x).squeeze(1)


NETWORKS = {"atari": (Atari, 6), "mlp": (Mlp, 2), "two-mlps": (TwoMlps, 2), "minatar": (MinAtar, 3)}


def row(dtype, sizes):
    """Formats a row like batchrpc::to_string(RowForm)."""
    return f"{str(dtype).removeprefix('torch.')} {list(sizes)}"


def digest(model):
    """A digest of the weights; packages of one folder have the same."""
    bytes_of = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        bytes_of.update(name.encode())
        dense = tensor.detach().cpu().contiguous()
        bytes_of.update(ctypes.string_at(dense.data_ptr(), dense.nelement() * dense.element_size()))  # without NumPy
    return bytes_of.hexdigest()[:16]


def description(model, batch, updatable, compiled=True):
    lines = ["format 1", f"torch {torch.__version__}", f"observation {row(*model.observation)}"]
    if compiled and next(model.parameters()).is_cpu:
        lines.append(f"cpu {torch.backends.cpu.get_cpu_capability()}")
    lines += [f"batch {batch}", f"weights {'updatable' if updatable else 'frozen'}"]
    lines += [f"state {digest(model)}"]
    lines += [f"weight {name} {row(t.dtype, t.shape)}" for name, t in model.state_dict().items()]
    return "\n".join(lines) + "\n"


def inputs(model, batch):
    dtype, sizes = model.observation
    return torch.zeros((batch, *sizes), dtype=dtype, device=next(model.parameters()).device)


def export_script(model, path):
    scripted = torch.jit.trace(model, inputs(model, 2))
    text = description(model, "any", updatable=True, compiled=False)
    torch.jit.save(scripted, str(path), _extra_files={KEY: text})


def export_compiled(model, path, batch, frozen):
    """batch: a size, or "any"."""
    any_size = batch == "any"
    shapes = ({0: torch.export.Dim("batch", min=1, max=LARGEST_BATCH)},) if any_size else None
    program = torch.export.export(model, (inputs(model, 2 if any_size else batch),), dynamic_shapes=shapes)
    config = {
        "aot_inductor.metadata": {KEY: description(model, batch, not frozen)},
        "freezing": frozen,
        # Otherwise small weights, and weights with equal elements, become constants in the code.
        "always_keep_tensor_constants": not frozen,
        "joint_graph_constant_folding": frozen,
    }
    march = {"AVX512": "x86-64-v4", "AVX2": "x86-64-v3"}.get(torch.backends.cpu.get_cpu_capability())
    if march and hasattr(torch._inductor.config.cpp, "march"):  # else for exactly this CPU
        config["cpp.march"] = march
    if frozen and next(model.parameters()).is_cpu:  # compile linear layers instead of calling oneDNN, 20 µs each
        config |= {"max_autotune_gemm": True, "max_autotune_gemm_backends": "CPP"}
    with torch._inductor.config.patch(config):
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def prepare_compiler(cache):
    """Makes inductor link this PyTorch's libraries. It would search the system's folders first, and
    with the system's LibTorch conclude that this machine has no vector instructions, and remember that."""
    sysconfig.get_config_vars()["LIBDIR"] = str(pathlib.Path(torch.__file__).parent / "lib")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache


def load_weights(model, path):
    """Reads a module that C++'s torch::save has written, which is a TorchScript archive."""
    try:
        model.load_state_dict(torch.jit.load(str(path)).state_dict())
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"export_policy.py: --weights {path}: {str(error).strip()}")


def count(text):
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 1")


def batches(text):
    if text == "any":
        return [text]
    sizes = [count(size) for size in text.split(",")]
    if max(sizes) > LARGEST_BATCH:
        raise argparse.ArgumentTypeError(f"a batch may have at most {LARGEST_BATCH} rows")
    return sorted(set(sizes))


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--batch", type=batches, default="1,4,16,64", help="batch sizes of the frozen and updatable forms (any: one package for all sizes)")
    parser.add_argument("--forms", default=",".join(FORMS), help="forms to write, of " + ", ".join(FORMS))
    parser.add_argument("--actions", type=count, help="number of actions")
    parser.add_argument("--device", default="cpu", help="device of compiled packages, such as cuda")
    parser.add_argument("--threads", type=count, default=1, help="threads of compiled packages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weights", type=pathlib.Path,
                        help="trained weights, instead of --seed's: a file of C++'s torch::save, such as ppo --weights")
    arguments = parser.parse_args(argv)
    arguments.forms = arguments.forms.split(",")
    if unknown := set(arguments.forms) - set(FORMS):
        parser.error(f"--forms: {', '.join(unknown)} is not one of {', '.join(FORMS)}")
    if set(arguments.forms) != {"script"} and not hasattr(torch, "export"):
        parser.error(f"--forms: PyTorch {torch.__version__} cannot compile packages; use --forms script, or PyTorch 2.10 or later")
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {arguments.device}: PyTorch {torch.__version__} finds no GPU")
    return arguments


def main(argv):
    arguments = parse(argv)
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(arguments.threads)
    make, actions = NETWORKS[arguments.network]
    model = make(arguments.actions or actions).eval()
    if arguments.weights:
        load_weights(model, arguments.weights)
    folder = arguments.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"export_policy.py: {folder}: {error.strerror}")
    with torch.no_grad(), tempfile.TemporaryDirectory() as cache:
        prepare_compiler(cache)
        for form in arguments.forms:
            if form == "script":
                export_script(model, folder / "script.pt")
                print(folder / "script.pt", flush=True)
                continue
            (folder / form).mkdir(exist_ok=True)
            for batch in ["any"] if form == "dynamic" else arguments.batch:
                path = folder / form / f"{batch}.pt2"
                export_compiled(model.to(arguments.device), path, batch, frozen=form != "updatable")
                print(path, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
