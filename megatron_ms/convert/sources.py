"""The upstream sources of the scenarios: pinned releases, as git commits in a cache or as wheels, or local checkouts."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from patches import PatchError
from patches.tree import check_names

from ..errors import see
from .places import clean_path
from .steps import ConvertError

_NO_NETWORK = re.compile(
    r"Could not resolve host|Network is unreachable|Connection refused|Connection timed out|Failed to connect|"
    r"unable to access|Could not read from remote repository|does not appear to be a git repository|not found"
)


@dataclass(frozen=True)
class GitSource:
    """A git repository at one commit.

    name: the name on the command line and of the tree's folder. rules: the folder in patches/. url: the repository.
    ref: a branch or tag that contained the commit. commit: the pinned hash. parts: the subfolders to use (default: all).
    """

    name: str
    rules: str
    url: str
    ref: str
    commit: str

    def address(self) -> str:
        """The URL; environment variables such as MSADAPTER_GIT_MEGATRON_LM override it."""
        return os.environ.get("MSADAPTER_GIT_" + re.sub(r"\W", "_", self.name).upper(), self.url)


@dataclass(frozen=True)
class Pin:
    """A pinned release on the package index: its requirement, and the sha256 of each wheel by `wheel_tag()`."""

    requirement: str
    sha256: Mapping[str, str]

    def expected(self, tag: str) -> str:
        if tag not in self.sha256:
            known = ", ".join(sorted(self.sha256))
            raise ConvertError(
                f"{self.requirement} has wheels for {known}, and this is {tag}: "
                "give a Megatron-LM checkout with --source"
            )
        return self.sha256[tag]


def wheel_tag() -> str:
    """The Python and the machine for which a wheel must be: "cp311-x86_64"."""
    return f"cp{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}"


@dataclass(frozen=True)
class Release:
    """One release of a scenario's upstreams.

    sources: their git commits. wheel: used instead of the git source where there is one for this Python and machine.
    python: the Python versions that the release states. packages: the list of the Python packages that it imports.
    """

    number: str
    sources: tuple[GitSource, ...]
    wheel: Pin | None = None
    python: str = ">=3.10"
    packages: str = ""


def _megatron(ref: str, commit: str) -> GitSource:
    url = "https://github.com/NVIDIA/Megatron-LM.git"
    return GitSource("Megatron-LM", "megatron_core", url, ref, commit)


def _ascend(name: str, ref: str, commit: str) -> GitSource:
    rules = name.lower().replace("-", "_")
    return GitSource(name, rules, f"https://gitcode.com/Ascend/{name}.git", ref, commit)


MEGATRON_LM = _megatron("core_v0.12.1", "a845aa7e12b3a117e24c2352b9e3e60bad2e3a17")
_LLM_2_3 = (
    MEGATRON_LM,
    _ascend("MindSpeed", "2.3.0_core_r0.12.1", "674226a15a8214cc0c78f986b0b89fbe6b879ba1"),
    _ascend("MindSpeed-LLM", "2.3.0", "62d4640b977443db69121fcabf71ea40c98de063"),
)
_LLM_26_1 = (
    MEGATRON_LM,
    _ascend("MindSpeed", "26.1.0_core_r0.12.1", "57a33053c4eccd5b14aa58e3ca595ab414e65b94"),
    _ascend("MindSpeed-LLM", "v26.1.0", "2b7130ca7bea7083a91ed66812eec95067d057a2"),
)
_MINDSPEED_MM = _ascend("MindSpeed-MM", "v26.1.0", "d0b964b55fb33b4eccec72513d8741d391ec13c7")
_MINDSPEED_RL = _ascend("MindSpeed-RL", "2.3.0", "09b8c1253af02abf62f9056e3a4e5cba78b03d7a")

# The first release of a scenario is its default.
SCENARIOS: dict[str, tuple[Release, ...]] = {
    "core": (
        Release(
            "0.12.1",
            (MEGATRON_LM,),
            Pin(
                "megatron-core==0.12.1",
                {
                    "cp310-x86_64": "14774f408f82176cc68de7b36e2f4d1d8553efd14fbe8cdba75beba588efb9de",
                    "cp310-aarch64": "1d772554840f497c256935d8e23c33a5a891a203ebd65e0d0d26a5bbdca8e7b1",
                    "cp311-x86_64": "88b7dfcc240b810a72a90b8a85203049c687f4aa413150a2e22d79413b21d286",
                    "cp311-aarch64": "6dea326f051bdb24b1c4147fd935719c221b6996bf213f5c5094e1fbe80f04be",
                },
            ),
        ),
        Release(
            "0.16.1",
            (_megatron("core_v0.16.1", "55ac7082517c3878ae653c07c09c534b8aed49f6"),),
            Pin(
                "megatron-core==0.16.1",
                {
                    "cp310-x86_64": "fac268d9f4b0153388a75f584d53796686f6327702c2b8b1c91077e60765cff3",
                    "cp310-aarch64": "b17840ea891a8b109134772f90dac080316ddf787d26ce9d4cacdeb466ccd5ce",
                    "cp311-x86_64": "38f6bef63cd4ebc4c39c1eccbaf578596accba5c47d012faffa0670913aec131",
                    "cp311-aarch64": "dab8b9a16bff77f5677e5afbcdb9e4f5c7f794d34dedd2ea9902e4bcc878d417",
                    "cp312-x86_64": "3fb26cb407aa3c4b609c08664022c08146f1648b3d6f2ef2bbe9d3b1294ace61",
                    "cp312-aarch64": "c96f37f8a630fed5fb7c132d8088da176bf8e6f9345c23532493af0f9ba214ba",
                },
            ),
        ),
        Release(
            "0.19.0",
            (_megatron("core_v0.19.0", "5be9626709af2722333bf54797c954c09edeada3"),),
            Pin(
                "megatron-core==0.19.0",
                {
                    "cp312-x86_64": "ed4f503a4a6944599857c4f702f3a33039656fe119309119fc5bb8cba8a38240",
                    "cp312-aarch64": "25618d4ba1fbed1fd7b00a210905065c1d0479894c1a5f8626c3627844e072fa",
                },
            ),
            python=">=3.12",
        ),
    ),
    "llm": (
        Release("26.1.0", _LLM_26_1, packages="llm-26.1.0"),
        Release("2.3.0", _LLM_2_3, packages="llm-2.3.0"),
    ),
    "mm": (Release("26.1.0", (*_LLM_26_1[:2], _MINDSPEED_MM), packages="mm-26.1.0"),),
    "rl": (Release("2.3.0", (*_LLM_2_3, _MINDSPEED_RL), packages="rl-2.3.0"),),
}


def release_of(scenario: str, number: str | None = None) -> Release:
    """The release of this number, or the default one; ConvertError, which lists the numbers, if there is none."""
    known = SCENARIOS[scenario]
    if number is None:
        return known[0]
    for release in known:
        if release.number == number:
            return release
    numbers = ", ".join(release.number for release in known)
    raise ConvertError(f"the scenario {scenario} has no release {number}; it has {numbers}")


def folder_of(scenario: str, number: str) -> str:
    """The name of a conversion and its folder: that of the scenario, and the release if it is not the default one."""
    return scenario if number == SCENARIOS[scenario][0].number else f"{scenario}-{number}"


def by_name(scenario: str, sources: Iterable[GitSource], name: str) -> GitSource:
    """The source of this name; ConvertError, which lists the names, if there is none."""
    sources = list(sources)
    for source in sources:
        if source.name.lower() == name.lower():
            return source
    known = ", ".join(source.name for source in sources)
    raise ConvertError(f"the scenario {scenario} has no source {name!r}; it has {known}")


def git(repository: Path, *words: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs git on a bare repository, without prompts and without the hooks that the user has configured."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_DIR": str(repository)}
    try:
        return subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", *words],
            capture_output=True, text=True, errors="replace", env=environment, timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        raise ConvertError("git is needed for this scenario and is not installed: apt install git") from None
    except subprocess.TimeoutExpired:
        raise ConvertError(f"git {words[0]} took more than {timeout:.0f} s") from None


def cached(source: GitSource, cache: Path) -> bool:
    """True if the commit and its tree are in the cache."""
    repository = cache / f"{source.name}.git"
    return (
        repository.is_dir() and git(repository, "cat-file", "-e", f"{source.commit}^{{tree}}").returncode == 0
    )


def fetch(source: GitSource, cache: Path, offline: bool = False) -> bool:
    """Fetches the commit into the cache. Returns False if it was there already.

    A commit's hash determines its content, so the fetched source is the pinned one.

    Raises:
        ConvertError: the commit cannot be fetched, or the branch has moved and the server does not serve the commit.
    """
    if cached(source, cache):
        return False
    if offline:
        raise ConvertError(
            f"{source.name} at {source.commit[:12]} is not in the cache {cache}: run once without --offline, "
            f"or give a checkout with --source {source.name}=DIR {see('offline')}"
        )
    repository = cache / f"{source.name}.git"
    if not (repository / "HEAD").exists():
        repository.mkdir(parents=True, exist_ok=True)
        made = git(repository, "init", "--quiet", "--bare")
        if made.returncode:
            raise ConvertError(f"the cache {repository} cannot be created: {made.stderr.strip()}")
    words = ("fetch", "--quiet", "--depth", "1", "--no-tags", source.address())
    # A server may refuse to serve a commit by its hash. In this case the branch or tag must still point to it.
    told = ""
    for what in (source.commit, source.ref):
        answer = git(repository, *words, f"+{what}:refs/pins/{source.commit}")
        told = answer.stderr.strip() or told
        if cached(source, cache):
            return True
    if answer.returncode == 0:
        raise ConvertError(
            f"{source.ref} of {source.address()} is no longer the pinned commit {source.commit}, and the server refuses to "
            f"serve that commit. Give a checkout of it with --source {source.name}=DIR"
        )
    hint = "; is there a network?" if _NO_NETWORK.search(told) else ""
    raise ConvertError(
        f"{source.name} could not be fetched from {source.address()}{hint}\n    {told.splitlines()[-1] if told else ''}"
    )


def export(source: GitSource, cache: Path, folder: Path) -> None:
    """Writes the tree of the commit to a folder. Raises ConvertError for names and links that lead out of the folder."""
    repository = cache / f"{source.name}.git"
    environment = {**os.environ, "GIT_DIR": str(repository)}
    command = ["git", "archive", "--format=tar", source.commit]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
        try:
            with tarfile.open(fileobj=child.stdout, mode="r|") as archive:
                archive.extractall(folder, filter="data")
                check_names(folder, [part.name for part in archive.getmembers() if not part.isdir()])
        except PatchError as error:
            raise ConvertError(f"{source.name}: {error}") from None
        except tarfile.FilterError as error:
            raise ConvertError(f"{source.name} contains a name that leads out of it: {error}") from None
        except (tarfile.TarError, OSError) as error:
            raise ConvertError(f"{source.name} cannot be read from the cache: {error}") from None
        finally:
            words = child.stderr.read().decode(errors="replace") if child.stderr else ""
    if child.returncode:
        raise ConvertError(f"{source.name} cannot be read from the cache {repository}: {words.strip()}")


def parse_locals(given: list[str], scenario: str, release: Release | None = None) -> Mapping[str, Path]:
    """Parses the arguments --source NAME=DIR into {source name: checkout}; ConvertError names a wrong argument."""
    found = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals:
            raise ConvertError(f"--source {text}: the scenario {scenario} needs NAME=DIR")
        source = by_name(scenario, (release or release_of(scenario)).sources, name)
        try:
            path = Path(folder).expanduser()
        except RuntimeError as error:  # "~name" of a user who does not exist
            raise ConvertError(f"--source {text}: {error}") from None
        if not path.is_dir():
            raise ConvertError(f"--source {text}: there is no such folder")
        found[source.name] = clean_path(path, f"--source {name}")
    return found
