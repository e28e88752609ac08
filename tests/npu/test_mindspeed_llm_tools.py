"""MindSpeed-LLM's own tools, unmodified: weights of Hugging Face there and back, instruction data, tuning, LoRA.

Needs what test_mindspeed_llm.py needs; transformers must be the release that MindSpeed-LLM names (2.3.0: 4.57, 26.1.0: 5.2),
before any other on PYTHONPATH: `auto_convert.sh llm` brings it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patches import MANIFEST
from tests.npu.llm_rows import FUSED, OVERLAP, TENSOR
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
config = Qwen2Config(vocab_size=256, hidden_size=64, intermediate_size=176, num_hidden_layers=2, num_attention_heads=8,
                     num_key_value_heads=4, max_position_embeddings=64, rope_theta=1e6, rms_norm_eps=1e-6,
                     tie_word_embeddings=False, pad_token_id=255, eos_token_id=2)
Qwen2ForCausalLM(config).save_pretrained(folder)
"""
_WEIGHTS = """
import sys, torch
from safetensors.torch import load_file
one, other = (load_file(path + "/model.safetensors") for path in sys.argv[1:])
assert one.keys() == other.keys(), one.keys() ^ other.keys()
changed = [name for name in one if not torch.equal(one[name], other[name])]
print("changed", " ".join(sorted(changed)))
"""
_GEOMETRY = """--num-layers 2 --hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 4
    --ffn-hidden-size 176 --add-qkv-bias --norm-epsilon 1e-6 --rotary-base 1000000"""
_WEIGHTS_ARE = "--use-mcore-models --model-type GPT --model-type-hf llama2 --add-qkv-bias --params-dtype fp32"
TARGETS = "linear_qkv linear_proj linear_fc1 linear_fc2"


_GREEDY = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model, tokenizer = AutoModelForCausalLM.from_pretrained("hf"), AutoTokenizer.from_pretrained("hf")
given = tokenizer(sys.argv[1], return_tensors="pt").input_ids
found = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=8, do_sample=False)
print("greedy", tokenizer.decode(found[0, given.shape[1]:]))
"""


class Tools:
    """Runs the scripts of a MindSpeed-LLM checkout in one folder."""

    def __init__(self, runs: Trainer, folder: Path):
        self.environment, self.llm, self.folder = runs.environment, runs.script.parent, folder
        self.common = runs.common
        (folder / "hf").mkdir()
        self.python("-c", f"import torch\n{_MODEL}", folder / "hf")
        for processes in (1, 2):
            self.convert(
                f"--load-model-type hf --save-model-type mg --target-tensor-parallel-size {processes} "
                f"--target-pipeline-parallel-size 1 --load-dir hf --save-dir start{processes} "
                f"--tokenizer-model hf/tokenizer.json"
            )
        examples = [
            {
                "instruction": " ".join(f"w{(i + j) % 250}" for j in range(5)),
                "input": "",
                "output": " ".join(f"w{(2 * i + 3 * j) % 250}" for j in range(8)),
            }
            for i in range(64)
        ]
        (folder / "alpaca.json").write_text(json.dumps(examples))
        self.instructions("plain")
        self.instructions("packed", "--pack --neat-pack --seq-length 64")

    def python(self, *words: object) -> str:
        run = subprocess.run(
            [sys.executable, *map(str, words)], cwd=self.folder, env=self.environment | current_test(),
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        return run.stdout

    def convert(self, words: str) -> None:
        self.python(*recorder(), self.llm / "convert_ckpt.py", *f"{_WEIGHTS_ARE} {words}".split())

    def to_hugging_face(self, words: str) -> Path:
        """The folder of the weights that convert_ckpt.py writes with these arguments."""
        place = self.folder / f"back{len(list(self.folder.glob('back*')))}"
        place.mkdir()
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
            (place / file).symlink_to(self.folder / "hf" / file)
        self.convert(
            f"--load-model-type mg --save-model-type hf --target-tensor-parallel-size 1 "
            f"--target-pipeline-parallel-size 1 --save-dir {place} {words}"
        )
        return place / "mg2hf"

    def changed(self, place: Path) -> list[str]:
        """The names of the weights that differ in any bit from the initial ones."""
        return re.findall(r"^changed(.*)$", self.python("-c", _WEIGHTS, "hf", place), re.MULTILINE)[0].split()

    def instructions(self, name: str, words: str = "") -> None:
        self.python(self.llm / "preprocess_data.py", "--input", "./alpaca.json", "--tokenizer-name-or-path", "hf",
                    "--output-prefix", f"./{name}", "--handler-name", "AlpacaStyleInstructionHandler", "--tokenizer-type",
                    "PretrainedFromHF", "--workers", "1", "--prompt-type", "qwen", *words.split())  # fmt: skip

    def tune(self, processes: int, flags: str) -> list[float]:
        """The losses of three steps of supervised fine-tuning."""
        layout = TENSOR if processes == 2 else ""
        words = f"""{self.common} {_GEOMETRY} {layout} --load start{processes} --finetune --stage sft --is-instruction-dataset
            --prompt-type qwen --tokenizer-not-use-fast --tokenizer-name-or-path hf {flags}"""
        out = self.python(ROOT / "msadapter/distributed/_torchrun.py", "--standalone", "--nproc-per-node", processes,
                          *recorder(), self.llm / "posttrain_gpt.py", *words.split())  # fmt: skip
        found = [float(x) for x in re.findall(r"lm loss: (\S+)", out)]
        assert len(found) == 3, out[-3000:]
        return found


@pytest.fixture(scope="module")
def tools(trainer, tmp_path_factory) -> Tools:
    ask = "import importlib.metadata as m; print(m.version('transformers'), m.version('peft'))"
    found = subprocess.run(
        [sys.executable, "-c", ask], env=trainer.environment, capture_output=True, text=True
    ).stdout
    wanted = "4.57" if trainer.release < "26" else "5.2"
    if not found.startswith(wanted):
        pytest.skip(
            f"MindSpeed-LLM's tools want transformers {wanted} and peft on PYTHONPATH, found {found or 'none'}"
        )
    return Tools(trainer, tmp_path_factory.mktemp("tools"))


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_weights_go_there_and_back_bit_for_bit(tools, processes) -> None:
    assert len(list((tools.folder / f"start{processes}").glob("iter_*/mp_rank_*"))) == processes
    assert tools.changed(tools.to_hugging_face(f"--load-dir start{processes}")) == []


@pytest.mark.slow
def test_the_second_converter(trainer, tmp_path) -> None:
    """convert_ckpt_v2.py, with tensor, pipeline, virtual, uneven and expert parallelism, there and back bit for bit.

    It puts the rows of queries, keys and values group by group for every model, but on the way back that of release 26.1.0
    expects them so for Qwen2.5 alone. A rule mends that in a converted tree. In a plain checkout these three differ for the
    other models, and nothing else.
    """
    program = (
        "import torch, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    script = ROOT / "tests/npu/jobs/convert_v2.py"
    words = [sys.executable, "-c", program, script, trainer.script.with_name("convert_ckpt_v2.py"), tmp_path]
    run = subprocess.run(
        [str(word) for word in words], env=trainer.environment, capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(re.findall(r"^cases (.*)$", run.stdout, re.MULTILINE)[0])
    mixed = " ".join(
        f"model.layers.{layer}.self_attn.{part}_proj.weight" for layer in range(4) for part in "kqv"
    )
    assert len(found) == 11
    right = trainer.release < "26" or (trainer.script.parent / MANIFEST).is_file()
    expected = {case: "equal" if right or case.startswith("qwen25") else mixed for case in found}
    assert found == expected, run.stderr[-2000:]


@pytest.mark.slow
def test_instruction_tuning(tools) -> None:
    """Fused operators on two processes give the losses of plain ones on one, also for packed samples with masks of their own."""
    data = "--data-path plain --no-pad-to-seq-lengths --padded-samples"
    plain = tools.tune(1, data)
    assert tools.tune(2, f"{data} {FUSED}") == pytest.approx(plain, abs=1e-5)
    assert plain[-1] < plain[0]
    data = (
        f"--data-path packed --neat-pack --padded-samples --reset-attention-mask --micro-batch-size 1 {FUSED}"
    )
    one = tools.tune(1, data)
    assert tools.tune(2, data) == pytest.approx(one, abs=1e-5)
    assert one != pytest.approx(plain, abs=1e-3)


@pytest.mark.slow
def test_lora(tools) -> None:
    """Fused operators give the losses of plain ones. After merging, only the matrices to which LoRA adds have changed."""
    lora = f"--data-path plain --no-pad-to-seq-lengths --lora-r 8 --lora-alpha 16 --lora-target-modules {TARGETS}"
    plain = tools.tune(2, lora)
    assert tools.tune(2, f"{lora} --lora-fusion {FUSED} --save lora") == pytest.approx(plain, abs=1e-5)
    joined = tools.to_hugging_face(
        f"--load-dir start2 --lora-load lora --lora-r 8 --lora-alpha 16 --lora-target-modules {TARGETS}"
    )
    names = set(tools.changed(joined))
    matrices = (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    )
    assert names == {f"model.layers.{layer}.{matrix}.weight" for layer in range(2) for matrix in matrices}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_generation_is_that_of_hugging_face(tools, processes) -> None:
    """inference.py on the converted weights gives the text of transformers' generate on the original ones, for the same prompt."""
    words = f"""--use-mcore-models --tensor-model-parallel-size {processes} {_GEOMETRY} --untie-embeddings-and-output-weights
        --max-position-embeddings 64 --seq-length 64 --make-vocab-size-divisible-by 1 --padded-vocab-size 256 --swiglu
        --micro-batch-size 1 --disable-bias-linear --tokenizer-type PretrainedFromHF --tokenizer-name-or-path hf
        --tokenizer-not-use-fast --load start{processes} --exit-on-missing-checkpoint --normalization RMSNorm
        --position-embedding-type rope --hidden-dropout 0 --attention-dropout 0 --no-gradient-accumulation-fusion
        --attention-softmax-in-fp32 --max-new-tokens 8 --task greedy"""
    run = subprocess.run(
        [sys.executable, str(ROOT / "msadapter/distributed/_torchrun.py"), "--standalone", "--nproc-per-node",
         str(processes), str(tools.llm / "inference.py"), *words.split()],
        cwd=tools.folder, env=tools.environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    (said,) = re.findall(r"You:\n(.*)\n\nMindSpeed-LLM:\n(.*)", run.stdout + run.stderr)
    (expected,) = re.findall(r"^greedy (.*)$", tools.python("-c", _GREEDY, said[0]), re.MULTILINE)
    assert said[1].split() == expected.split() and len(expected.split()) == 8


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint(tools, trainer) -> None:  # noqa: F811
    """Three steps, and one step with two more from its checkpoint, have the same losses to the last printed digit.

    The dtype is bfloat16. In float32 upstream's distributed optimizer cannot load (rule parameters-are-loaded-in-place).
    """
    once = tools.common
    for flag in (
        "--no-load-optim",
        "--no-load-rng",
        "--no-save-optim",
        "--no-save-rng",
        "--save-interval 2000",
    ):
        once = once.replace(flag, "")

    def losses(flags: str) -> list[str]:
        words = f"""{once} {_GEOMETRY} {FUSED} {OVERLAP} --bf16 --data-path {trainer.folder / "text_document"}
            --tokenizer-name-or-path {trainer.folder / "tokenizer"} {flags}"""
        out = tools.python(ROOT / "msadapter/distributed/_torchrun.py", "--standalone", "--nproc-per-node", 2,
                           *recorder(), tools.llm / "pretrain_gpt.py", *words.split())  # fmt: skip
        return re.findall(r"lm loss: (\S+)", out)

    whole = losses("")
    first = losses("--save resumed --save-interval 1 --exit-interval 1")
    rest = losses("--load resumed")
    assert len(whole) == 3 and first + rest == whole
