#!/usr/bin/env python3
"""What Prometheus makes of a status page."""

import json
import os
import pathlib
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
        value = self.scrape(self.program.address.removeprefix("http://"))
        wait_until(lambda: value('up{job="batchrpc"}') == 1, "the page is up", 60)
        answered = 'batchrpc_handled_calls_total{function="select_action"}'
        before = wait_until(lambda: value(answered), "calls are counted", 30)
        wait_until(lambda: value(answered) > before, "the count grows", 30)
        wait_until(lambda: (value(f"rate({answered}[10s])") or 0) > 0, "a rate", 30)

    @unittest.skipUnless(shutil.which("prometheus") and shutil.which("openssl"),
                         "prometheus or openssl is not installed")
    def test_a_real_prometheus_scrapes_a_page_by_tls_with_its_token_from_a_file(self):
        folder = self.folder()
        certificate, key, token = (folder / name for name in ("certificate.pem", "key.pem", "token"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
                       check=True, capture_output=True, timeout=60)
        token.write_text("a-token-of-this-test\n")
        program = Program("status_program", "127.0.0.1:0", "", "a-token-of-this-test", str(certificate), str(key))
        self.addCleanup(program.end)
        value = self.scrape(program.address.removeprefix("https://"),
                            f"  scheme: https\n  authorization:\n    credentials_file: {token}\n"
                            f"  tls_config:\n    ca_file: {certificate}\n")
        wait_until(lambda: value('up{job="batchrpc"}') == 1, "the page is up", 60)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def scrape(self, target, more=""):
        """Starts a Prometheus that scrapes the target. Returns what asks it for a value."""
        folder = self.folder()
        config = folder / "prometheus.yml"
        config.write_text("scrape_configs:\n- job_name: batchrpc\n  scrape_interval: 1s\n"
                          f"{more}  static_configs:\n  - targets: ['{target}']\n")
        port = free_port()
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
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

        return value


if __name__ == "__main__":
    unittest.main()
