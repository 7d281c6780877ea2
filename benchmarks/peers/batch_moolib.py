#!/usr/bin/python3
"""moolib's dynamic batching as a batch peer.

    /usr/bin/python3 benchmarks/peers/batch_moolib.py --callers 8

It prints one line of JSON. The server awaits a `define_queue` with `batch_size` and `dynamic_batching=True`,
as in moolib's own test. Callers are processes with their own Rpc, which call it with `sync`.
moolib listens on TCP and may switch to shared memory, unless it is told to use only one of them.
It has no wheels: `setup_batch_peers.sh --moolib` builds it into .venv/moolib.
"""

import asyncio
import multiprocessing
import os
import pathlib
import socket
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".venv" / "moolib"
sys.path.insert(0, str(FOLDER))

import moolib  # noqa: E402
import torch  # noqa: E402

import batch_common as common  # noqa: E402

SERVER = "server"


def make_rpc(options, name):
    torch.set_num_threads(1)
    if options.threads:
        moolib.set_max_threads(options.threads)
    rpc = moolib.Rpc()
    if options.tcp:
        rpc.set_transports(["tcp/ip"])
    if options.shared_memory:
        rpc.set_transports(["shared memory"])
    rpc.set_name(name)
    rpc.set_timeout(30)
    return rpc


def connect(index, address, options):
    rpc = make_rpc(options, f"caller{index}")
    rpc.connect(address)

    def call():
        common.checked(int(rpc.sync(SERVER, "act", torch.tensor(common.ROW))))

    return call, lambda: None


def serve(connection, address, options):
    policy = common.make_policy()
    rpc = make_rpc(options, SERVER)
    done = batches = 0

    async def answer_all():
        nonlocal done, batches
        queue = rpc.define_queue("act", batch_size=options.batch, dynamic_batching=True)
        rpc.listen(address)
        connection.send(True)
        while True:
            answer, (rows,), _ = await queue
            answer(common.sample(policy, rows, options.grad))
            done += len(rows)
            batches += 1

    async def until_told():
        task = asyncio.create_task(answer_all())
        await asyncio.get_running_loop().run_in_executor(None, connection.recv)
        task.cancel()

    asyncio.run(until_told())
    connection.send(done / max(batches, 1))
    connection.close()
    os._exit(0)  # moolib's threads are still running


def main():
    def add(parser):
        transport = parser.add_mutually_exclusive_group()
        transport.add_argument("--shared-memory", action="store_true", help="only")
        transport.add_argument("--tcp", action="store_true", help="only")
        parser.add_argument("--threads", type=int, help="threads of moolib in each process")

    options = common.parse_arguments(__doc__, add, wait=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    transport = "chosen by moolib"
    if options.tcp:
        transport = "tcp/ip"
    if options.shared_memory:
        transport = "shared memory"
        address = f"shm://batch-moolib-{os.getpid()}"
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, address, options), daemon=True)
    server.start()
    there.close()
    common.receive(here)
    arguments = [(index, address, options) for index in range(options.callers)]
    latencies = common.Callers(connect, arguments).measure(options)
    here.send(True)
    mean_batch = common.receive(here)
    server.join()
    common.report(
        "moolib",
        "0.0.9b0",
        torch.__version__,
        options,
        latencies,
        mean_batch,
        f"callers are processes; define_queue with dynamic_batching; transport: {transport}",
    )


if __name__ == "__main__":
    main()
