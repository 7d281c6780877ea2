#!/usr/bin/python3
"""A batching server on plain sockets, written by hand: moolib's approach without moolib.

    /usr/bin/python3 benchmarks/peers/batch_moolib_by_hand.py --callers 8

It prints one line of JSON. moolib's `define_queue(name, batch_size=N, dynamic_batching=True)` collects the
calls of client processes in a queue. The server takes all waiting calls, at most N, stacks
them, and answers each. Here the same is one thread on epoll, with a stream socket per client process
(Unix domain, or TCP on the loopback device with --tcp), 16 bytes a row and one byte an action.
batch_moolib.py measures the real moolib, if it has been built.
"""

import collections
import multiprocessing
import os
import select
import socket
import struct
import sys
import tempfile
import time

import batch_common as common

ROW = struct.Struct(f"={common.WIDTH}f")


def connect(family, address):
    """A caller; it needs no torch."""
    connection = socket.socket(family)
    connection.connect(address)
    if family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call():
        connection.sendall(ROW.pack(*common.ROW))
        answer = connection.recv(1)
        if not answer:
            raise RuntimeError("the server has closed the connection")
        common.checked(answer[0])

    return call, connection.close


class Server:
    """Answers until a byte on `control` tells it to end."""

    def __init__(self, listener, control, options):
        self.listener, self.control, self.options = listener, control, options
        self.policy = common.make_policy()
        self.clients = {}  # file descriptor -> (socket, beginning of an incomplete row)
        self.queue = collections.deque()  # (socket, row)
        self.rows = self.batches = 0
        self.epoll = select.epoll()
        self.epoll.register(listener, select.EPOLLIN)
        self.epoll.register(control.fileno(), select.EPOLLIN)

    def read(self, timeout):
        """Takes all received rows; returns False when told to end."""
        for descriptor, _ in self.epoll.poll(timeout):
            if descriptor in self.clients:
                self.read_row(descriptor)
            elif descriptor == self.listener.fileno():
                client, _ = self.listener.accept()
                if client.family == socket.AF_INET:
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.clients[client.fileno()] = [client, b""]
                self.epoll.register(client, select.EPOLLIN)
            else:
                return False
        return True

    def read_row(self, descriptor):
        client, start = self.clients[descriptor]
        data = client.recv(ROW.size - len(start))
        if not data:
            self.epoll.unregister(descriptor)
            del self.clients[descriptor]
            client.close()
            return
        row = start + data
        if len(row) == ROW.size:
            self.queue.append((client, row))
            row = b""
        self.clients[descriptor][1] = row

    def answer(self):
        import torch

        count = min(len(self.queue), self.options.batch)
        taken = [self.queue.popleft() for _ in range(count)]
        data = bytearray().join(row for _, row in taken)
        rows = torch.frombuffer(data, dtype=torch.float32).view(count, common.WIDTH)
        actions = bytes(common.sample(self.policy, rows, self.options.grad).tolist())
        for index, (client, _) in enumerate(taken):
            try:
                client.send(actions[index : index + 1])
            except OSError:
                pass  # the caller has closed; reading reports it too
        self.rows += count
        self.batches += 1

    def run(self):
        wait = self.options.max_wait_ms / 1e3
        while self.read(0 if self.queue else None):
            deadline = time.monotonic() + wait
            while wait > 0 and 0 < len(self.queue) < self.options.batch:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                if not self.read(remaining):
                    return
            if self.queue:
                self.answer()


def serve(listener, control, options):
    import torch

    server = Server(listener, control, options)
    server.run()
    control.send((torch.__version__, server.rows / max(server.batches, 1)))


def main():
    options = common.parse_arguments(
        __doc__, lambda parser: parser.add_argument("--tcp", action="store_true")
    )
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        family = socket.AF_INET if options.tcp else socket.AF_UNIX
        listener = socket.socket(family)
        listener.bind(("127.0.0.1", 0) if options.tcp else os.path.join(folder, "server"))
        listener.listen(options.callers)
        here, there = context.Pipe()
        server = context.Process(target=serve, args=(listener, there, options), daemon=True)
        server.start()
        there.close()
        callers = common.Callers(connect, [(family, listener.getsockname())] * options.callers)
        latencies = callers.measure(options)
        here.send(True)
        torch_version, mean_batch = common.receive(here)
        server.join()
    socket_name = "TCP loopback" if options.tcp else "Unix domain"
    common.report(
        "moolib by hand",
        "python " + sys.version.split()[0],
        torch_version,
        options,
        latencies,
        mean_batch,
        f"callers are processes; {socket_name} sockets, epoll, one server thread",
    )


if __name__ == "__main__":
    main()
