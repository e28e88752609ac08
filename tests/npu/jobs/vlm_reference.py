"""The loss of a toy Qwen2.5-VL with real PyTorch and transformers, before any training: vlm_reference.py FOLDER RESULT

FOLDER is one that megatron_ms/examples/vision_questions.py has written. Run this in an environment of its own, with PyTorch,
transformers and pillow. RESULT (JSON) receives the mean loss over the questions, the sha256 of the weights, and the versions.
Images and words are prepared, as Qwen2.5-VL's description says, without the code of MindSpeed-MM or of transformers' processor.
MindSpeed-MM rounds the cosines and sines of the language model to bfloat16 in every run, so they are rounded here too.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image

MEAN, DEVIATION = (
    (0.48145466, 0.4578275, 0.40821073),
    (0.26862954, 0.26130258, 0.27577711),
)  # of CLIP's colours
PATCH = 14
IMAGE = 151655


def main(folder: Path, result: Path) -> None:
    torch.set_grad_enabled(False)
    model = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(
        folder / "model", dtype=torch.float32, attn_implementation="eager"
    )
    turns = model.model.language_model.rotary_emb
    exact = turns.forward
    turns.forward = lambda *given: tuple(part.bfloat16().float() for part in exact(*given))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    rows = json.loads((folder / "questions.json").read_text())
    losses = [loss(model, tokenizer, folder, row) for row in rows]
    found = {
        "loss": sum(losses) / len(losses),
        "model": hashlib.sha256(
            b"".join(file.read_bytes() for file in sorted((folder / "model").glob("*.safetensors")))
        ).hexdigest(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    result.write_text(json.dumps(found, indent=1) + "\n")


def patches(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """The patches of an image [patches, 3 * 2 * 14 * 14], four of a square in a row, and its grid [1, 3]: 1, height, width."""
    pixels = (np.asarray(Image.open(path)) / 255 - MEAN) / DEVIATION
    height, width = pixels.shape[0] // PATCH, pixels.shape[1] // PATCH
    frames = torch.tensor(pixels.transpose(2, 0, 1), dtype=torch.float32).expand(2, -1, -1, -1)
    parts = frames.reshape(2, 3, height // 2, 2, PATCH, width // 2, 2, PATCH)
    return parts.permute(2, 5, 3, 6, 1, 0, 4, 7).reshape(height * width, -1), torch.tensor(
        [[1, height, width]]
    )


def loss(model, tokenizer, folder: Path, row: dict) -> float:
    """The mean loss of the answer's words."""
    pixels, grid = patches(folder / row["images"][0])
    places = "<|image_pad|>" * (int(grid.prod()) // 4)
    question = row["messages"][0]["content"].replace("<image>", f"<|vision_start|>{places}<|vision_end|>")
    system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    head = tokenizer(f"{system}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")["input_ids"]
    answer = tokenizer(f"{row['messages'][1]['content']}<|im_end|>\n")["input_ids"]
    ids = torch.tensor([head + answer])
    logits = model(
        input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=pixels, image_grid_thw=grid,
        mm_token_type_ids=(ids == IMAGE).int(),
    ).logits  # fmt: skip
    return torch.nn.functional.cross_entropy(logits[0, len(head) - 1 : -1], torch.tensor(answer)).item()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
