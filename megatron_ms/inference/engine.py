"""A model of transformers and its tokenizer, with the errors that a user can mend."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import whole
from ..errors import UserError, first_line
from .section import Generate

# A long prompt in front of a short limit would otherwise end in an error deep inside the model.
_LENGTHS = ("max_position_embeddings", "n_positions", "seq_length")
# Files of folders that are no model of transformers -> what to do with such a folder.
_OTHERS = {
    "adapter_config.json": "it is an adapter of peft: make a model of it with `convert`",
    "latest_checkpointed_iteration.txt": "it is a checkpoint of Megatron: name it in generate.checkpoint, and in generate.model "
    "the folder of Hugging Face with its tokenizer",
}
_UNKNOWN = "is it a model of transformers?"
# Without the second option, a model with code of its own would ask at the terminal whether to run it.
_SAFELY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def longest_of(config: Any) -> int | None:
    """The longest text that a model takes, in tokens, if its configuration says so."""
    return next((getattr(config, name) for name in _LENGTHS if getattr(config, name, None)), None)


class Engine:
    """Continues token ids with the model of a configuration."""

    def __init__(self, keys: Generate) -> None:
        self.keys = keys
        self.folder = _checked_folder(keys.model)
        provide_torch()
        import torch
        import transformers
        from safetensors import SafetensorError

        self.torch = torch
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, **_SAFELY)
        except Exception as error:  # of many classes: the reader in Rust raises the class Exception itself
            message = f"the tokenizer cannot be loaded: {first_line(error)}"
            raise UserError(f"generate.model: {self.folder}: {message}") from None
        try:
            self._load()
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise UserError(f"generate.model: {self.folder}: {first_line(error)}") from None
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.tokenizer.padding_side = "left"  # the answers stand behind the prompts

    def _load(self) -> None:
        """Sets the model, and the longest text that it takes.

        Raises:
            UserError: a weight is missing, for which transformers would take random numbers.
        """
        import transformers

        model, found = transformers.AutoModelForCausalLM.from_pretrained(
            self.folder, dtype=self.keys.dtype, output_loading_info=True, **_SAFELY
        )
        if missing := whole.missing(found):
            raise UserError(f"generate.model: {self.folder}: {missing}")
        self.model = model.to(self.keys.device).eval()
        self.longest = longest_of(self.model.config)

    def files(self) -> list[Path]:
        """The files on which the texts depend."""
        return sorted(self.folder.iterdir())

    def texts(self, prompts: Sequence[str]) -> list[str]:
        """The continuations of several prompts, which are computed together.

        Raises:
            UserError: they have no common length, and the tokenizer has no token to fill them with.
        """
        if len(prompts) > 1 and self.tokenizer.pad_token_id is None:
            message = "must be 1, because the tokenizer has neither a token to fill with nor one for the end"
            raise UserError(f"generate.batch_size: {message}")
        found = self.tokenizer(list(prompts), return_tensors="pt", padding=len(prompts) > 1)
        ids, mask = found["input_ids"], found["attention_mask"]
        out = self._run(ids, mask)
        return self.tokenizer.batch_decode(out[:, ids.shape[1] :], skip_special_tokens=True)

    def stream(self, ids: Sequence[int], on_text: Callable[[str], None]) -> str:
        """Continues ids and calls ``on_text`` with each new piece of text. Returns the whole answer.

        An exception of ``on_text`` ends the generation and is passed on.
        """
        import transformers

        class Streamer(transformers.TextStreamer):
            def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
                if text:
                    pieces.append(text)
                    on_text(text)

        pieces: list[str] = []
        tensor = self.torch.tensor([list(ids)])
        streams = self.keys.beams == 1  # with several beams the text is known at the end only
        streamer = Streamer(self.tokenizer, skip_prompt=True, skip_special_tokens=True) if streams else None
        out = self._run(tensor, self.torch.ones_like(tensor), streamer)
        if not streams:
            whole = self.tokenizer.decode(out[0, tensor.shape[1] :], skip_special_tokens=True)
            pieces.append(whole)
            on_text(whole)
        return "".join(pieces)

    def until(self, prompt: str, words: Sequence[str], most: int) -> str:
        """The greedy continuation of a prompt up to the first of some words, in at most so many tokens.

        A prompt that leaves no room loses its beginning.
        """
        ids = self.tokenizer(prompt)["input_ids"]
        if self.longest:
            most = min(most, self.longest - 1)
            ids = ids[-(self.longest - most) :]
        stop = {"stop_strings": list(words), "tokenizer": self.tokenizer} if words else {}
        tensor = self.torch.tensor([ids])
        out = self._generated(tensor, self.torch.ones_like(tensor), most, do_sample=False, **stop)
        text = self.tokenizer.decode(out[0, tensor.shape[1] :], skip_special_tokens=True)
        ends = [text.find(word) for word in words if word in text]
        return text[: min(ends)] if ends else text

    def _run(self, ids: Any, mask: Any, streamer: Any = None) -> Any:
        keys = self.keys
        length = int(ids.shape[1])
        if length == 0:
            raise UserError("generate: a prompt has no token")
        if self.longest and length >= self.longest:
            raise UserError(
                f"generate: a prompt has {length} tokens, and the model takes {self.longest}: shorten it, or for a chat "
                "lower generate.history"
            )
        options: dict[str, Any] = {"num_beams": keys.beams, "do_sample": keys.sample}
        if keys.sample:
            options |= {"temperature": keys.temperature, "top_k": keys.top_k or 0, "top_p": keys.top_p or 1.0}
            self.torch.manual_seed(keys.seed)
        most = keys.max_new_tokens if not self.longest else min(keys.max_new_tokens, self.longest - length)
        options |= {"repetition_penalty": keys.repetition_penalty, "streamer": streamer}
        return self._generated(ids, mask, most, **options)

    def _generated(self, ids: Any, mask: Any, most: int, **options: Any) -> Any:
        """The ids with what the model adds to them, in at most so many tokens."""
        device = self.keys.device
        with self.torch.inference_mode():
            return self.model.generate(
                ids.to(device),
                attention_mask=mask.to(device),
                max_new_tokens=most,
                pad_token_id=self.tokenizer.pad_token_id,
                **options,
            )


def _checked_folder(name: str) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        raise UserError(f"generate.model: there is no folder {name}")
    config = folder / "config.json"
    if not config.is_file():
        hint = next((hint for file, hint in _OTHERS.items() if (folder / file).is_file()), _UNKNOWN)
        raise UserError(f"generate.model: {name} has no config.json: {hint}")
    try:
        facts = json.loads(config.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"generate.model: {config}: {error}") from None
    if not isinstance(facts, dict):
        raise UserError(f"generate.model: {config}: must be an object with keys")
    if "auto_map" in facts and not facts.get("model_type"):
        raise UserError(f"generate.model: {name} needs code of its own, which is never run")
    whole.refuse_pointers_in(folder)
    return folder


def provide_torch() -> None:
    """Has `import torch` answered by msadapter, unless the program has one already."""
    if "torch" not in sys.modules:
        import msadapter

        msadapter.install()
