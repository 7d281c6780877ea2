#!/usr/bin/python3
"""The batch-updating parameter server on torch.distributed.rpc.

    /usr/bin/python3 benchmarks/peers/parameter_server_torch_rpc.py --trainers 5

One server and N trainers, each in its own process with one thread of torch. The server has a
ResNet-50. Each trainer gets it once. Then, in each iteration, it sends all gradients and gets the
updated model as the reply of the same call, an asynchronous function of the server. The last
trainer's gradients make the server do one step of SGD, which answers all.

With `--synthetic` nothing is computed: trainers send the same gradients in each iteration. The server
adds them up and answers with the unchanged model. Only traffic and summing remain.

Prints one line of JSON. `work_seconds` runs from where all have joined and have made what they need
to the end of the last iteration, and is the sum of `fetch_seconds`, until the last trainer has its
first model, and `iteration_seconds`, each until the last trainer has its next. `rpc_seconds` is the
median of what a call took, the wait for the other trainers included.

The algorithm is that of PyTorch's tutorial on batch RPC processing, rewritten without its fault:
gradients are added up under the lock, where the tutorial's threads can lose each other's sums. The
reply is the whole module, as there. The model is torchvision's where there is one, else the same of
this file.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import threading
import time

from ranks import start_ranks

os.environ.setdefault("GLOG_minloglevel", "2")  # no notes on shutting down; read by the imports

import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402

SERVER = "server"


def convolution(inputs, outputs, size, stride=1):
    return torch.nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Bottleneck(torch.nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = convolution(inputs, width, 1)
        self.bn1 = torch.nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = torch.nn.BatchNorm2d(width)
        self.conv3 = convolution(width, 4 * width, 1)
        self.bn3 = torch.nn.BatchNorm2d(4 * width)
        self.relu = torch.nn.ReLU(inplace=True)
        self.downsample = torch.nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.downsample = torch.nn.Sequential(
                convolution(inputs, 4 * width, 1, stride), torch.nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def plain_resnet50(classes):
    """torchvision's ResNet-50, used if torchvision is not installed."""
    stages, inputs = [], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        stage = [Bottleneck(inputs, width, stride)]
        stage += [Bottleneck(4 * width, width, 1) for _ in range(blocks - 1)]
        stages.append(torch.nn.Sequential(*stage))
        inputs = 4 * width
    model = torch.nn.Sequential(
        convolution(3, 64, 7, 2),
        torch.nn.BatchNorm2d(64),
        torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(3, 2, 1),
        *stages,
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(inputs, classes),
    )
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


def make_model(options):
    """The model, and its source."""
    if options.synthetic or importlib.util.find_spec("torchvision") is None:
        return plain_resnet50(options.classes), "plain"
    import torchvision

    model = torchvision.models.resnet50(num_classes=options.classes)
    return model, f"torchvision {torchvision.__version__}"


class Server:
    """Holds the model, in the server's process."""

    def __init__(self, options):
        self.options = options
        self.model, self.origin = make_model(options)
        self.reply = list(self.model.state_dict().values()) if options.synthetic else self.model
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=options.lr, momentum=options.momentum
        )
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.lock = threading.Lock()
        self.begin_batch()

    def begin_batch(self):
        self.missing = self.options.trainers
        self.updated = torch.futures.Future()

    def get_model(self):
        return self.reply

    def add(self, gradients):
        with self.lock:
            updated = self.updated
            with torch.no_grad():
                for parameter, gradient in zip(self.model.parameters(), gradients):
                    parameter.grad += gradient
            self.missing -= 1
            if self.missing > 0:
                return updated
            if not self.options.synthetic:
                self.step()
            self.begin_batch()
        updated.set_result(self.reply)
        return updated

    def step(self):
        for parameter in self.model.parameters():
            parameter.grad /= self.options.trainers
        self.optimizer.step()
        for parameter in self.model.parameters():
            parameter.grad.zero_()


@rpc.functions.async_execution
def update_and_fetch_model(server_reference, gradients):
    return server_reference.local_value().add(gradients)


class Trainer:
    """A trainer, in its process."""

    def __init__(self, options):
        self.options = options
        self.loss = torch.nn.MSELoss()
        self.one_hot = torch.randint(options.classes, (options.batch_size, 1))
        if options.synthetic:
            model, _ = make_model(options)
            self.gradients = [torch.ones_like(parameter) for parameter in model.parameters()]

    def ready(self):
        """Answers once this object exists."""
        return True

    def compute_gradients(self, model):
        if self.options.synthetic:
            return self.gradients
        size = self.options.image
        images = torch.randn(self.options.batch_size, 3, size, size)
        labels = torch.zeros(self.options.batch_size, self.options.classes)
        self.loss(model(images), labels.scatter_(1, self.one_hot, 1)).backward()
        return [parameter.grad for parameter in model.parameters()]

    def train(self, server):
        """The times at which it had each model, beginning with the first, and the seconds of each call."""
        model = server.rpc_sync(timeout=0).get_model()
        ends, seconds = [time.monotonic()], []
        for _ in range(self.options.iterations):
            gradients = self.compute_gradients(model)
            start = time.monotonic()
            model = rpc.rpc_sync(
                SERVER, update_and_fetch_model, args=(server, gradients), timeout=0
            )
            ends.append(time.monotonic())
            seconds.append(ends[-1] - start)
        return ends, seconds


def size_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def run_server(options):
    server = rpc.RRef(Server(options))
    trainers = [
        rpc.remote(f"trainer{index}", Trainer, args=(options,)) for index in range(options.trainers)
    ]
    for trainer in trainers:
        trainer.rpc_sync().ready()
    setup = time.time() - options.started
    joined = time.monotonic()  # all processes of a machine read the same clock
    futures = [trainer.rpc_async(timeout=0).train(server) for trainer in trainers]
    results = torch.futures.wait_all(futures)

    last = [max(ends) for ends in zip(*(ends for ends, _ in results))]
    iterations = [end - start for start, end in zip(last, last[1:])]
    model = server.local_value().model
    parameters = list(model.parameters())
    report = {
        "system": "torch.distributed.rpc",
        "torch": torch.__version__,
        "model": server.local_value().origin,
        "synthetic": options.synthetic,
        "trainers": options.trainers,
        "iterations": options.iterations,
        "batch_size": options.batch_size,
        "image": options.image,
        "classes": options.classes,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "gradient_bytes": size_of(parameters),
        "model_bytes": size_of(model.state_dict().values()),
        "setup_seconds": round(setup, 3),
        "work_seconds": round(last[-1] - joined, 3),
        "fetch_seconds": round(last[0] - joined, 3),
        "iteration_seconds": [round(seconds, 3) for seconds in iterations],
        "iteration_median_seconds": round(statistics.median(iterations), 3),
        "rpc_seconds": round(
            statistics.median(call for _, seconds in results for call in seconds), 3
        ),
    }
    print(json.dumps(report), flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def run_rank(options):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed + options.rank)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(options.port)
    rpc.init_rpc(
        SERVER if options.rank == 0 else f"trainer{options.rank - 1}",
        rank=options.rank,
        world_size=options.trainers + 1,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            num_worker_threads=options.worker_threads,
            # Else TensorPipe lets the kernel copy between processes if that is allowed.
            _channels=["basic"] if options.no_cma else None,
        ),
    )
    if options.rank == 0:
        run_server(options)
    rpc.shutdown()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trainers", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=20, help="images per trainer and iteration")
    parser.add_argument("--image", type=int, default=64, help="width and height of an image")
    parser.add_argument("--classes", type=int, default=30)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--synthetic", action="store_true", help="traffic and summing only")
    parser.add_argument("--json", type=pathlib.Path, help="write the report to this file too")
    parser.add_argument("--seed", type=int, default=543)
    parser.add_argument("--worker-threads", type=int, default=16, help="RPC threads of each process")
    parser.add_argument("--no-cma", action="store_true", help="send tensors through shared memory")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    numbers = [options.trainers, options.iterations, options.batch_size, options.image]
    if min([*numbers, options.classes, options.worker_threads]) < 1:
        parser.error("numbers of trainers, iterations, images, classes, threads must be at least 1")
    return options


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.rank is None:
        sys.exit(start_ranks(arguments.trainers + 1, "--started", repr(time.time())))
    run_rank(arguments)
