"""What benchmarks/compare is made of: suite.py has the words, runner.py does the work."""
