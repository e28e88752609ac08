"""torch.backends.openmp: OpenMP is not used."""


def is_available() -> bool:
    """Return False, because the kernels have their own thread pool (torch.set_num_threads)."""
    return False
