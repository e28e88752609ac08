"""Compares the speed of msadapter with that of real PyTorch on one machine: see ``python -m benchmarks --help``."""
