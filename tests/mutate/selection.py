"""Which tests belong to which part of the code: the one place that says so."""

from __future__ import annotations

DEFAULTS = ("tests/contract/test_defaults.py",)  # the defaults of everything public

# The longest prefix of a file's path decides. The tests of a row run once, to find which of them reach each change.
TESTS: dict[str, tuple[str, ...]] = {
    "msadapter/amp": ("tests/amp", "tests/nn", "tests/ops"),
    "msadapter/autograd": ("tests/autograd", "tests/func", "tests/optim", "tests/nn", *DEFAULTS),
    "msadapter/compiler": ("tests/compiler",),
    "msadapter/cuda": ("tests/cuda",),
    "msadapter/distributed": ("tests/distributed", *DEFAULTS),
    "msadapter/distributed/checkpoint/_metadata_file.py": (
        "tests/distributed",
        "tests/serialization/test_hostile_files.py",
        "tests/serialization/test_gadgets.py",
    ),
    "msadapter/distributions": ("tests/distributions",),
    "msadapter/func": ("tests/func",),
    "msadapter/fx": ("tests/fx",),
    "msadapter/masked": ("tests/masked",),
    "msadapter/nn": ("tests/nn", "tests/ops", "tests/autograd", *DEFAULTS),
    "msadapter/ops": (
        "tests/csrc/test_declared_tables.py",
        "tests/ops",
        "tests/nn",
        "tests/autograd",
        "tests/tensor",
        "tests/func",
        "tests/optim",
        "tests/amp",
        "tests/contract/test_facts.py",
        *DEFAULTS,
    ),
    "msadapter/optim": ("tests/optim", "tests/amp", *DEFAULTS),
    "msadapter/backends": ("tests/backends",),
    "msadapter/futures": ("tests/futures",),
    "msadapter/jit": ("tests/jit", "tests/compiler"),
    "msadapter/testing": ("tests/testing",),
    "msadapter/profiler": ("tests/profiler",),
    "msadapter/sparse": ("tests/sparse", "tests/serialization"),
    "msadapter/tensor": ("tests/tensor", "tests/ops", "tests/autograd"),
    "msadapter/_serialization": ("tests/serialization",),
    "msadapter/serialization.py": ("tests/serialization",),
    "msadapter/utils/checkpoint.py": ("tests/autograd", "tests/utils"),
    "msadapter/utils": ("tests/utils",),
    "msadapter/utils/data": ("tests/utils/data",),
    "kernels_ascend": ("tests/kernels",),
    "kernels_ascend/simulator": ("tests/simulator/test_stubs.py",),
    "patches": ("tests/patches",),
}


def folders_of(file: str) -> tuple[str, ...]:
    """The test folders for a source file, given as a path from the repository's root. Raises KeyError if none is known."""
    rows = [prefix for prefix in TESTS if file == prefix or file.startswith(prefix + "/")]
    if not rows:
        raise KeyError(f"{file} has no row in tests/mutate/selection.py: add the folders of its tests there")
    return TESTS[max(rows, key=len)]
