"""Short trainings through trl's trainers, unmodified: twenty steps of a small random model, with their token ids.

Nothing is fetched: the model comes from its configuration and torch's random stream, and the tokenizer has a token for each byte.
"""

from __future__ import annotations

from tests.huggingface import model_cases

STEPS = 20
WORDS = ("red", "green", "blue", "black", "white", "grey", "pink", "brown")
# The further numbers of the trainers' logs that are recorded, where a trainer has them.
MEASURES = ("grad_norm", "reward", "reward_std", "kl", "entropy", "clip_ratio/region_mean", "rewards/margins", "margin",
        "rewards/accuracies", "accuracy", "logps/chosen", "logps/rejected", "mean_token_accuracy", "num_tokens")  # fmt: skip


def run(torch, case: str, folder) -> dict:
    """The token ids that the model has seen, and the loss and the measures of each step. Files go to a folder."""
    import transformers

    seen: list[list[list[int]]] = []
    trainer = CASES[case](torch, transformers, str(folder), seen)
    if not case.startswith("grpo"):  # there the reward sees the ids
        _watch(trainer, seen)
    trainer.train()
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    measures = [{name: float(entry[name]) for name in MEASURES if name in entry} for entry in logs]
    return {"ids": seen, "losses": [entry["loss"] for entry in logs], "measures": measures}


def tokenizer(transformers):
    """Ids 0 to 255 are the bytes; 256 ends, 257 fills."""
    import tokenizers

    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    inner = tokenizers.Tokenizer(tokenizers.models.BPE({sign: k for k, sign in enumerate(alphabet)}, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<fill>", eos_token="<end>", padding_side="left"
    )


def _watch(trainer, seen: list) -> None:
    """Keeps the ids of each batch that the trainer's loss is computed for."""
    inner = trainer.compute_loss

    def compute_loss(model, inputs, *arguments, **options):
        seen.append(inputs["input_ids"].tolist())
        return inner(model, inputs, *arguments, **options)

    trainer.compute_loss = compute_loss


def _options(folder: str) -> dict:
    return {
        "output_dir": folder,
        "max_steps": STEPS,
        "logging_steps": 1,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "seed": 11,
    }


def _model(torch, transformers, folder: str):
    """A model that was loaded from a folder, from which GRPO loads its reference as well."""
    place = f"{folder}/model"
    model_cases.build(torch, transformers, "qwen2").save_pretrained(place)
    return transformers.AutoModelForCausalLM.from_pretrained(place, dtype="float32")


def _pairs() -> list[dict[str, str]]:
    return [
        {"prompt": f"{word} then ", "chosen": WORDS[(k + 1) % 8], "rejected": WORDS[(k + 3) % 8]}
        for k, word in enumerate(WORDS)
    ]


def _sft(torch, transformers, folder, seen):
    import datasets
    import trl

    rows = [{"text": f"{word} then {WORDS[(k + 1) % 8]}"} for k, word in enumerate(WORDS)]
    return trl.SFTTrainer(
        model=_model(torch, transformers, folder),
        args=trl.SFTConfig(**_options(folder)),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer(transformers),
    )


def _dpo(torch, transformers, folder, seen):
    import datasets
    import trl

    return trl.DPOTrainer(
        model=_model(torch, transformers, folder),
        args=trl.DPOConfig(**_options(folder)),
        train_dataset=datasets.Dataset.from_list(_pairs()),
        processing_class=tokenizer(transformers),
    )


def _reward(torch, transformers, folder, seen):
    import datasets
    import trl

    _, _, arguments = model_cases.FAMILIES["qwen2"]
    torch.manual_seed(0)
    options = transformers.Qwen2Config(**arguments, num_labels=1, pad_token_id=257)
    return trl.RewardTrainer(
        model=transformers.Qwen2ForSequenceClassification(options),
        args=trl.RewardConfig(**_options(folder)),
        train_dataset=datasets.Dataset.from_list(_pairs()),
        processing_class=tokenizer(transformers),
    )


def grpo_trainer(torch, transformers, folder, rule, **further):
    """A trainer whose completions the rule judges, four for each prompt."""
    import datasets
    import trl

    options = {**_options(folder), "num_generations": 4, "max_completion_length": 8, **further}
    return trl.GRPOTrainer(
        model=_model(torch, transformers, folder),
        args=trl.GRPOConfig(**options),
        reward_funcs=rule,
        train_dataset=datasets.Dataset.from_list([{"prompt": word} for word in WORDS]),
        processing_class=tokenizer(transformers),
    )


def _grpo(torch, transformers, folder, seen, **further):
    def letters(prompts, completions, completion_ids, **_):
        """The share of the tokens that are a small letter; the completions are kept."""
        seen.append([list(map(int, ids)) for ids in completion_ids])
        return [sum(97 <= one < 123 for one in ids) / max(len(ids), 1) for ids in completion_ids]

    return grpo_trainer(torch, transformers, folder, letters, **further)


def _grpo_with_reference(torch, transformers, folder, seen):
    """Two updates with the same completions, a reference, and the mean over each completion."""
    return _grpo(torch, transformers, folder, seen, num_iterations=2, beta=0.1, loss_type="grpo")


CASES = {
    "sft": _sft,
    "dpo": _dpo,
    "reward": _reward,
    "grpo": _grpo,
    "grpo with a reference": _grpo_with_reference,
}
