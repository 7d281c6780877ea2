#!/usr/bin/python3
"""The batch pattern of PyTorch's tutorial, on torch.distributed.rpc, as a batch peer.

    /usr/bin/python3 benchmarks/peers/batch_torch_rpc.py --callers 8

It prints one line of JSON. As in the tutorial on batch RPC processing, callers call an asynchronous
function of the agent. It stores the row under a lock, counts, and returns a continuation of the one
future of the batch. The call that fills the batch infers and sets that future. So a batch waits until it
is full: of --batch rows, or of as many as there are callers left. All are processes.
"""

import multiprocessing
import os
import socket
import threading

os.environ.setdefault("GLOG_minloglevel", "2")  # no notes on shutting down; read by the imports

import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402

import batch_common as common  # noqa: E402

AGENT = "agent"


class Agent:
    def __init__(self, options):
        self.options = options
        self.policy = common.make_policy()
        self.lock = threading.Lock()
        self.callers = options.callers
        self.done = self.batches = 0
        self.begin_batch()

    def begin_batch(self):
        self.rows = []
        self.actions = torch.futures.Future()

    def add(self, row):
        with self.lock:
            index = len(self.rows)
            self.rows.append(row)
            mine = self.actions.then(lambda actions: actions.value()[index].item())
            full = self.infer_if_full()
        if full:
            full[0].set_result(full[1])
        return mine

    def leave(self):
        with self.lock:
            self.callers -= 1
            full = self.infer_if_full()
        if full:
            full[0].set_result(full[1])

    def infer_if_full(self):
        """(future, actions) of a full batch. The caller must hold the lock."""
        if not self.rows or len(self.rows) < min(self.options.batch, self.callers):
            return None
        actions = common.sample(self.policy, torch.stack(self.rows), self.options.grad)
        full = self.actions
        self.done += len(self.rows)
        self.batches += 1
        self.begin_batch()
        return full, actions


agent = None  # in the agent's process


@rpc.functions.async_execution
def select_action(row):
    return agent.add(row)


def leave():
    agent.leave()


def join(name, rank, port, options):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    rpc.init_rpc(
        name,
        rank=rank,
        world_size=options.callers + 1,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            num_worker_threads=options.worker_threads
        ),
    )


def connect(rank, port, options):
    join(f"caller{rank}", rank, port, options)

    def call():
        common.checked(rpc.rpc_sync(AGENT, select_action, args=(torch.tensor(common.ROW),)))

    def close():
        rpc.rpc_sync(AGENT, leave)
        rpc.shutdown()

    return call, close


def serve(connection, port, options):
    global agent
    agent = Agent(options)
    join(AGENT, 0, port, options)
    rpc.shutdown()  # waits for all callers to have shut down
    connection.send(agent.done / max(agent.batches, 1))


def main():
    options = common.parse_arguments(
        __doc__,
        lambda parser: parser.add_argument(
            "--worker-threads", type=int, default=16, help="RPC threads of each process"
        ),
        wait=False,
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, port, options), daemon=True)
    server.start()
    there.close()
    arguments = [(rank + 1, port, options) for rank in range(options.callers)]
    latencies = common.Callers(connect, arguments, first_call=False).measure(options)
    mean_batch = common.receive(here)
    server.join()
    common.report(
        "torch.distributed.rpc",
        torch.__version__,
        torch.__version__,
        options,
        latencies,
        mean_batch,
        "callers are processes; async_execution, lock, counter and one future, which waits for a"
        " full batch",
    )


if __name__ == "__main__":
    main()
