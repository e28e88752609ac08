"""The upstream sources of the scenarios: pinned git commits in a cache, or local checkouts."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patches import PatchError
from patches.tree import check_names

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


MEGATRON_LM = GitSource(
    "Megatron-LM",
    "megatron_core",
    "https://github.com/NVIDIA/Megatron-LM.git",
    "core_v0.12.1",
    "a845aa7e12b3a117e24c2352b9e3e60bad2e3a17",
)
MINDSPEED = GitSource(
    "MindSpeed",
    "mindspeed",
    "https://gitcode.com/Ascend/MindSpeed.git",
    "2.3.0_core_r0.12.1",
    "674226a15a8214cc0c78f986b0b89fbe6b879ba1",
)
MINDSPEED_LLM = GitSource(
    "MindSpeed-LLM",
    "mindspeed_llm",
    "https://gitcode.com/Ascend/MindSpeed-LLM.git",
    "2.3.0",
    "62d4640b977443db69121fcabf71ea40c98de063",
)
MINDSPEED_RL = GitSource(
    "MindSpeed-RL",
    "mindspeed_rl",
    "https://gitcode.com/Ascend/MindSpeed-RL.git",
    "2.3.0",
    "09b8c1253af02abf62f9056e3a4e5cba78b03d7a",
)
# The scenario core has no git source; it uses Megatron Core from the package index (upstream.py).
SCENARIOS: dict[str, tuple[GitSource, ...]] = {
    "core": (),
    "llm": (MEGATRON_LM, MINDSPEED, MINDSPEED_LLM),
    "rl": (MEGATRON_LM, MINDSPEED, MINDSPEED_LLM, MINDSPEED_RL),
}


def by_name(scenario: str, name: str) -> GitSource:
    """The source of this name; ConvertError, which lists the names, if there is none."""
    for source in SCENARIOS[scenario]:
        if source.name.lower() == name.lower():
            return source
    known = ", ".join(source.name for source in SCENARIOS[scenario])
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
            f"or give a checkout with --source {source.name}=DIR"
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


def parse_locals(given: list[str], scenario: str) -> Mapping[str, Path]:
    """Parses the arguments --source NAME=DIR into {source name: checkout}; ConvertError names a wrong argument."""
    found = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not equals:
            raise ConvertError(f"--source {text}: the scenario {scenario} needs NAME=DIR")
        source = by_name(scenario, name)
        try:
            path = Path(folder).expanduser()
        except RuntimeError as error:  # "~name" of a user who does not exist
            raise ConvertError(f"--source {text}: {error}") from None
        if not path.is_dir():
            raise ConvertError(f"--source {text}: there is no such folder")
        found[source.name] = clean_path(path, f"--source {name}")
    return found
