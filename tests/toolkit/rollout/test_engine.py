"""vLLM's LLM over transformers' generate: parameters, draws, log-probabilities, and what it refuses."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.huggingface.conftest import transformers  # noqa: F401 a fixture

KINDS = {
    "Qwen2ForCausalLM": "Qwen2Config",
    "Qwen3ForCausalLM": "Qwen3Config",
    "LlamaForCausalLM": "LlamaConfig",
}


@pytest.fixture
def saved(transformers, tmp_path):  # noqa: F811
    """A function: the folder with a small model of an architecture, and the model."""
    import torch

    def make(kind="Qwen2ForCausalLM"):
        torch.manual_seed(1)
        configuration = getattr(transformers, KINDS[kind])(
            architectures=[kind], vocab_size=19, hidden_size=32, intermediate_size=48, num_hidden_layers=2, head_dim=8,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False,
            pad_token_id=1, eos_token_id=2, bos_token_id=None, initializer_range=0.5,
        )  # fmt: skip
        model = getattr(transformers, kind)(configuration).eval()
        model.save_pretrained(tmp_path / kind)
        return str(tmp_path / kind), model

    return make


@pytest.fixture
def engine(transformers):  # noqa: F811
    return importlib.import_module("megatron_ms.rollout.engine")


PROMPTS = [[3, 4, 5, 6], [7, 8], [9, 10, 11]]


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_answers(kind, saved, engine):
    """The merged projections hold the rows of transformers' own, and the most probable answers are the same."""
    import torch

    folder, model = saved(kind)
    llm = engine.LLM(model=folder, dtype="float32", load_format="auto")
    own = dict(llm.model.named_parameters())
    layer = "model.layers.1.self_attn"
    parts = [model.get_parameter(f"{layer}.{name}_proj.weight") for name in "qkv"]
    assert torch.equal(own[f"{layer}.qkv_proj.weight"], torch.cat(parts))
    assert not [name for name in own if "q_proj" in name or "gate_proj" in name]
    found = llm.generate(
        prompt_token_ids=PROMPTS,
        sampling_params=engine.SamplingParams(temperature=0, max_tokens=5, logprobs=1),
    )
    for prompt, request in zip(PROMPTS, found, strict=True):
        assert request.prompt_token_ids == prompt
        (output,) = request.outputs
        ids = torch.tensor([prompt + output.token_ids])
        with torch.no_grad():
            logs = torch.log_softmax(model(ids).logits[0].float(), -1)[len(prompt) - 1 : -1]
        assert output.token_ids == logs.argmax(-1).tolist()
        told = [one[token].logprob for one, token in zip(output.logprobs, output.token_ids, strict=True)]
        assert told == pytest.approx(logs.max(-1).values.tolist(), abs=1e-5)
        assert len(output.token_ids) == 5 or output.token_ids[-1] == 2


def test_weights_are_moved_by_replacing_storage(saved, engine):
    """As MindSpeed-RL does it: `parameter.data = other`. transformers' layers see the new weights."""
    import torch

    folder, model = saved()
    llm = engine.LLM(model=folder, dtype="float32", load_format="auto")
    how = engine.SamplingParams(temperature=0, max_tokens=1, logprobs=1)
    (before,) = llm.generate(prompt_token_ids=PROMPTS[:1], sampling_params=how)
    for parameter in llm.model.parameters():
        parameter.data = parameter.data * 0.5
    (after,) = llm.generate(prompt_token_ids=PROMPTS[:1], sampling_params=how)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
        logs = torch.log_softmax(model(torch.tensor(PROMPTS[:1])).logits[0, -1], -1)
    (token,) = after.outputs[0].token_ids
    assert after.outputs[0].logprobs[0][token].logprob == pytest.approx(logs[token].item(), abs=1e-5)
    assert before.outputs[0].logprobs != after.outputs[0].logprobs


def test_draws(saved, engine):
    """Each prompt has n answers; a call differs from the next, a new engine repeats the first; training's state stays."""
    import torch

    folder, _ = saved()
    how = engine.SamplingParams(n=4, temperature=1.0, max_tokens=8)

    def drawn(llm):
        return [[one.token_ids for one in request.outputs] for request in llm.generate(None, how, PROMPTS)]

    llm = engine.LLM(model=folder, dtype="float32", load_format="auto", seed=5, max_num_seqs=8)
    torch.manual_seed(11)
    state = torch.get_rng_state()
    first, second = drawn(llm), drawn(llm)
    assert torch.equal(torch.get_rng_state(), state)
    assert [len(request) for request in first] == [4, 4, 4]
    assert first != second
    assert (
        drawn(engine.LLM(model=folder, dtype="float32", load_format="auto", seed=5, max_num_seqs=8)) == first
    )
    assert len({tuple(one) for one in first[0]}) > 1
    for answer in (one for request in first for one in request):
        assert 2 not in answer[:-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tensor_parallel_size": 2}, "infer_tensor_parallel_size is 2"),
        ({"enable_expert_parallel": True}, "experts over ranks"),
        ({"speculative": 1}, "has no option speculative"),
        ({"load_format": "gguf"}, "load_format gguf"),
    ],
)
def test_refused(options, message, saved, engine):
    folder, _ = saved()
    with pytest.raises(NotImplementedError, match=message):
        engine.LLM(model=folder, **options)


def test_other_input_is_refused(saved, engine):
    folder, _ = saved()
    llm = engine.LLM(model=folder, load_format="dummy", dtype="bfloat16", max_model_len=4)
    assert {one.dtype.itemsize for one in llm.model.parameters()} == {2}
    with pytest.raises(NotImplementedError, match="takes token ids"):
        llm.generate(["1+1="])
    with pytest.raises(ValueError, match="max_model_len is 4"):
        llm.generate(prompt_token_ids=[[3, 4, 5, 6]])
    with pytest.raises(NotImplementedError, match="one by one"):
        llm.llm_engine.add_request("1")
    for wrong in (
        {"n": 0},
        {"top_p": 0},
        {"temperature": -1},
        {"top_k": -2},
        {"min_p": 2},
        {"max_tokens": 0},
    ):
        with pytest.raises(ValueError, match="must be"):
            engine.SamplingParams(**wrong)


def test_names_that_are_imported_alone(engine, monkeypatch):
    """A name of vLLM that is not answered may be imported and be a base class. Its use says which it is."""
    from megatron_ms.convert.rl_job import NAMES

    monkeypatch.syspath_prepend(str(NAMES))
    before, finders = set(sys.modules), list(sys.meta_path)
    try:
        vllm = importlib.import_module("vllm")
        assert vllm.LLM is engine.LLM
        layer = importlib.import_module("vllm.model_executor.layers.fused_moe.layer")

        class Own(layer.FusedMoE):
            pass

        for kind in (layer.FusedMoE, Own):
            with pytest.raises(NotImplementedError, match="fused_moe.layer.FusedMoE is not answered"):
                kind(1)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("vllm.nothing")
        state = importlib.import_module("vllm.distributed.parallel_state")
        with pytest.raises(AssertionError, match="tensor model parallel group is not initialized"):
            state.get_tensor_model_parallel_rank()
    finally:
        sys.meta_path[:] = finders
        for name in set(sys.modules) - before:
            del sys.modules[name]
