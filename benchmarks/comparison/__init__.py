"""The modules of benchmarks/compare: suite.py defines the terms, runner.py runs the commands."""
