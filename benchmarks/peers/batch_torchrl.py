#!/usr/bin/env python3
"""TorchRL's inference server as a batch peer.

    .venv/peers/bin/python benchmarks/peers/batch_torchrl.py --callers 8

It prints one line of JSON. A ProcessInferenceServer has the policy in its own process. Callers are
processes, each with a client of its transport, by default ProcessSlotTransport (shared memory). With
`--transport threads` the server is a thread (InferenceServer, SlotTransport), and so are the callers.
"""

import threading
import time

import batch_common as common


def make_module(grad):
    from tensordict.nn import TensorDictModule

    policy = common.make_policy()
    return TensorDictModule(
        lambda rows: common.sample(policy, rows, grad), in_keys=["observation"], out_keys=["action"]
    )


class PolicyFactory:
    """Makes the policy in the server's process."""

    def __init__(self, grad):
        self.grad = grad

    def __call__(self):
        return make_module(self.grad)


def connect(client):
    import torch
    from tensordict import TensorDict

    torch.set_num_threads(1)

    def call():
        row = TensorDict({"observation": torch.tensor(common.ROW)})
        common.checked(client(row)["action"].item())

    return call, lambda: None


def make_transport(kind, callers):
    import multiprocessing

    import torch
    from tensordict import TensorDict
    from torchrl.modules import inference_server

    context = multiprocessing.get_context("spawn")
    request = TensorDict({"observation": torch.zeros(common.WIDTH)})
    response = TensorDict({"action": torch.zeros((), dtype=torch.long)})
    if kind == "slots":
        return inference_server.ProcessSlotTransport(
            request, response, num_slots=callers, ctx=context
        )
    if kind == "shared":
        return inference_server.SharedMemoryTransport(
            request, response, num_slots=callers, ctx=context
        )
    if kind == "queues":
        return inference_server.MPTransport(ctx=context)
    return inference_server.SlotTransport(callers)


def measure_processes(server, options):
    callers = common.Callers(connect, [(client,) for client in server.clients(options.callers)])
    with server:
        return callers.measure(options), server.stats()


def measure_threads(server, options):
    latencies = []
    window = []
    begin = threading.Barrier(options.callers + 1)

    def run(client):
        call, _ = connect(client)
        call()
        begin.wait()
        begin.wait()
        latencies.extend(common.call_until_end(call, *window))

    threads = [
        threading.Thread(target=run, args=(client,)) for client in server.clients(options.callers)
    ]
    with server:
        for thread in threads:
            thread.start()
        begin.wait()
        window.extend(common.times(options))
        begin.wait()
        for thread in threads:
            thread.join()
        return latencies, server.stats()


def main():
    options = common.parse_arguments(
        __doc__,
        lambda parser: parser.add_argument(
            "--transport", choices=("slots", "shared", "queues", "threads"), default="slots"
        ),
    )
    import torch
    import torchrl
    from torchrl.modules import inference_server

    transport = make_transport(options.transport, options.callers)
    settings = {"max_batch_size": options.batch, "policy_version_key": None, "collect_stats": True}
    if options.max_wait_ms > 0:
        settings.update(min_batch_size=options.batch, timeout=options.max_wait_ms / 1e3)
    if options.transport == "threads":
        server = inference_server.InferenceServer(make_module(options.grad), transport, **settings)
        latencies, stats = measure_threads(server, options)
    else:
        server = inference_server.ProcessInferenceServer(
            policy_factory=PolicyFactory(options.grad), transport=transport, **settings
        )
        latencies, stats = measure_processes(server, options)
    common.report(
        "TorchRL",
        torchrl.__version__,
        torch.__version__,
        options,
        latencies,
        stats["requests"] / stats["batches"],
        f"callers are {'threads' if options.transport == 'threads' else 'processes'}; "
        f"{type(server).__name__}, {type(transport).__name__}",
    )


if __name__ == "__main__":
    main()
