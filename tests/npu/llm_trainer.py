"""Runs MindSpeed-LLM's own pretrain_gpt.py, unmodified, with our torchrun, on a small corpus of its own making."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import patches
from megatron_ms.convert.shell import SHIM, TORCH_OF_MINDSPEED, older_torch
from tests.megatron.lm_checkout import python_first
from tests.npu.llm_rows import COMMON, MODELS, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]

_CORPUS = """
import json, sys, numpy, torch
from pathlib import Path
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from tokenizers import Tokenizer, models, pre_tokenizers
folder = Path(sys.argv[1])
builder = IndexedDatasetBuilder(str(folder / "text_document.bin"), dtype=numpy.int32)
random = numpy.random.default_rng(1)
for _ in range(200):
    start, length = int(random.integers(0, 200)), int(random.integers(20, 200))
    document = [(start + 3 * j) % 250 + 2 for j in range(length)] + [1]
    builder.add_document(torch.tensor(document, dtype=torch.int32), [len(document)])
builder.finalize(str(folder / "text_document.idx"))
# The filler is a word of its own: Megatron zeroes its places in a mask that one process keeps from sample to sample.
words = {"<unk>": 0, "<eos>": 1, "<pad>": 255} | {f"w{i}": i + 2 for i in range(253)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
(folder / "tokenizer").mkdir()
tokenizer.save(str(folder / "tokenizer/tokenizer.json"))
special = {"eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}
(folder / "tokenizer/tokenizer_config.json").write_text(
    json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096, **special}))
"""

# How FSDP2 shards: what MindSpeed-LLM 2.3.0 has as an example, and 26.1.0 no longer brings.
_FSDP2 = """
reshard_after_forward: true
param_dtype: bf16
reduce_dtype: fp32
output_dtype: bf16
cast_forward_inputs: true
num_to_forward_prefetch: 2
"""


def recorder() -> list[Path]:
    """Code that runs before a script and records the names that it enters, if MSADAPTER_RECORD_TARGETS is set to a folder."""
    folder = os.environ.get("MSADAPTER_RECORD_TARGETS")
    return [ROOT / "tests/npu/entered.py", Path(folder)] if folder else []


def current_test() -> dict[str, str]:
    """Environment variables with which records name their test."""
    return {name: os.environ[name] for name in ("PYTEST_CURRENT_TEST",) if name in os.environ}


@dataclass(frozen=True)
class Outcome:
    """The losses of three steps, with MTP also those of the next layer, and the calls of fused operators."""

    losses: list[float]
    operators: dict[str, int]


class Trainer:
    """Stores outcomes by flags, so that a run without fused operators is used for all rows of its layout."""

    def __init__(self, folder: Path, megatron: Path, paths: list[Path]):
        self.folder, self.megatron, self.script = folder, megatron, paths[0] / "pretrain_gpt.py"
        self.release = patches.discover("mindspeed_llm")[0].version_of(paths[0])
        # From 26 on MindSpeed's own TransformerEngine is the default, which needs flash attention.
        self.common = COMMON if self.release < "26" else f"{COMMON} --transformer-impl local"
        shims = older_torch(TORCH_OF_MINDSPEED), SHIM
        outside = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, [*shims, ROOT, *paths, megatron, *outside])),
            "PATH": python_first(),
            "MSADAPTER_DEVICE": "npu",
            "MSADAPTER_TORCH_VERSION": TORCH_OF_MINDSPEED,
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.plain: dict[tuple, Outcome] = {}
        (folder / "fsdp2.yaml").write_text(_FSDP2)
        subprocess.run(
            [sys.executable, "-c", f"import torch\n{_CORPUS}", folder],
            env=self.environment,
            check=True,
            cwd=folder,
        )

    def run(self, processes: int, model: str, flags: str, **variables: str) -> Outcome:
        """Trains `model` with COMMON and `flags`, where {folder} is that of the data. Counts the operator calls of process 0."""
        flags = flags.replace("{folder}", str(self.folder))
        words = f"{self.common} {MODELS[model]} {flags}".split()
        return self.train(processes, words, PROGRAMS.get(model, "pretrain_gpt.py"), **variables)

    def train(
        self, processes: int, flags: list[str], program: str = "pretrain_gpt.py", **variables: str
    ) -> Outcome:
        """Runs a program of MindSpeed-LLM with these flags. Its log must have a loss for each of three steps."""
        data = [
            "--data-path",
            self.folder / "text_document",
            "--tokenizer-name-or-path",
            self.folder / "tokenizer",
        ]
        launcher = [
            ROOT / "msadapter/distributed/_torchrun.py",
            "--standalone",
            "--nproc-per-node",
            processes,
        ]
        counter = [*recorder(), ROOT / "tests/npu/jobs/count_operators.py"]
        words = [
            sys.executable,
            *launcher,
            *counter,
            self.script.with_name(program),
            *flags,
            *data,
        ]
        run = subprocess.run(
            [str(word) for word in words],
            # FSDP refuses the one connection that Megatron's overlapping asks for.
            env=self.environment
            | ({"CUDA_DEVICE_MAX_CONNECTIONS": "2"} if any("fsdp" in word for word in flags) else {})
            | current_test()
            | variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        found = [float(x) for x in re.findall(r"(?:lm|mtp_\d) loss: (\S+)", run.stdout)]
        assert len(found) == (6 if "--mtp-num-layers" in flags else 3), run.stdout[-3000:]
        calls = re.search(r"^operators (\{.*\})$", run.stdout, re.MULTILINE)
        assert calls is not None, run.stdout[-3000:]
        return Outcome(found, json.loads(calls[1]))

    def without(self, processes: int, model: str, layout: str) -> Outcome:
        """A model without the flags that its row adds."""
        key = processes, model, layout
        if key not in self.plain:
            self.plain[key] = self.run(*key)
        return self.plain[key]

    def start(self, model: str, layout: str, processes: int = 1) -> str:
        """Flags that load a checkpoint of so many processes, which is created first.

        The format is torch: with the default of 26.1.0, torch_dist, a model whose first layers are dense cannot be saved.
        """
        place = self.folder / re.sub("[^a-z0-9]+", "-", f"start {model} {processes} {layout}")
        if not place.exists():
            self.run(processes, model, f"{layout} --ckpt-format torch --save {place}")
        return f"{layout} --ckpt-format torch --load {place} --finetune"

    def registered(self) -> set[str]:
        """The flags that the features of MindSpeed-LLM register with their own parsers."""
        code = (
            "import torch, argparse, sys, json\nsys.argv = ['']\n"
            "from mindspeed_llm.features_manager import create_features_list\nfound = set()\n"
            "for feature in create_features_list():\n"
            "    parser = argparse.ArgumentParser(add_help=False, conflict_handler='resolve')\n"
            "    feature.register_args(parser)\n"
            "    found.update(name for action in parser._actions for name in action.option_strings)\n"
            "print('flags', json.dumps(sorted(found)))\n"
        )
        words = [sys.executable, "-c", code]
        run = subprocess.run(
            words,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return set(json.loads(run.stdout.split("flags ", 1)[1]))
