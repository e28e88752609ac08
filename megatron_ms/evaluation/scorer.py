"""A model of transformers as lm-eval asks for it: how likely answers are, and how prompts go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval.api.model import TemplateLM
from tqdm import tqdm

from ..inference.engine import Engine


class Scorer(TemplateLM):
    """Scores and continues texts with an engine. A text that is too long loses its beginning."""

    def __init__(self, engine: Engine, batch_size: int) -> None:
        super().__init__()
        self.engine, self.batch_size = engine, batch_size
        self.tokenizer = engine.tokenizer
        self.torch = engine.torch
        self.longest = engine.longest or 1 << 30

    @property
    def eot_token_id(self) -> int:
        return self.tokenizer.eos_token_id

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        special = True if add_special_tokens is None else add_special_tokens
        if special and self.tokenizer.bos_token and string.startswith(self.tokenizer.bos_token):
            special = False
        return self.tokenizer.encode(string, add_special_tokens=special)

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], disable_tqdm: bool = False, **kwargs: Any
    ) -> list[tuple[float, bool]]:
        """The logarithm of the probability of each answer behind its context, and whether it is the likeliest text."""
        order = sorted(range(len(requests)), key=lambda i: -len(requests[i][1]) - len(requests[i][2]))
        found: list[tuple[float, bool]] = [(0.0, False)] * len(requests)
        with tqdm(total=len(requests), desc="scoring", disable=disable_tqdm) as bar:
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                scored = self._scored([(requests[i][1], requests[i][2]) for i in batch])
                for i, value in zip(batch, scored, strict=True):
                    found[i] = value
                bar.update(len(batch))
        return found

    def _scored(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[tuple[float, bool]]:
        torch = self.torch
        # The last id of an answer is predicted, but not read. Filling on the right needs no positions of its own.
        texts = [(context + answer)[-(self.longest + 1) :] for context, answer in pairs]
        width = max(len(text) for text in texts) - 1
        ids = torch.full((len(texts), width), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros_like(ids)
        for row, text in enumerate(texts):
            ids[row, : len(text) - 1] = torch.tensor(text[:-1])
            mask[row, : len(text) - 1] = 1
        device = self.engine.keys.device
        with torch.inference_mode():
            logits = self.engine.model(ids.to(device), attention_mask=mask.to(device)).logits
            likelihoods = torch.log_softmax(logits.float(), -1).cpu()
        found = []
        for row, (text, (_, answer)) in enumerate(zip(texts, pairs, strict=True)):
            end, count = len(text) - 1, min(len(answer), len(text) - 1)
            wanted = torch.tensor(text[len(text) - count :])
            part = likelihoods[row, end - count : end]
            score = part.gather(1, wanted[:, None]).sum().item()
            found.append((score, bool((part.argmax(-1) == wanted).all())))
        return found

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError("no benchmark of this list needs the likelihood of whole texts")

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """The texts behind the prompts, up to the first of the words that end them."""
        found = []
        for request in tqdm(requests, desc="answering", disable=disable_tqdm):
            prompt, options = request.args
            until = options.get("until") or []
            until = [until] if isinstance(until, str) else until
            most = int(options.get("max_gen_toks") or self.engine.keys.max_new_tokens)
            text = self.engine.until(prompt, until, most)
            found.append(text)
        return found
