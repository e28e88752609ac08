"""torch.backends.openmp."""


def is_available() -> bool:
    """False: the kernels have a thread pool of their own (torch.set_num_threads)."""
    return False
