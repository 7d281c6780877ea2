#!/usr/bin/env python3
"""What Prometheus makes of a status page."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from status_program import Program, wait_until  # noqa: E402


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PrometheusTest(unittest.TestCase):
    def setUp(self):
        self.program = Program("status_program")
        self.addCleanup(self.program.end)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_has_nothing_against_the_metrics(self):
        wait_until(lambda: "batchrpc_batcher_rows_total" in self.program.get("/metrics"), "rows")
        lint = subprocess.run(["promtool", "check", "metrics"], input=self.program.get("/metrics"),
                              text=True, capture_output=True, timeout=60)
        self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
    def test_a_real_prometheus_scrapes_the_page(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        config = os.path.join(folder.name, "prometheus.yml")
        with open(config, "w") as file:
            file.write("scrape_configs:\n- job_name: batchrpc\n  scrape_interval: 1s\n"
                       f"  static_configs:\n  - targets: ['{self.program.address[7:]}']\n")
        port = free_port()
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder.name}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(prometheus.wait)
        self.addCleanup(prometheus.kill)

        def value(query):
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
                with urllib.request.urlopen(url, timeout=5) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:
                return None
            return float(found[0]["value"][1]) if found else None

        wait_until(lambda: value('up{job="batchrpc"}') == 1, "the page is up", 60)
        answered = 'batchrpc_handled_calls_total{function="select_action"}'
        before = wait_until(lambda: value(answered), "calls are counted", 30)
        wait_until(lambda: value(answered) > before, "the count grows", 30)
        wait_until(lambda: (value(f"rate({answered}[10s])") or 0) > 0, "a rate", 30)


if __name__ == "__main__":
    unittest.main()
