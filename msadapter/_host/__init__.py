"""Parts of this project that are not part of torch.

    native        builds and loads the C++ layer
    runtime       MindSpore's runtime, and its Python package when something uses it
    accelerator   which device torch.cuda and torch.npu mean in this run
    launcher      `python -m msadapter script.py`
    cache         who may change the built libraries, and whether they are whole
    cache_limit   how large the cache of built libraries may become
    commands      doctor, build, enable and disable, before the C++ layer is loaded
    doctor        `python -m msadapter doctor`
    coverage      writes docs/coverage.md
    version       the version of this project

The other modules of `msadapter` have the names of torch's modules, because `torch.x` is `msadapter.x`.
"""
