"""What pyproject.toml cannot say: a wheel with compiled kernels is one for a Python and a kind of machine.

`bash tests/wheel.sh --kernels` puts the kernels into msadapter/_prebuilt of a copy of the sources. Without that folder
the wheel is for every machine.
"""

from pathlib import Path

from setuptools import Distribution, setup


class _Distribution(Distribution):
    def has_ext_modules(self) -> bool:
        return Path("msadapter/_prebuilt").is_dir()


setup(distclass=_Distribution)
