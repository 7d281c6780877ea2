"""All suites, in the order in which `all` runs them."""

from . import batch, calls, cartpole, envs, parameter_server, rl, tensors

MODULES = (calls, tensors, batch, rl, cartpole, parameter_server, envs)
SUITES = {module.SUITE.name: module.SUITE for module in MODULES}
