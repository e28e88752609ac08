"""What transformers says of texts that MindSpeed-LLM generated with the same model.

    python generated.py FOLDER PROMPT STEPS K SAMPLED

Prints JSON objects: `greedy` and `beams`, the words that transformers generates in so many steps, greedily and with two beams;
`likely`, for each word of SAMPLED, whether it is one of the K most probable ones after those before it.
"""

from __future__ import annotations

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(folder: str, prompt: str, steps: int, most: int, sampled: str) -> None:
    model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModelForCausalLM, AutoTokenizer))
    given = tokenizer(prompt, return_tensors="pt").input_ids

    def generated(**words) -> list[str]:
        mask = torch.ones_like(given)
        found = model.generate(given, attention_mask=mask, max_new_tokens=steps, do_sample=False, **words)
        return tokenizer.decode(found[0, given.shape[1] :]).split()

    answer = tokenizer(sampled, return_tensors="pt").input_ids
    with torch.no_grad():
        logits = model(torch.cat([given, answer], 1)).logits[0, given.shape[1] - 1 : -1]
    best = logits.topk(most).indices
    likely = [bool((best[place] == word).any()) for place, word in enumerate(answer[0])]
    print("found", json.dumps({"greedy": generated(), "beams": generated(num_beams=2), "likely": likely}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
