"""Forward passes that are compared: the same ids through a model before and after its conversion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from ..errors import UserError
from ..inference.engine import provide_torch
from .work import ProofError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAFELY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
LENGTH = 16  # ids; tensor parallel sizes up to 16 divide it
# The largest difference of two logits, as a part of the largest logit. Types of 16 bits round the weights that change.
TOLERANCE = {"F32": 1e-4, "F16": 1e-2, "BF16": 5e-2}


def sample(vocabulary: int) -> list[int]:
    """Ids that are spread over the vocabulary."""
    return [(7 + 101 * place * place) % vocabulary for place in range(LENGTH)]


def load(folder: Path) -> Any:
    """A model of Hugging Face in float32.

    Raises:
        UserError: the folder has no model that transformers knows.
        ProofError: the files lack a weight, or have one too many.
    """
    provide_torch()
    import transformers
    from safetensors import SafetensorError

    try:
        model, found = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype="float32", output_loading_info=True, **SAFELY
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{folder}: {str(error).splitlines()[0]}") from None
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if found.get(kind):
            raise ProofError(
                f"{folder}: {kind.replace('_', ' ')}: {', '.join(sorted(map(str, found[kind])))}"
            )
    return model.eval()


def logits(model: Any) -> NDArray[Any]:
    """The logits of the sample."""
    import torch

    with torch.inference_mode():
        out = model(torch.tensor([sample(model.config.get_text_config().vocab_size)])).logits
    return out[0].float().cpu().numpy()


def compare(one: NDArray[Any], other: NDArray[Any], dtype: str, what: str) -> float:
    """The largest difference as a part of the largest logit.

    Raises:
        ProofError: it is larger than the type of the weights explains.
    """
    if one.shape != other.shape:
        raise ProofError(f"{what}: the logits have the shapes {one.shape} and {other.shape}")
    largest = float(numpy.abs(one).max())
    found = float(numpy.abs(one - other).max()) / largest if largest else float(numpy.abs(other).max())
    if not found <= TOLERANCE[dtype]:
        raise ProofError(f"{what}: logits differ by {found:.3g} of the largest, more than {TOLERANCE[dtype]}")
    return found
