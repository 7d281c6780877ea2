#!/usr/bin/env python3
"""Ray Serve's `@serve.batch` as a batch peer.

    .venv/peers/bin/python benchmarks/peers/batch_ray_serve.py --callers 8

It prints one line of JSON. One replica of a deployment has the policy, in its own process. Callers
are Ray actors, so processes too. Each has a DeploymentHandle and calls the replica without HTTP.
A local Ray is started for it, and stopped again. Access logs, the dashboard, the HTTP proxy and the
report of usage are off. With `--throughput` RAY_SERVE_THROUGHPUT_OPTIMIZED=1 is set, and callers are
asynchronous actors, as handles then require.
"""

import array
import os
import sys
import time

if "--throughput" in sys.argv:
    os.environ["RAY_SERVE_THROUGHPUT_OPTIMIZED"] = "1"  # read by the import
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read by the import

import ray  # noqa: E402
import torch  # noqa: E402
from ray import serve  # noqa: E402

import batch_common as common  # noqa: E402


def make_deployment(options):
    grad = options.grad

    @serve.deployment(
        num_replicas=1,
        max_ongoing_requests=2 * max(options.callers, options.batch),  # the default of 5 throttles
        ray_actor_options={"num_cpus": 0},
    )
    class Policy:
        def __init__(self):
            self.policy = common.make_policy()
            self.rows = self.batches = 0

        @serve.batch(
            max_batch_size=options.batch, batch_wait_timeout_s=options.max_wait_ms / 1e3
        )
        async def infer(self, rows):
            self.rows += len(rows)
            self.batches += 1
            return common.sample(self.policy, torch.tensor(rows), grad).tolist()

        async def __call__(self, row):
            return await self.infer(row)

        async def mean_batch(self):
            return self.rows / max(self.batches, 1)

    return Policy


@ray.remote(num_cpus=0)
class Caller:
    def __init__(self, handle):
        self.handle = handle
        self.call()

    def call(self):
        common.checked(self.handle.remote(common.ROW).result())

    def ready(self):
        return True

    def run(self, begin, end):
        return array.array("d", common.call_until_end(self.call, begin, end)).tobytes()


@ray.remote(num_cpus=0)
class AsyncCaller:
    def __init__(self, handle):
        self.handle = handle

    async def ready(self):
        common.checked(await self.handle.remote(common.ROW))
        return True

    async def run(self, begin, end):
        clock = time.monotonic
        latencies = array.array("d")
        started = clock()
        while started < end:
            common.checked(await self.handle.remote(common.ROW))
            ended = clock()
            if started >= begin and ended <= end:
                latencies.append((ended - started) * 1e6)
            started = ended
        return latencies.tobytes()


@ray.remote(num_cpus=0)
class MeanBatch:
    def __init__(self, handle):
        self.handle = handle

    async def get(self):
        return await self.handle.mean_batch.remote()


def measure(options):
    handle = serve.run(make_deployment(options).bind(), route_prefix=None)
    kind = AsyncCaller if options.throughput else Caller
    callers = [kind.remote(handle) for _ in range(options.callers)]
    ray.get([caller.ready.remote() for caller in callers])
    begin, end = common.times(options)
    results = ray.get([caller.run.remote(begin, end) for caller in callers])
    latencies = [value for data in results for value in array.array("d", data)]
    return latencies, ray.get(MeanBatch.remote(handle).get.remote())


def main():
    options = common.parse_arguments(
        __doc__, lambda parser: parser.add_argument("--throughput", action="store_true")
    )
    folder = os.path.dirname(os.path.abspath(__file__))
    ray.init(
        address="local",  # not a Ray that runs already
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}},
    )
    try:
        serve.start(
            proxy_location="Disabled",
            logging_config={"log_level": "ERROR", "enable_access_log": False},
        )
        latencies, mean_batch = measure(options)
    finally:
        ray.shutdown()
    common.report(
        "Ray Serve",
        ray.__version__,
        torch.__version__,
        options,
        latencies,
        mean_batch,
        f"callers are {'asynchronous ' * options.throughput}Ray actors (processes) with"
        " DeploymentHandles; one replica; no HTTP, no access log"
        + ", RAY_SERVE_THROUGHPUT_OPTIMIZED=1" * options.throughput,
    )


if __name__ == "__main__":
    main()
