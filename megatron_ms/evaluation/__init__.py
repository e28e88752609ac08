"""Benchmarks: lm-eval's tasks over a model, with data from local files in each benchmark's own layout."""
