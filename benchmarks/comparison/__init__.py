"""What benchmarks/compare is made of: see suite.py for the words, runner.py for the work."""
