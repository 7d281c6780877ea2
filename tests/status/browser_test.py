#!/usr/bin/env python3
"""The status page in a browser: headless Chromium, by Selenium.

BATCHRPC_SCREENSHOTS=<folder> has the phone and desktop pictures written there.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from status_program import BIN, Program, wait_until  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")


@unittest.skipUnless(webdriver and CHROMIUM and DRIVER,
                     "python3-selenium, chromium or chromium-driver is not installed")
class BrowserTest(unittest.TestCase):
    expects_errors = False

    def setUp(self):
        self.downloads = tempfile.TemporaryDirectory()
        self.addCleanup(self.downloads.cleanup)
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                         "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": self.downloads.name})
        self.browser = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.addCleanup(self.browser.quit)

    def tearDown(self):
        if not self.expects_errors:
            self.assertEqual(self.browser.get_log("browser"), [])

    def open(self, *command, **more):
        program = Program(*(command or ["status_program"]), **more)
        self.addCleanup(program.end)
        self.browser.get(program.address)
        self.wait_for("connection-text", "live")
        return program

    def text(self, element):
        return self.browser.find_element(By.ID, element).text

    def wait_for(self, element, text, seconds=20):
        wait_until(lambda: text in self.text(element), f"#{element} says {text}", seconds)

    def press(self, *keys):
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def tab_to(self, name):
        """Presses Tab until the focus is on what has that text, or id."""
        for _ in range(80):
            self.press(Keys.TAB)
            focused = self.browser.switch_to.active_element
            if name in (focused.get_attribute("id"), focused.text):
                return focused
        raise AssertionError(f"Tab never comes to {name}")

    def cells(self, section, row):
        found = self.browser.execute_script(
            "return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')]"
            ".map(row => [...row.children].map(cell => cell.innerText.trim()))", section)
        return next((cells for cells in found if cells[0] == row), None)

    # --- what is shown

    def assert_numbers_move(self, function, section="answered"):
        def calls():
            cells = self.cells(section, function)
            return cells and cells[2]

        first = wait_until(calls, f"{function} is shown")
        wait_until(lambda: calls() != first, "its number moves")
        wait_until(lambda: self.cells(section, function)[1] != "0", "it has a rate")
        wait_until(lambda: self.cells(section, function)[6].endswith("s"), "it has percentiles")

    def test_the_page_shows_a_running_program_and_its_numbers_move(self):
        self.open()
        self.assertEqual(self.text("node"), "agent")
        self.assert_numbers_move("select_action")
        peer = wait_until(lambda: self.cells("peers", "observer1"), "a peer")
        self.assertEqual(peer[2], "connected")
        wait_until(lambda: self.cells("peers", "observer1")[3].endswith("s"), "a round trip")
        self.assertIn("select_action", self.text("batchers"))
        self.assertIn("Why batches started", self.text("batchers"))
        colors = self.browser.execute_script(
            "const style = getComputedStyle(document.documentElement);"
            "return Object.values(kReasons).map(color => style.getPropertyValue(color.slice(4, -1)));")
        self.assertEqual(len(colors), 8)
        self.assertEqual(len(set(colors)), 8, colors)
        self.assertGreater(len(self.browser.find_elements(By.CSS_SELECTOR, "#batchers svg rect")), 2)
        wait_until(lambda: self.cells("rrefs", "cartpole::ReplayBuffer"), "an object")
        wait_until(lambda: "the environment has fallen over" in self.text("errors"), "an error")

    @unittest.skipUnless((BIN / "cartpole").exists(), "the example cartpole, which needs LibTorch, is not built")
    def test_the_page_shows_cartpole(self):
        self.open("cartpole", "--world-size", "4", "--episodes", "1000", "--status", "127.0.0.1:0",
                  "--progress", "lines")
        self.assertEqual(self.text("node"), "agent")
        self.assert_numbers_move("select_action")

    def test_names_of_peers_are_text_and_nothing_else(self):
        self.open()
        self.tab_to("pause")
        self.press(Keys.SPACE)
        evil = "<img src=x onerror=document.title=1>"
        self.browser.execute_script(
            "clearTimeout(timer); const data = structuredClone(history.at(-1).data); delete data.index;"
            "data.metrics.name = arguments[0]; data.metrics.rrefs.owned[0].type = arguments[0];"
            "for (const list of ['peers', 'functions', 'batchers'])"
            "  for (const one of data.metrics[list]) one.name = arguments[0];"
            "for (const one of data.metrics.last_errors) one.text = one.peer = arguments[0];"
            "history = [{at: 1, data}]; show();", evil)
        self.assertEqual(self.text("node"), evil)
        self.assertIsNotNone(self.cells("peers", evil))
        self.assertIn(evil, self.text("batchers"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "img"), [])

    def test_a_function_and_an_error_that_are_called_like_markup_are_text(self):
        evil = "</script><img src=x onerror=document.title=1>&quot;'"
        self.open("status_program", "127.0.0.1:0", evil)
        wait_until(lambda: self.cells("answered", evil), "the function")
        wait_until(lambda: evil in self.text("errors"), "its error")
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "img"), [])

    def test_what_changes_the_direction_of_text_is_shown_as_an_escape(self):
        self.open()
        self.tab_to("pause")
        self.press(Keys.SPACE)
        self.browser.execute_script(
            "clearTimeout(timer); const data = structuredClone(history.at(-1).data); delete data.index;"
            "data.metrics.name = arguments[0]; history = [{at: 1, data}]; show();", "a\u202etxt\u001b\u00fc")
        self.assertEqual(self.text("node"), "a\\u202etxt\\u001b\u00fc")

    def test_a_page_with_a_token_opens_with_it_as_the_password_and_goes_on(self):
        self.expects_errors = True  # the first answer is 401
        program = Program("status_program", "127.0.0.1:0", "", "a-token-of-this-test")
        self.addCleanup(program.end)
        self.browser.get(program.address)
        self.assertNotIn("agent", self.browser.page_source)
        self.browser.get(program.address.replace("http://", "http://anyone:a-token-of-this-test@"))
        self.wait_for("connection-text", "live")
        self.assert_numbers_move("select_action")

    # --- by keyboard alone

    def test_a_trace_is_recorded_by_keyboard_and_parses(self):
        self.open()
        wait_until(lambda: self.cells("made", "cartpole::run_episode"), "calls are made")
        self.tab_to("seconds").send_keys(Keys.CONTROL, "a")
        self.press("2")
        self.press(Keys.ENTER)
        self.wait_for("trace-text", "recording")
        self.wait_for("trace-text", "downloaded")
        folder = pathlib.Path(self.downloads.name)
        file = wait_until(lambda: next(folder.glob("batchrpc-agent-*.trace.json"), None), "a file")
        trace = json.loads(file.read_text())
        names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
        for function in ("run_episode", "select_action"):  # made, and answered
            self.assertTrue(any(function in name for name in names), names[:20])

    def test_tables_are_sorted_by_keyboard(self):
        self.open()
        wait_until(lambda: self.cells("answered", "report"), "both functions")
        names = ("return [...document.querySelectorAll('#answered tbody th')]"
                 ".map(cell => cell.innerText.trim())")
        self.assertEqual(self.browser.execute_script(names), ["select_action", "report"])
        self.browser.execute_script("document.querySelector('#made').scrollIntoView()")
        self.browser.find_element(By.CSS_SELECTOR, "#answered th button").send_keys(Keys.ENTER)
        self.assertEqual(self.browser.execute_script(names), ["report", "select_action"])
        self.press(Keys.SPACE)
        self.assertEqual(self.browser.execute_script(names), ["select_action", "report"])
        self.assertEqual(self.browser.find_element(By.CSS_SELECTOR, "#answered th").get_attribute(
            "aria-sort"), "descending")
        time.sleep(2.5)  # the focus outlives updates
        self.assertEqual(self.browser.switch_to.active_element.text, "Function")

    def test_the_span_is_chosen_by_keyboard_and_errors_are_told_by_their_codes(self):
        self.open()
        wait_until(lambda: self.cells("made", "cartpole::run_episode"), "calls are made")
        wait_until(lambda: "the environment has fallen over" in self.text("errors"), "an error")
        self.tab_to("pause")
        self.press(Keys.SPACE)
        self.browser.execute_script(  # nothing has happened in the last five seconds
            "const last = history.at(-1); const then = structuredClone({...last.data, index: undefined});"
            "history = [{at: last.at - 5, data: then}, last]; show();")

        def errors():
            return self.cells("made", "cartpole::run_episode")[4]

        self.assertEqual(errors(), "0")
        self.browser.find_element(By.TAG_NAME, "body").click()
        self.browser.execute_script("document.activeElement.blur()")
        self.tab_to("recent")
        self.press(Keys.ARROW_RIGHT)
        number, codes = errors().split("\n")
        self.assertGreater(int(number), 0)
        self.assertEqual(codes, f"RemoteError: {number}")
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(errors(), "0")

    def test_all_that_acts_is_reached_by_tab_and_pause_pauses(self):
        self.open()
        for name in ("recent", "pause", "seconds", "record"):
            self.tab_to(name)
        self.browser.find_element(By.TAG_NAME, "body").click()
        self.browser.refresh()
        self.wait_for("connection-text", "live")
        self.tab_to("pause")
        self.press(Keys.SPACE)
        self.wait_for("connection-text", "paused")
        before = self.text("tiles")
        time.sleep(2.5)
        self.assertEqual(self.text("tiles"), before)
        self.press(Keys.SPACE)
        self.wait_for("connection-text", "live")
        wait_until(lambda: self.text("tiles") != before, "the numbers move again")

    # --- when the program is gone, and on a phone

    def test_the_page_says_that_the_program_is_gone_and_goes_on_when_it_is_back(self):
        self.expects_errors = True  # that nobody listens
        program = self.open()
        program.end(kill=True)
        self.wait_for("connection-text", "connection lost")
        again = Program("status_program", program.address.removeprefix("http://"))
        self.addCleanup(again.end)
        self.wait_for("connection-text", "live")
        self.assert_numbers_move("select_action")

    def test_nothing_is_cut_off_on_phones_in_light_and_dark(self):
        self.open()
        self.assert_numbers_move("select_action")
        backgrounds = set()
        pictures = os.environ.get("BATCHRPC_SCREENSHOTS")
        if pictures:
            time.sleep(12)  # ten seconds' numbers
        for scheme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": scheme}]})
            for width in (1280, 390, 360):
                self.set_size(width, 844)
                wide, tall = self.browser.execute_script(
                    "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight]")
                self.assertLessEqual(wide, width)
                if pictures:
                    self.set_size(width, tall)
                    self.browser.save_screenshot(f"{pictures}/status-{scheme}-{width}.png")
            backgrounds.add(self.browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(backgrounds), 2)

    def set_size(self, width, height):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        time.sleep(0.2)


if __name__ == "__main__":
    unittest.main()
