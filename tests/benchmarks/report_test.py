#!/usr/bin/python3
"""Tests of what benchmarks/compare tells: tables, Markdown, JSON, pages, pictures."""

import json
import re
import unittest

from support import RATE, ROOT, Folder, job, run, sample

from comparison import figure, page, report, rl, suites
from comparison.suite import OURS, Case, UsageError


class Reports(Folder):
    def test_a_table_for_the_terminal(self):
        title, *lines = report.terminal(sample()).splitlines()
        self.assertEqual(title, "ten calls")
        cells = [re.split("  +", line) for line in lines]
        self.assertEqual(cells[0], ["system", "calls/s", "batchrpc is", "p50, µs", "batchrpc is"])
        self.assertEqual(cells[1], ["batchrpc", "75.0 ± 33 %", "2.00 ± 0 %"])
        self.assertEqual(
            cells[3], ["peer", "30.0 ± 67 %", "3.50 × ± 1.50", "8.00 ± 0 %", "4.00 × ± 0.00"]
        )
        self.assertIn("not measured: no module named other (apt-get install other)", lines[4])
        self.assertEqual(len({line.index("batchrpc is") + 11 for line in lines[:1]}), 1)
        self.assertEqual(lines[0].index("calls/s") + 7, lines[1].index("33 %") + 4)

    def test_markdown(self):
        lines = report.markdown(sample()).splitlines()
        self.assertEqual(lines[:2], ["**ten calls**", ""])
        self.assertEqual(lines[2], "| system | calls/s | batchrpc is | p50, µs | batchrpc is |")
        self.assertEqual(lines[3], "| --- | ---: | ---: | ---: | ---: |")
        self.assertEqual(
            lines[6], "| peer | 30.0 ± 67 % | 3.50 × ± 1.50 | 8.00 ± 0 % | 4.00 × ± 0.00 |"
        )
        self.assertTrue(all(line.count("|") == 6 for line in lines[2:]))

    def test_json_has_every_round_and_all_ratios(self):
        entry = json.loads(json.dumps(report.to_json(rl.SUITE, [sample()])))
        self.assertEqual(entry["suite"], "rl")
        ours, bare, peer, other = entry["cases"][0]["systems"]
        self.assertEqual(ours["values"]["rate"], {"median": 75, "spread": 25, "rounds": [100, 50]})
        self.assertNotIn("ours_is", ours)
        self.assertEqual(bare["role"], "floor")
        self.assertEqual(peer["version"], "1.0")
        self.assertEqual(peer["ours_is"]["batchrpc"]["rate"]["median"], 3.5)
        self.assertEqual(other["cannot_run"], "no module named other")
        self.assertEqual(other["install"], "apt-get install other")

    def test_numbers_have_the_digits_that_count(self):
        texts = [report.text_of(value) for value in (1234567, 123.4, 12.34, 1.234, 0.01234, None)]
        self.assertEqual(texts, ["1 234 567", "123", "12.3", "1.23", "0.012", ""])

    def test_one_round_has_no_spread(self):
        result, _, _ = run(Case("a", [RATE], [job("x", OURS)]), {"x": [{"rate": 5}]})
        self.assertIn("5.00", report.terminal(result))
        self.assertNotIn("±", report.terminal(result))

    def test_a_picture_where_matplotlib_is_and_equal_figures_make_equal_files(self):
        if not figure.available():
            return
        paths = [self.folder / "a.svg", self.folder / "b.svg"]
        for path in paths:
            png = figure.png_of(path)
            figure.draw("Title", [sample(), sample(), sample()], [path, png])
            self.assertGreater(png.stat().st_size, 1000)
        one, other = (path.read_text(encoding="utf-8") for path in paths)
        self.assertEqual(one, other)
        self.assertNotIn("<dc:date>", one)


class Pages(Folder):
    def page(self, *names):
        text = "# Title\n\nBefore.\n\n"
        for name in names:
            begin, end = page.markers(name)
            text += f"{begin}\nold {name}\n{end}\n\nAfter {name}.\n"
        path = self.folder / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    def test_a_suites_part_is_replaced_and_all_else_stays(self):
        path = self.page("rl", "calls")
        page.write(path, "rl", "new rl\n")
        text = path.read_text(encoding="utf-8")
        begin, end = page.markers("rl")
        self.assertIn(f"Before.\n\n{begin}\n\nnew rl\n\n{end}\n\nAfter rl.", text)
        self.assertIn("old calls", text)
        self.assertNotIn("old rl", text)
        page.write(path, "rl", "new rl\n")
        self.assertEqual(path.read_text(encoding="utf-8"), text)

    def test_a_page_without_a_place_is_refused(self):
        for path in (self.page("calls"), self.page("rl", "rl"), self.folder / "none.md"):
            with self.assertRaisesRegex(UsageError, "^--docs: "):
                page.check(path, ["rl"])

    def test_the_page_of_the_documentation_has_a_place_for_every_suite(self):
        page.check(ROOT / "docs" / "performance.md", suites.SUITES)


if __name__ == "__main__":
    unittest.main()
