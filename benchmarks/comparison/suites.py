"""All suites, in the order in which `all` runs them."""

from . import rl

SUITES = {suite.name: suite for suite in (rl.SUITE,)}
