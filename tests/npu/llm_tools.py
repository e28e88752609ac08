"""A folder in which MindSpeed-LLM's own tools run: a small Qwen2.5, its converted weights, and instructions as data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.npu.llm_rows import TENSOR
from tests.npu.llm_trainer import ROOT, Trainer, current_test, recorder

_MODEL = """
import json, sys, torch
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import Qwen2Config, Qwen2ForCausalLM
folder = Path(sys.argv[1])
special = {"unk_token": "<unk>", "eos_token": "<|im_end|>", "pad_token": "<pad>"}
words = {"<unk>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "<pad>": 255} | {f"w{i}": i + 3 for i in range(252)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<pad>"])
tokenizer.save(str(folder / "tokenizer.json"))
(folder / "tokenizer_config.json").write_text(
    json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096, **special}))
torch.manual_seed(0)
config = Qwen2Config(vocab_size=256, hidden_size=64, intermediate_size=176, num_hidden_layers=int(sys.argv[2]),
                     num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=64, rope_theta=1e6, rms_norm_eps=1e-6,
                     tie_word_embeddings=False, pad_token_id=255, eos_token_id=2)
Qwen2ForCausalLM(config).save_pretrained(folder)
"""
_WEIGHTS = """
import sys, torch
from pathlib import Path
from safetensors.torch import load_file
def weights(folder):
    return {name: tensor for file in Path(folder).glob("*.safetensors") for name, tensor in load_file(file).items()}
one, other = map(weights, sys.argv[1:])
assert one.keys() == other.keys(), one.keys() ^ other.keys()
changed = [name for name in one if not torch.equal(one[name], other[name])]
print("changed", " ".join(sorted(changed)))
"""
_LAYERS = r"""
import json, re, sys, torch
from pathlib import Path
found = []
for file in sorted(Path(sys.argv[1]).glob("iter_*/mp_rank_*/model_optim_rng.pt")):
    state = torch.load(file, map_location="cpu", weights_only=False)
    parts = [state[key] for key in sorted(state) if re.fullmatch(r"model\d*", key)]
    found.append([len(set(re.findall(r"layers\.(\d+)\.", " ".join(part)))) for part in parts])
print("layers", json.dumps(found))
"""
GEOMETRY = """--num-layers 2 --hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 4
    --ffn-hidden-size 176 --add-qkv-bias --norm-epsilon 1e-6 --rotary-base 1000000"""
# What the first converter, that of release 2.3.0, has to be told about the model.
_WEIGHTS_ARE = "--use-mcore-models --model-type GPT --model-type-hf llama2 --add-qkv-bias --params-dtype fp32"
TARGETS = "linear_qkv linear_proj linear_fc1 linear_fc2"


class Tools:
    """Runs the scripts of a MindSpeed-LLM checkout in one folder.

    Weights are converted by convert_ckpt.py of release 2.3.0, and by convert_ckpt_v2.py of later ones, whose convert_ckpt.py
    refuses the transformers that their own requirements name.
    """

    def __init__(self, runs: Trainer, folder: Path, layers: int = 2):
        self.environment, self.llm, self.folder = runs.environment, runs.script.parent, folder
        self.common, self.newer = runs.common, runs.release >= "26"
        (folder / "hf").mkdir()
        self.python("-c", f"import torch\n{_MODEL}", folder / "hf", layers)

    def python(self, *words: object) -> str:
        """Runs Python with these arguments in the folder. Returns what it prints; if it fails, so does the test."""
        run = self.run([sys.executable, *words])
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        return run.stdout

    def run(self, words: list[object]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words], cwd=self.folder, env=self.environment | current_test(),
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def torchrun(self, processes: int, *words: object) -> subprocess.CompletedProcess[str]:
        """Runs a script with its arguments on so many processes."""
        launcher = ROOT / "msadapter/distributed/_torchrun.py"
        return self.run([sys.executable, launcher, "--standalone", "--nproc-per-node", processes, *words])

    def convert(self, words: str) -> None:
        if self.newer:
            program, words = "convert_ckpt_v2.py", f"--model-type-hf qwen25 {words}"
        else:
            program, words = "convert_ckpt.py", f"{_WEIGHTS_ARE} {words}"
        self.python(*recorder(), self.llm / program, *words.split())

    def start(self, tensor: int, pipeline: int = 1, stages: str = "") -> Path:
        """The model's weights as a checkpoint of Megatron for this tensor and pipeline parallelism.

        stages: an argument that says which layers the stages of the pipeline have.
        """
        place = self.folder / f"start{tensor}x{pipeline}{stages.replace(' ', '')}"
        if not place.exists():
            tokenizer = "" if self.newer else "--tokenizer-model hf/tokenizer.json"
            self.convert(
                f"--load-model-type hf --save-model-type mg --target-tensor-parallel-size {tensor} "
                f"--target-pipeline-parallel-size {pipeline} --load-dir hf --save-dir {place} {tokenizer} {stages}"
            )
        return place

    def to_hugging_face(self, words: str) -> Path:
        """The folder of the weights that the converter writes with these arguments."""
        place = self.folder / f"back{len(list(self.folder.glob('back*')))}"
        if self.newer:
            self.convert(
                f"--load-model-type mg --save-model-type hf --save-dir {place} --hf-cfg-dir hf {words}"
            )
            return place
        place.mkdir()
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
            (place / file).symlink_to(self.folder / "hf" / file)
        self.convert(
            f"--load-model-type mg --save-model-type hf --target-tensor-parallel-size 1 "
            f"--target-pipeline-parallel-size 1 --save-dir {place} {words}"
        )
        return place / "mg2hf"

    def layers(self, start: Path) -> list[list[int]]:
        """For each file of a checkpoint of Megatron, in the order of the ranks, the numbers of layers in its parts."""
        out = self.python("-c", f"import torch\n{_LAYERS}", start)
        return json.loads(re.findall(r"^layers (.*)$", out, re.MULTILINE)[0])

    def changed(self, place: Path) -> list[str]:
        """The names of the weights that differ in any bit from the initial ones."""
        return re.findall(r"^changed(.*)$", self.python("-c", _WEIGHTS, "hf", place), re.MULTILINE)[0].split()

    def instructions(self, name: str, words: str = "") -> str:
        """The prefix of a data set of instructions that preprocess_data.py writes with these arguments."""
        if not (self.folder / "alpaca.json").exists():
            examples = [
                {
                    "instruction": " ".join(f"w{(i + j) % 250}" for j in range(5)),
                    "input": "",
                    "output": " ".join(f"w{(2 * i + 3 * j) % 250}" for j in range(8)),
                }
                for i in range(64)
            ]
            (self.folder / "alpaca.json").write_text(json.dumps(examples))
        if not list(self.folder.glob(f"{name}_*.bin")):
            self.python(self.llm / "preprocess_data.py", "--input", "./alpaca.json", "--tokenizer-name-or-path", "hf",
                        "--output-prefix", f"./{name}", "--handler-name", "AlpacaStyleInstructionHandler", "--tokenizer-type",
                        "PretrainedFromHF", "--workers", "1", "--prompt-type", "qwen", *words.split())  # fmt: skip
        return name

    def tune(self, processes: int, flags: str) -> list[float]:
        """The losses of three steps of supervised fine-tuning."""
        layout = TENSOR if processes == 2 else ""
        words = f"""{self.common} {GEOMETRY} {layout} --load {self.start(processes)} --finetune --stage sft
            --is-instruction-dataset --prompt-type qwen --tokenizer-not-use-fast --tokenizer-name-or-path hf {flags}"""
        run = self.torchrun(processes, *recorder(), self.llm / "posttrain_gpt.py", *words.split())
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        found = [float(x) for x in re.findall(r"lm loss: (\S+)", run.stdout)]
        assert len(found) == 3, run.stdout[-3000:]
        return found
