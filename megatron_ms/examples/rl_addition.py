"""Data, tokenizer, first model and configurations of a toy task for MindSpeed-RL: sums of two numbers of two digits.

    python megatron_ms/examples/rl_addition.py prepare FOLDER [--steps 900]
    python megatron_ms/examples/rl_addition.py measure FOLDER CHECKPOINT_OF_HUGGING_FACE

`prepare` trains a small transformer on answers of a teacher who forgets to carry seven times in ten. MindSpeed-RL's GRPO, PPO or
DAPO then samples answers from it, and rewards those that are right by MindSpeed-RL's rule math_17k_acc, which reads the number in
\\boxed{}. For DPO there are pairs of answers, with and without the carry.
`measure` says how many of 512 sums the model solves that were in no training. megatron_ms/examples/train_rl.sh runs all steps.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path
from typing import Any

FORGETS = 0.7  # how often the teacher forgets a carry
HELD = 512  # sums for validation
# The padding token must not have the id 0, which MindSpeed-RL reads as no padding token.
FILL, END, BOX = "<fill>", "<end>", "\\boxed{"
SIGNS = ["+", FILL, END, *"0123456789", "=", BOX, "}"]
HIDDEN, INNER, LAYERS, HEADS = 64, 192, 2, 4
ANSWER = 6  # \boxed{ 1 9 8 } and the end


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("prepare")
    one.add_argument("folder", type=Path)
    one.add_argument("--steps", type=int, default=900, help="steps with the teacher's answers")
    two = commands.add_parser("measure")
    two.add_argument("folder", type=Path)
    two.add_argument("model", type=Path)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.folder, given.steps)
    else:
        print(json.dumps({"sums": HELD, "right": measure(given.folder, given.model)}))


def prepare(folder: Path, steps: int) -> None:
    """Writes model/, prompts.jsonl, pairs.jsonl, validation.json, and MindSpeed-RL's files of configuration."""
    import torch
    import transformers

    folder = folder.resolve()
    (folder / "model").mkdir(parents=True, exist_ok=True)
    sums = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    random.Random(0).shuffle(sums)
    (folder / "validation.json").write_text(json.dumps(sums[:HELD]))
    rows = [json.dumps({"prompt": f"{a}+{b}=", "answer": str(a + b)}) for a, b in sums[HELD:]]
    (folder / "prompts.jsonl").write_text("\n".join(rows) + "\n")
    carried = [(a, b) for a, b in sums[HELD:] if a % 10 + b % 10 >= 10]
    rows = [
        json.dumps({"prompt": f"{a}+{b}=", "chosen": _boxed(a + b), "rejected": _boxed(a + b - 10)})
        for a, b in carried
    ]
    (folder / "pairs.jsonl").write_text("\n".join(rows) + "\n")
    tokenizer().save_pretrained(folder / "model")
    torch.manual_seed(0)
    configuration = transformers.Qwen2Config(
        architectures=["Qwen2ForCausalLM"], vocab_size=len(SIGNS), hidden_size=HIDDEN, intermediate_size=INNER,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=32,
        rope_theta=10000.0, rms_norm_eps=1e-6, tie_word_embeddings=False, bos_token_id=None,
        pad_token_id=SIGNS.index(FILL), eos_token_id=SIGNS.index(END),
    )  # fmt: skip
    model = transformers.Qwen2ForCausalLM(configuration)
    _teach(model, sums[HELD:], steps)
    model.save_pretrained(folder / "model")
    _write_configuration(folder)


def _boxed(number: int) -> str:
    return f"{BOX}{number}}}{END}"


def _teach(model: Any, sums: list[tuple[int, int]], steps: int) -> None:
    """Trains on the teacher's answers, 128 in a step."""
    import torch

    teacher = random.Random(0)
    rows = torch.tensor([_taught(a, b, teacher) for a, b in sums])
    order = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    plan = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, max(1 - step / steps, 0.02))
    )
    for step in range(steps):
        ids = rows[torch.randint(len(rows), (128,), generator=order)]
        labels = ids.clone()
        labels[:, :6] = -100  # the question
        labels[ids == SIGNS.index(FILL)] = -100
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        plan.step()
        optimizer.zero_grad()
        if step % 100 == 99:
            print(f"step {step + 1} of {steps}: loss {loss.item():.3f}", flush=True)


def _taught(a: int, b: int, teacher: random.Random) -> list[int]:
    """The ids of a sum with the teacher's answer, filled up to the same length."""
    carry = 10 if a % 10 + b % 10 >= 10 else 0
    answer = str(a + b - (carry if teacher.random() < FORGETS else 0))
    signs = [*f"{a}+{b}=", BOX, *answer, "}", END]
    signs += [FILL] * (6 + ANSWER - len(signs))
    return [SIGNS.index(sign) for sign in signs]


def tokenizer() -> Any:
    """A tokenizer with an id for each sign."""
    import tokenizers
    import transformers

    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({sign: k for k, sign in enumerate(SIGNS)}, unk_token=FILL)
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\\boxed\{|."), "isolated")
    inner.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token=FILL, eos_token=END)


def measure(folder: Path, place: Path) -> float:
    """The share of the sums of validation.json to which the most probable answer is right."""
    import torch
    import transformers

    sums = json.loads((folder / "validation.json").read_text())
    model = transformers.AutoModelForCausalLM.from_pretrained(place).float().eval()
    ids = torch.tensor([[SIGNS.index(sign) for sign in f"{a}+{b}="] for a, b in sums])
    with torch.no_grad():
        answers = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=ANSWER
        )[:, ids.shape[1] :].tolist()
    right = 0
    for (a, b), answer in zip(sums, answers, strict=True):
        wanted = [SIGNS.index(sign) for sign in [BOX, *str(a + b), "}", END]]
        right += answer[: len(wanted)] == wanted
    return right / len(sums)


def _write_configuration(folder: Path) -> None:
    """MindSpeed-RL's files: the data sets, the environment of its processes, and each program's configuration."""
    home = os.environ.get("MINDSPEED_RL")
    if not home:
        raise SystemExit("MINDSPEED_RL is not set: source the env.sh that auto_convert.sh rl has written")
    template = {"prompt_type": "empty", "prompt_type_path": f"{home}/configs/model/templates.json"}
    _write_data(folder, template)
    _json(
        folder / "runtime_env.yaml",
        {"env_vars": {"TOKENIZERS_PARALLELISM": "true", "VLLM_DP_SIZE": "1", "VLLM_USE_V1": "1"}},
    )
    grpo = _grpo(folder, template)
    for name, content in (("grpo", grpo), ("ppo", _ppo(grpo)), ("dapo", _dapo(grpo)), ("dpo", _dpo(grpo))):
        _json(folder / f"{name}_addition.yaml", content)


def _write_data(folder: Path, template: dict[str, str]) -> None:
    """What preprocess_data.py reads: questions with their answers, and for DPO questions with a right and a wrong answer."""
    common = {
        "tokenizer_name_or_path": str(folder / "model"), "tokenizer_type": "HuggingFaceTokenizer", "workers": 1,
        "log_interval": 10000, **template,
    }  # fmt: skip
    questions = {
        "input": str(folder / "prompts.jsonl"),
        "output_prefix": str(folder / "data" / "sums"),
        "handler_name": "R1AlpacaStyleInstructionHandler",
        "dataset_additional_keys": ["labels"],
        "map_keys": {"prompt": "prompt", "query": "", "response": "answer", "system": ""},
    }
    pairs = {
        "input": str(folder / "pairs.jsonl"),
        "output_prefix": str(folder / "data" / "pairs"),
        "handler_name": "AlpacaStylePairwiseHandler",
        "map_keys": {"prompt": "prompt", "query": "", "system": ""},
    }
    _json(folder / "addition_data.yaml", common | questions)
    _json(folder / "pairs_data.yaml", common | pairs)


def _grpo(folder: Path, template: dict[str, str]) -> dict[str, Any]:
    """The configuration of train_grpo.py."""
    model = str(folder / "model")
    actor = {
        "model": "addition", "micro_batch_size": 64, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1,
        "lr": 3e-4, "lr_decay_style": "constant", "min_lr": 0, "weight_decay": 0.0, "lr_warmup_fraction": 0.1,
        "clip_grad": 1.0, "adam_beta1": 0.9, "adam_beta2": 0.95, "finetune": True, "no_load_optim": True,
        "no_load_rng": True, "load": str(folder / "start"), "save": str(folder / "learned"),
    }  # fmt: skip
    geometry = {
        "use_mcore_models": True, "num_layers": LAYERS, "hidden_size": HIDDEN, "ffn_hidden_size": INNER,
        "num_attention_heads": HEADS, "rotary_base": 10000, "max_position_embeddings": 32,
        "make_vocab_size_divisible_by": 1, "padded_vocab_size": len(SIGNS), "untie_embeddings_and_output_weights": True,
        "add_qkv_bias": True, "disable_bias_linear": True, "group_query_attention": True, "num_query_groups": HEADS,
        "position_embedding_type": "rope", "norm_epsilon": 1e-6, "normalization": "RMSNorm", "swiglu": True,
        "attention_softmax_in_fp32": True,
    }  # fmt: skip
    training = {
        "model": "addition", "use_fused_rmsnorm": True, "use_mcore_models": True, "sequence_parallel": True,
        "use_flash_attn": True, "no_masked_softmax_fusion": True, "attention_softmax_in_fp32": True,
        "no_gradient_accumulation_fusion": True, "use_fused_swiglu": True, "use_fused_rotary_pos_emb": True, "bf16": True,
        "use_distributed_optimizer": True, "tokenizer_type": "PretrainedFromHF", "tokenizer_name_or_path": model,
        "global_batch_size": 32, "seq_length": 16, "save_interval": 100000, "train_iters": 80, "stage": "ray_grpo",
        "attention_dropout": 0.0, "hidden_dropout": 0.0, "init_method_std": 0.02, "distributed_backend": "nccl",
        "no_shared_storage": True, "dataset_additional_keys": ["labels"], "data_path": str(folder / "data" / "sums"),
        "split": "100,0,0", "no_shuffle": False, "full_shuffle_instruction_dataset": False, "seed": 1, **template,
    }  # fmt: skip
    learning = {
        "guarantee_order": False, "use_integrated_worker": True, "blocking": True, "gamma": 1.0, "lam": 0.95,
        "runtime_env_path": str(folder / "runtime_env.yaml"), "actor_forward_micro_batch_size": 64,
        "ref_forward_micro_batch_size": 64, "adv_estimator": "group_norm", "kl_penalty": "low_var_kl",
        "kl_ctrl_type": "fixed", "init_kl_coef": 0.0, "mini_batch_size": 256, "max_prompt_length": 8, "epochs": 1,
        "clip_ratio": 0.2, "entropy_coeff": 0.0, "shuffle_mini_batch": False, "n_samples_per_prompt": 8,
        "rule_reward": True, "verifier_function": ["math_17k_acc"], "verifier_weight": [1.0],
        "log_max_throughput": False, "num_cpus_for_local_task": 1.0, "num_cpus_for_placement_group": 1,
        "use_tensorboard": False, "actor_resource": {"num_npus": 2},
    }  # fmt: skip
    rollout = {
        "trust_remote_code": False, "infer_tensor_parallel_size": 1, "infer_pipeline_parallel_size": 1,
        "infer_expert_parallel_size": 1, "max_num_seqs": 1024, "max_model_len": 16, "dtype": "bfloat16",
        "sampling_config": {
            "logprobs": 1, "max_tokens": ANSWER, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "temperature": 1.0,
            "detokenize": False,
        },
    }  # fmt: skip
    return {
        "hydra": {"run": {"dir": str(folder / "hydra")}},
        "model": {"addition": geometry},
        "megatron_training": training,
        "actor_config": actor,
        "rl_config": learning,
        "generate_config": rollout,
    }


def _ppo(grpo: dict[str, Any]) -> dict[str, Any]:
    """The configuration of train_ppo.py: advantages come from a value network, which begins with random weights.

    The order is guaranteed, as in MindSpeed-RL's own configuration, because train_ppo.py makes a transfer dock that does not
    choose samples by itself (its GBS_train is 0): a worker that asks for any eight of them would wait forever.
    """
    critic = {name: value for name, value in grpo["actor_config"].items() if name != "load"}
    critic |= {"lr": 1e-3, "save": f"{critic['save']}_critic"}
    learning = {
        "adv_estimator": "gae", "lam": 1.0, "kl_penalty": "kl", "use_kl_in_reward": False, "cliprange_value": 0.5,
        "critic_resource": {"num_npus": 2}, "num_cpus_for_placement_group": 2, "guarantee_order": True,
    }  # fmt: skip
    return grpo | {
        "megatron_training": grpo["megatron_training"] | {"stage": "ray_ppo", "save_interval": 80},
        "critic_config": critic,
        "rl_config": grpo["rl_config"] | learning,
    }


def _dapo(grpo: dict[str, Any]) -> dict[str, Any]:
    """The configuration of train_dapo.py: the mean over tokens, a higher upper limit, and groups of equal rewards are dropped.

    An answer may be two tokens longer than a right one. Its last token costs a reward of 1.
    """
    longest = ANSWER + 2
    learning = {
        "token_level_loss": True, "clip_higher_enable": True, "clip_ratio_low": 0.2, "clip_ratio_high": 0.28,
        "overlong_buffer_enable": True, "rollout_max_tokens": longest, "overlong_buffer": 1,
        "overlong_buffer_penalty_factor": 1.0, "filter_groups_enable": True, "filter_groups_metric": "math_17k_acc",
        "filter_groups_max_batches": 10, "filter_groups_train_batch_size": 16,
    }  # fmt: skip
    sampling = grpo["generate_config"]["sampling_config"] | {"max_tokens": longest}
    return grpo | {
        "megatron_training": grpo["megatron_training"] | {"stage": "ray_dapo"},
        "rl_config": grpo["rl_config"] | learning,
        "generate_config": grpo["generate_config"] | {"sampling_config": sampling},
    }


def _dpo(grpo: dict[str, Any]) -> dict[str, Any]:
    """The configuration of train_dpo.py, which needs neither Ray nor an engine: the answers are there already."""
    actor = grpo["actor_config"]
    training = grpo["megatron_training"] | actor
    training |= {
        "stage": "dpo", "is_pairwise_dataset": True, "dpo_loss_type": "sigmoid", "attention_mask_type": "general",
        "dataset_additional_keys": [], "micro_batch_size": 8, "data_path": training["data_path"].replace("sums", "pairs"),
        "ref_model": actor["load"], "refer_model_iter": 1, "log_interval": 1, "eval_interval": 100000, "eval_iters": 0,
    }  # fmt: skip
    return {"hydra": grpo["hydra"], "model": grpo["model"], "megatron_training": training}


def _json(file: Path, content: dict[str, Any]) -> None:
    """JSON is YAML, too."""
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
