"""Whether a folder of Hugging Face is whole: files that Git LFS did not fetch, and weights that no file has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import UserError

# A clone without LFS has a few lines of text in place of weights and tokenizers.
_POINTER = b"version https://git-lfs.github.com/spec/"


def refuse_pointers(files: Iterable[Path]) -> None:
    """Raises UserError for the first of the files that is a pointer of Git LFS. Files that are not there are passed over."""
    for file in files:
        if file.is_file():
            with file.open("rb") as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise UserError(
                        f"{file}: is a pointer of Git LFS, not the file itself: run `git lfs pull` in {file.parent}"
                    )


def refuse_pointers_in(folder: Path) -> None:
    """The same for the weights and the tokenizer in a folder."""
    kinds = ("*.safetensors", "*.bin", "tokenizer.*")
    refuse_pointers(sorted(file for kind in kinds for file in folder.glob(kind)))


def missing(found: Mapping[str, Any]) -> str:
    """What to say of weights that no file has, for which transformers would take random numbers; "" if there are none.

    found: what transformers' from_pretrained gives with output_loading_info.
    """
    names = sorted(map(str, found["missing_keys"]))
    if not names:
        return ""
    others = f" and {len(names) - 1} others" if len(names) > 1 else ""
    return f"the files have no weight {names[0]}{others}: is the folder complete?"
