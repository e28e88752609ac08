"""Times of msadapter beside real PyTorch's, work by work, on one machine in one run: ``python -m benchmarks --help``."""
