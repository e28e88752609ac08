"""Continues ids with a Megatron checkpoint on its ranks. Started by `ranks.py`, with upstream's own flags.

    ranks_program.py PROGRAMS SOCKET MODEL FLAGS...

PROGRAMS is the folder of upstream's pretrain_gpt.py, SOCKET where every rank asks for work, and MODEL a folder with the
config.json of transformers. Tokens are chosen by transformers' own `generate`, on every rank alike: the logits come from the
last stage of the pipeline, and random choices from one seed.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from megatron_ms.conversion import checkpoints
from megatron_ms.upstream import on_ranks


def main() -> None:
    programs, address, folder = sys.argv[1:4]
    sys.argv = [sys.argv[0], *sys.argv[4:]]
    parts = on_ranks.load(programs)
    model = continuer(parts, Path(folder))
    asked = _connection(address)
    while True:
        try:
            request = json.loads(asked.recv_bytes())
        except EOFError:
            return
        if not request:
            continue  # a stop that came when the answer was whole
        _send(asked, {"ids": _answer(model, request, asked)})


def _connection(address: str) -> Connection:
    """A connection to the process that asks, which is told which rank this is."""
    own = socket.socket(socket.AF_UNIX)
    own.connect(address)
    connection = Connection(own.detach())
    _send(connection, {"rank": int(os.environ["RANK"])})
    return connection


def _send(connection: Connection, message: dict[str, Any]) -> None:
    connection.send_bytes(json.dumps(message).encode())


def _answer(model: Any, request: dict[str, Any], asked: Connection) -> list[list[int]]:
    """The ids of a request with what the model adds to them. Only rank 0's answer is read."""
    import torch

    first = int(os.environ["RANK"]) == 0
    options = dict(request["options"])
    if request["stream"]:
        options["stopping_criteria"] = [_Stopped(asked, first, model.device)]
        if first:
            options["streamer"] = _Streamer(asked)
    torch.manual_seed(request["seed"])
    ids = torch.tensor(request["ids"], device=model.device)
    mask = torch.tensor(request["mask"], device=model.device)
    with torch.no_grad():  # in inference mode, MindSpeed's mask would be checked anew by each layer
        found = model.generate(ids, attention_mask=mask, use_cache=False, **options)
    return found.tolist() if first else []


class _Streamer:
    """What transformers calls with each new token."""

    def __init__(self, asked: Connection) -> None:
        self.asked = asked

    def put(self, ids: Any) -> None:
        _send(self.asked, {"put": ids.reshape(-1).tolist()})

    def end(self) -> None:
        """The answer follows, which says the same."""


class _Stopped:
    """Ends the answer on all ranks when rank 0 is told to stop."""

    def __init__(self, asked: Connection, first: bool, device: Any) -> None:
        self.asked, self.first, self.device = asked, first, device

    def __call__(self, ids: Any, scores: Any, **options: Any) -> Any:
        import torch

        stop = torch.zeros(1, dtype=torch.int64, device=self.device)
        if self.first and self.asked.poll():
            self.asked.recv_bytes()  # while an answer is computed, only a stop is sent
            stop += 1
        torch.distributed.broadcast(stop, 0)
        return stop.bool().expand(ids.shape[0])


def continuer(parts: list[Any], folder: Path) -> Any:
    """A model of transformers whose logits are computed by the ranks.

    It has no cache of keys and values: each new token computes the whole text again.
    """
    import torch
    import transformers
    from megatron.core import parallel_state
    from transformers.modeling_outputs import CausalLMOutput

    facts = checkpoints.facts_of(folder)
    vocabulary = int((facts.get("text_config") or facts)["vocab_size"])
    tensor = parallel_state.get_tensor_model_parallel_world_size()
    last = parallel_state.get_pipeline_model_parallel_last_rank()
    group = parallel_state.get_pipeline_model_parallel_group()
    place = torch.device(torch.cuda.current_device() if torch.cuda.is_available() else "cpu")

    class OnRanks(transformers.PreTrainedModel, transformers.GenerationMixin):
        """Megatron's model as transformers calls it."""

        config_class = transformers.PretrainedConfig
        main_input_name = "input_ids"

        @property
        def device(self) -> Any:
            return place

        def prepare_inputs_for_generation(
            self, input_ids: Any, attention_mask: Any = None, **rest: Any
        ) -> dict[str, Any]:
            return {"input_ids": input_ids, "attention_mask": attention_mask}

        def forward(self, input_ids: Any, attention_mask: Any, **rest: Any) -> Any:
            """The logits behind the last token of each row: [rows, 1, vocabulary].

            The padding in front of shorter rows is moved behind them, where no token sees it.
            """
            rows, length = input_ids.shape
            longer = (
                -(-length // tensor) * tensor
            )  # each tensor rank has as many tokens under sequence parallelism
            ids = input_ids.new_zeros(rows, longer)
            counts = attention_mask.sum(1)
            for row, count in enumerate(counts.tolist()):
                ids[row, :count] = input_ids[row, length - count :]
            logits = on_ranks.forward(parts, ids)
            if logits is None:
                found = torch.empty(rows, vocabulary, device=place)
            else:
                ends = (counts - 1)[:, None, None].expand(rows, 1, logits.shape[2])
                found = logits.float().gather(1, ends)[:, 0, :vocabulary].contiguous()
            torch.distributed.broadcast(found, last, group=group)
            return CausalLMOutput(logits=found[:, None])

    model = OnRanks(transformers.PretrainedConfig(vocab_size=vocabulary, is_encoder_decoder=False))
    model.generation_config = _generation_config(folder, facts)
    return model.eval()


def _generation_config(folder: Path, facts: dict[str, Any]) -> Any:
    """The defaults of the model, as transformers itself finds them."""
    import transformers

    if (folder / "generation_config.json").is_file():
        return transformers.GenerationConfig.from_pretrained(folder)
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return transformers.GenerationConfig(**{name: facts[name] for name in names if name in facts})


if __name__ == "__main__":
    main()
