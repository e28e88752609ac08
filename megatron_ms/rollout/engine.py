"""vLLM's class LLM over transformers' generate, with the parts of its insides that MindSpeed-RL reaches for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
import transformers

from . import models


@dataclass
class SamplingParams:
    """How tokens are drawn. top_k -1 or 0 means all; temperature 0 means the most probable token."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    max_tokens: int = 16
    logprobs: int | None = None
    detokenize: bool = True
    seed: int | None = None
    stop_token_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.n < 1 or self.max_tokens < 1:
            raise ValueError(f"n and max_tokens must be at least 1, got {self.n} and {self.max_tokens}")
        if self.temperature < 0 or not 0 < self.top_p <= 1 or not 0 <= self.min_p <= 1 or self.top_k < -1:
            raise ValueError(
                f"temperature {self.temperature}, top_p {self.top_p}, top_k {self.top_k}, min_p {self.min_p}: "
                "must be at least 0, in (0, 1], at least -1, in [0, 1]"
            )


@dataclass(frozen=True)
class Logprob:
    logprob: float


@dataclass(frozen=True)
class CompletionOutput:
    """A completion. token_ids end with the token that stopped it. logprobs: for each token {token: Logprob}, or None."""

    index: int
    token_ids: list[int]
    logprobs: list[dict[int, Logprob]] | None


@dataclass(frozen=True)
class RequestOutput:
    """The completions of a prompt."""

    request_id: str
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool = True


@dataclass
class VllmConfig:
    """The part of vLLM's configuration that is asked for. No layer has a cache that outlives a call of generate."""

    parallel_config: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(pipeline_parallel_size=1, data_parallel_size=1)
    )
    compilation_config: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(static_forward_context={})
    )


class Runner:
    """Holds the model. kv_caches stays empty: transformers makes the cache in each call, and it ends with it."""

    def __init__(self, model: Any, config: VllmConfig) -> None:
        self.model, self.vllm_config = model, config
        self.kv_caches: list[Any] = []

    def get_model(self) -> Any:
        return self.model


class Worker:
    def __init__(self, runner: Runner) -> None:
        self.model_runner = runner
        self.compilation_config = runner.vllm_config.compilation_config
        self.cache_engine: Any = None
        self.gpu_cache: Any = None

    def _init_cache_engine(self) -> None:
        """The cache is made by transformers."""


class Executor:
    def __init__(self, worker: Worker) -> None:
        self.driver_worker = SimpleNamespace(worker=worker)

    def initialize_from_config(self, configs: Sequence[Any]) -> None:
        """The cache is made by transformers."""


class Engine:
    """The parts of vLLM's engine by their names."""

    def __init__(self, model: Any) -> None:
        self.vllm_config = VllmConfig()
        self.model_executor = Executor(Worker(Runner(model, self.vllm_config)))
        core = SimpleNamespace(model_executor=self.model_executor, kv_cache_configs=[])
        self.engine_core = SimpleNamespace(engine_core=core)

    def reset_prefix_cache(self) -> None:
        """No prefix is kept from call to call."""

    def add_request(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            "requests one by one (rl_config.async_engine: true, partial rollouts) are not answered on a CPU: "
            "docs/reinforcement_learning.md"
        )


# What these options set has no counterpart here: memory of a card, graphs, schedules.
_OF_DEVICES = {
    "distributed_executor_backend", "enable_prefix_caching", "num_scheduler_steps", "enforce_eager", "skip_tokenizer_init",
    "gpu_memory_utilization", "max_num_batched_tokens", "limit_mm_per_prompt",
}  # fmt: skip


class LLM:
    """Generates with the model of a folder.

    Raises:
        NotImplementedError: several ranks of tensor parallelism, experts over ranks, or an unknown option.
    """

    def __init__(
        self,
        model: str,
        *,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        load_format: str = "auto",
        seed: int | None = None,
        max_num_seqs: int = 256,
        max_model_len: int | None = None,
        enable_expert_parallel: bool = False,
        additional_config: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if tensor_parallel_size != 1:
            raise NotImplementedError(
                f"generate_config.infer_tensor_parallel_size is {tensor_parallel_size}: on a CPU each rank generates with "
                "the whole model, so it must be 1 (docs/reinforcement_learning.md)"
            )
        if enable_expert_parallel or (additional_config or {}).get("expert_map_path"):
            raise NotImplementedError("experts over ranks are not answered on a CPU")
        if unknown := set(options) - _OF_DEVICES:
            raise NotImplementedError(f"vllm.LLM on a CPU has no option {', '.join(sorted(unknown))}")
        if load_format not in ("auto", "dummy", "safetensors"):
            raise NotImplementedError(
                f"load_format {load_format} is not answered on a CPU: auto, dummy or safetensors"
            )
        kind = None if dtype == "auto" else getattr(torch, dtype)
        if kind is None:
            stated = transformers.AutoConfig.from_pretrained(model)
            kind = getattr(stated, "dtype", None) or getattr(stated, "torch_dtype", None) or torch.float32
        made = models.build(model, kind, load_format != "dummy", trust_remote_code)
        self.llm_engine = Engine(made.to("cuda" if torch.cuda.is_available() else "cpu"))
        self.max_num_seqs, self.max_model_len = max_num_seqs, max_model_len
        self._seed, self._calls = seed, 0

    @property
    def model(self) -> Any:
        return self.llm_engine.model_executor.driver_worker.worker.model_runner.model

    def generate(
        self,
        prompts: Any = None,
        sampling_params: SamplingParams | None = None,
        prompt_token_ids: Sequence[Sequence[int]] | None = None,
        use_tqdm: bool = False,
    ) -> list[RequestOutput]:
        """The completions of prompts that are lists of token ids.

        The draws come from a random state of their own, which the rank and the number of the call determine. That of the
        training stays as it is.
        """
        if prompts is not None or prompt_token_ids is None:
            raise NotImplementedError(
                "vllm.LLM.generate on a CPU takes token ids (prompt_token_ids) and nothing else"
            )
        how = sampling_params or SamplingParams()
        size = max(1, self.max_num_seqs // how.n)
        found: list[RequestOutput] = []
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self._next_seed(how))
            for start in range(0, len(prompt_token_ids), size):
                some = [list(one) for one in prompt_token_ids[start : start + size]]
                found += self._some(some, how, start)
        return found

    def _next_seed(self, how: SamplingParams) -> int:
        self._calls += 1
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        seed = how.seed if how.seed is not None else self._seed or 0
        return (seed * 1_000_003 + self._calls) * 1009 + rank

    @torch.no_grad()
    def _some(self, prompts: list[list[int]], how: SamplingParams, first: int) -> list[RequestOutput]:
        model = self.model
        device = next(model.parameters()).device
        stops = set(how.stop_token_ids) | _ids(
            model.generation_config.eos_token_id or model.config.eos_token_id
        )
        fill = model.config.pad_token_id
        fill = min(stops, default=0) if fill is None else fill
        longest = max(map(len, prompts))
        room = how.max_tokens
        if self.max_model_len is not None:
            room = min(room, self.max_model_len - longest)
            if room < 1:
                raise ValueError(
                    f"a prompt has {longest} tokens, and max_model_len is {self.max_model_len}: nothing can follow"
                )
        ids = torch.tensor([[fill] * (longest - len(one)) + one for one in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts], device=device)
        drawn = how.temperature > 0
        chosen = (
            {
                "temperature": how.temperature,
                "top_p": how.top_p,
                "top_k": max(how.top_k, 0),
                "min_p": how.min_p,
            }
            if drawn
            else {"temperature": None, "top_p": None, "top_k": None, "min_p": None}
        )
        answer = model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=transformers.GenerationConfig(
                do_sample=drawn,
                num_return_sequences=how.n,
                max_new_tokens=room,
                eos_token_id=sorted(stops) or None,
                pad_token_id=fill,
                output_logits=how.logprobs is not None,
                return_dict_in_generate=True,
                **chosen,
            ),
        )
        tokens = answer.sequences[:, longest:].cpu()
        logs = self._logprobs(answer.logits, tokens) if how.logprobs is not None else None
        found = []
        for number, prompt in enumerate(prompts):
            outputs = []
            for index in range(how.n):
                row = number * how.n + index
                ended = _ended(tokens[row].tolist(), stops)
                kept = None
                if logs is not None:
                    kept = [{token: Logprob(logs[row][at])} for at, token in enumerate(ended)]
                outputs.append(CompletionOutput(index, ended, kept))
            found.append(RequestOutput(str(first + number), prompt, outputs))
        return found

    @staticmethod
    def _logprobs(logits: Sequence[torch.Tensor], tokens: torch.Tensor) -> list[list[float]]:
        """The log-probability of each token under the model itself, before temperature and cuts, as vLLM tells it."""
        columns = [
            torch.log_softmax(one.float().cpu(), -1).gather(1, tokens[:, at : at + 1])
            for at, one in enumerate(logits)
        ]
        found: list[list[float]] = torch.cat(columns, 1).tolist()
        return found


def _ids(value: Any) -> set[int]:
    return set() if value is None else {value} if isinstance(value, int) else set(value)


def _ended(tokens: list[int], stops: set[int]) -> list[int]:
    """The tokens up to the first that stops, which is kept."""
    for at, token in enumerate(tokens):
        if token in stops:
            return tokens[: at + 1]
    return tokens
