"""MindSpeed-LLM's second backend, train_fsdp2.py with a YAML file, unmodified: every layout has the losses of one process.

Needs what test_mindspeed_llm_tools.py needs, with MindSpeed-LLM v26.1.0. It trains transformers' own models with PyTorch's
fully_shard, device meshes and DTensor.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.megatron import lm_checkout
from tests.npu.llm_trainer import ROOT, Trainer, current_test

_MODELS = """
import sys, torch
from pathlib import Path
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM
sys.path.insert(0, sys.argv[2])
import byte_tokenizer
common = dict(vocab_size=260, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=8,
              num_key_value_heads=4, head_dim=16, max_position_embeddings=512, tie_word_embeddings=False, pad_token_id=257,
              eos_token_id=258, bos_token_id=256)
experts = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, router_aux_loss_coef=0.0)
for name, model in {"qwen3": (Qwen3ForCausalLM, Qwen3Config(**common)),
                    "qwen3_moe": (Qwen3MoeForCausalLM, Qwen3MoeConfig(**common, **experts))}.items():
    folder = Path(sys.argv[1]) / name
    torch.manual_seed(0)
    model[0](model[1]).save_pretrained(folder)
    byte_tokenizer.write(folder)
"""


class Backend:
    """Trains a small model with train_fsdp2.py in one folder: three steps, each of four samples, in float32."""

    def __init__(self, runs: Trainer, folder: Path):
        # Texts are divided by a library that upstream compiles with the Python of PATH.
        self.environment = runs.environment | {"PATH": lm_checkout.python_first()}
        self.folder = folder
        self.script = runs.script.with_name("train_fsdp2.py")
        self.known: dict[str, list[float]] = {}
        # A training on texts starts another program by its path in the checkout.
        (folder / "mindspeed_llm").symlink_to(self.script.with_name("mindspeed_llm"))
        samples = [
            {"instruction": f"Count from {n} on.", "input": "", "output": f"{n} {n + 1} {n + 2}"}
            for n in range(40)
        ]
        (folder / "alpaca.json").write_text(json.dumps(samples))
        (folder / "texts.jsonl").write_text(
            "".join(json.dumps({"text": f"One and {n} is {n + 1}."}) + "\n" for n in range(60))
        )
        self._start(["-c", f"import torch\n{_MODELS}", folder, ROOT / "tests/npu/jobs"])

    def _start(self, words: list[object]) -> str:
        run = subprocess.run(
            [sys.executable, *map(str, words)], cwd=self.folder, env=self.environment | current_test(),
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        return run.stdout + run.stderr

    def settings(self, model: str, stage: str, processes: int, changes: dict[str, dict]) -> dict[str, dict]:
        """What the YAML file says; `changes` has further keys of its sections. A step has four samples in every layout."""
        parallel = {"fsdp_size": processes, "param_dtype": "fp32"} | changes.get("parallel", {})
        sharers = processes // (parallel.get("tp_size", 1) * parallel.get("cp_size", 1))
        data = {
            "template": "qwen3",
            "cutoff_len": 128,
            "overwrite_cache": True,
            "preprocessing_num_workers": 1,
        }
        if stage == "sft":
            data |= {"dataset": {"file_name": "alpaca.json"}, "dataset_dir": str(self.folder)}
        else:
            texts = {"file_name": str(self.folder / "texts.jsonl")}
            data |= {"dataset": texts, "data_manager_type": "mg", "cutoff_len": 64}
        training = {
            "stage": stage, "per_device_train_batch_size": 1, "gradient_accumulation_steps": 4 // sharers, "max_steps": 3,
            "disable_shuffling": True, "lr": 1e-3, "warmup_ratio": 0.0, "save_steps": 0, "save_epochs": 0,
            "save_hf_weights": False, "output_dir": str(self.folder / "output"), "dataloader_num_workers": 0,
        }  # fmt: skip
        path = str(self.folder / model)
        return {
            "model": {"model_name_or_path": path} | changes.get("model", {}),
            "data": data | changes.get("data", {}),
            "parallel": parallel,
            "training": training | changes.get("training", {}),
            "optimization": changes.get("optimization", {}),
        }

    def losses(self, model: str, stage: str, processes: int, changes: dict[str, dict]) -> list[float]:
        file = self.folder / "run.yaml"
        file.write_text(yaml.safe_dump(self.settings(model, stage, processes, changes)))
        launcher = ROOT / "msadapter/distributed/_torchrun.py"
        said = self._start([launcher, "--standalone", "--nproc-per-node", processes, self.script, file])
        found = [float(loss) for loss in re.findall(r"lm loss: (\S+)", said)]
        assert len(found) == 3, said[-4000:]
        return found

    def alone(self, model: str, stage: str) -> list[float]:
        """The losses on one process with nothing fused, computed once."""
        key = f"{model} {stage}"
        if key not in self.known:
            self.known[key] = self.losses(model, stage, 1, {})
        return self.known[key]


@pytest.fixture(scope="module")
def backend(trainer: Trainer, tmp_path_factory) -> Backend:
    if not trainer.script.with_name("train_fsdp2.py").is_file():
        pytest.skip(f"MindSpeed-LLM {trainer.release} has no train_fsdp2.py")
    return Backend(trainer, tmp_path_factory.mktemp("fsdp2"))


FUSED = {"use_fused_rmsnorm": True, "use_fused_rotary_pos_emb": True, "use_flash_attn": True}
# (model, stage, processes, what the YAML file says beside the common settings)
CASES: dict[str, tuple[str, str, int, dict[str, dict]]] = {
    "fused operators": ("qwen3", "sft", 1, {"model": {"model_id": "qwen3"}, "optimization": FUSED}),
    "two": ("qwen3", "sft", 2, {}),
    "two, recomputed": ("qwen3", "sft", 2, {"parallel": {"recompute": True}}),
    "four": ("qwen3", "sft", 4, {"model": {"model_id": "qwen3"}, "optimization": FUSED}),
    "context, ulysses": ("qwen3", "sft", 2, {"parallel": {"cp_size": 2}}),
    "context, ring": ("qwen3", "sft", 2, {"parallel": {"cp_size": 2, "cp_type": "ring"}}),
    "built on meta": ("qwen3", "sft", 2, {"model": {"init_model_with_meta_device": True}}),
    "pretraining, two": ("qwen3", "pt", 2, {"model": {"model_id": "qwen3"}}),
    "experts, two": ("qwen3_moe", "sft", 2, {"model": {"model_id": "qwen3_moe"}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_layouts_have_the_losses_of_one_process(backend: Backend, name: str, record_property) -> None:
    model, stage, processes, changes = CASES[name]
    plain = backend.alone(model, stage)
    found = backend.losses(model, stage, processes, changes)
    difference = max(abs(a - b) for a, b in zip(found, plain, strict=True))
    record_property("largest_difference", difference)
    assert len(set(plain)) == 3, "nothing was learned"
    assert difference <= 1e-5, (found, plain)


# Layouts that its YAML file can ask for and that the release does not train -> (model, sizes, the error). Experts on processes of
# their own end in a hook of upstream's that returns a tensor, which PyTorch refuses with the same error.
REFUSED = {
    "replicated": ("qwen3", {"fsdp_size": 1}, "Currently, only `data_parallel_size` = 1 is supported"),
    "tensor": ("qwen3", {"fsdp_size": 1, "tp_size": 2}, "Mesh groups (1, 1)(1) != world size(2)"),
    "experts apart": ("qwen3_moe", {"ep_size": 2}, "expected tuple, but hook returned 'DTensor'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_other_layouts_are_refused(backend: Backend, name: str) -> None:
    model, sizes, text = REFUSED[name]
    with pytest.raises(AssertionError, match=re.escape(text)):
        backend.losses(model, "sft", 2, {"model": {"model_id": model}, "parallel": sizes})


@pytest.mark.slow
def test_weights_are_saved_for_hugging_face(backend: Backend) -> None:
    """A training on two processes goes on from its distributed checkpoint, and writes weights for Hugging Face."""
    place = backend.folder / "saved"
    training = {"save_steps": 2, "save_hf_weights": True, "output_dir": str(place)}
    backend.losses("qwen3", "sft", 2, {"training": training})
    file = backend.folder / "run.yaml"
    settings = backend.settings("qwen3", "sft", 2, {"training": training})
    settings["training"]["resume_from_checkpoint"] = str(place / "checkpoints/global_step_2")
    file.write_text(yaml.safe_dump(settings))
    launcher = ROOT / "msadapter/distributed/_torchrun.py"
    said = backend._start([launcher, "--standalone", "--nproc-per-node", 2, backend.script, file])
    resumed = [float(loss) for loss in re.findall(r"lm loss: (\S+)", said)]
    # Upstream divides the first loss after a start by all steps so far, also by those of the run before.
    assert [3 * loss for loss in resumed] == pytest.approx(backend.alone("qwen3", "sft")[2:], abs=1e-5)
    assert list(place.glob("*.safetensors"))
