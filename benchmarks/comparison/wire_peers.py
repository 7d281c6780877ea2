"""The peers of calls and tensors, with one common command line and report."""

from . import systems
from .suite import PEER, REPORT, Job, System

# Name, program, Debian's packages, the transport that replaces our Unix sockets, its interfaces.
BUILT = (
    (
        "gRPC",
        "grpc_peer",
        "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc",
        "unix",
        (["--api", "callback"], ["--api", "queue"], ["--api", "queues"]),
    ),
    ("Cap'n Proto RPC", "capnp_peer", "libcapnp-dev", "unix", ([],)),
    ("TensorPipe", "tensorpipe_peer", "libtensorpipe-dev", "shm", ([],)),
)
TORCH = "torch.distributed.rpc"


def jobs(options, transport, work, read, prefix=()):
    """The jobs of all peers. `work`: the workload's options; `prefix`: precedes the command."""
    found = []
    for name, program, packages, local, ways in BUILT:
        path, requirement = systems.built_peer(program, packages)
        same = [*work, "--transport", local if transport == "unix" else "tcp", "--json", REPORT]
        commands = [systems.words(*prefix, path, *way, *same) for way in ways]
        found.append(_job(name, requirement, commands, read))
    found.append(_torch(options, transport, work, read, prefix))
    return found


def _torch(options, transport, work, read, prefix):
    """TorchScript or Python; and on one machine shared memory, for which its threads wait
    actively, or TCP. Which is best depends on the work and on the machine."""
    ways = [("script", "tcp"), ("python", "tcp")]
    if transport == "unix":
        ways = [("script", "shm"), ("python", "shm"), *ways]
    commands = [
        systems.words(
            *prefix,
            *systems.peer_script(options, "torch_rpc_calls.py", *work),
            *["--api", api, "--transport", own, "--json", REPORT],
        )
        for api, own in ways
    ]
    return _job(TORCH, systems.torch_rpc(options), commands, read)


def _job(name, requirement, commands, read):
    system = System(name, PEER, requirement)
    return Job([system], commands, lambda report: read(name, report))
