"""All suites, in the order in which `all` runs them."""

from . import batch, cartpole, parameter_server, rl

SUITES = {
    module.SUITE.name: module.SUITE for module in (batch, rl, cartpole, parameter_server)
}
