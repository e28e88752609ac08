"""Models and programs of Megatron-LM core_v0.19.0, unmodified: what trains as on one process, and what is refused by name."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools
from tests.megatron import newest
from tests.megatron.newest import CASES, GENERATED, REFUSALS, Case, Generation

STEPS = ["--train-iters", "4", "--lr-warmup-iters", "1", "--lr-decay-iters", "4"]
WORDS = "--vocab-size 4096"  # its tokenizer counts the end of documents among the given words

# Sentences of random words in Megatron's format, and a vocabulary in the folder that BERT's tokenizer is looked for in.
_SENTENCES = """
import json, os, sys
import numpy
import torch
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
folder = sys.argv[1]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(200))]
for place in (folder, "bert-large-uncased", "bert-large-cased"):
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/vocab.txt", "w") as file:
        file.write("\\n".join(words) + "\\n")
    with open(f"{place}/config.json", "w") as file:
        json.dump({"model_type": "bert", "vocab_size": len(words)}, file)
    with open(f"{place}/tokenizer_config.json", "w") as file:
        json.dump({"tokenizer_class": "BertTokenizer", "do_lower_case": True}, file)
random = numpy.random.RandomState(5)
builder = IndexedDatasetBuilder(f"{folder}/text.bin", dtype=numpy.int32)
for _ in range(60):
    lengths = [int(random.randint(5, 30)) for _ in range(random.randint(2, 8))]
    builder.add_document(torch.from_numpy(random.randint(5, len(words), sum(lengths)).astype(numpy.int32)), lengths)
builder.finalize(f"{folder}/text.idx")
"""


@pytest.fixture(scope="module")
def tree(newest_megatron: Path, tmp_path_factory) -> Path:
    """A copy of the checkout with the rules of patches."""
    return tools.ruled_copy(newest_megatron, tmp_path_factory.mktemp("newest"), tools.plain_copy)


@pytest.fixture(scope="module")
def sentences(tree: Path, python_3_12: Path, tmp_path_factory) -> Path:
    """A folder with text.bin, text.idx and vocab.txt. The tree gets the folders that its BERT tokenizers look for by name."""
    folder = tmp_path_factory.mktemp("sentences")
    script = folder / "sentences.py"
    script.write_text(_SENTENCES)
    subprocess.run(
        [str(python_3_12), "-m", "msadapter", str(script), str(folder)],
        env=tools.environment(tree, python=python_3_12, MSADAPTER_TRITON="1"),
        cwd=tree,
        check=True,
    )
    return folder


def _train(case: Case, tree: Path, python: Path, cache: Path, words: str, processes: int, **variables: str):
    more = "" if case.data else WORDS
    return tools.pretrain(
        tree,
        f"{words} {more}".split(),
        cache,
        processes,
        STEPS,
        python,
        case.script,
        case.common,
        MSADAPTER_TRITON="1",
        MSADAPTER_TRANSFORMER_ENGINE=str(int(case.engine)),
        HF_HUB_OFFLINE="1",
        **variables,
    )


def _whole_and_layout(case: Case, run, folder: Path):
    """The iterations of one process, and those of the layout, which starts as case.start says."""
    save = f"--save {folder} --save-interval 2 --ckpt-format torch_dist"
    load = f"--load {folder} --ckpt-format torch_dist"
    if case.start == "weights":
        run(f"{save} --exit-interval 2", 1)
        load += " --finetune --no-load-optim --no-load-rng"
        return run(load, 1), run(f"{load} {case.layout}", case.processes)
    if case.start == "anew":
        return run("", 1), run(case.layout, case.processes, CUDA_DEVICE_MAX_CONNECTIONS=case.connections)
    whole = run(save, 1)
    (folder / "latest_checkpointed_iteration.txt").write_text("2")
    return whole, run(f"{load} {case.layout}", case.processes)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_trains_as_one_process(
    name: str, tree: Path, python_3_12: Path, tmp_path: Path, request, record_property
) -> None:
    pytest.importorskip("mpi4py")
    record_property("release", newest.RELEASE)
    record_property("row", name)
    case = CASES[name]
    data = str(request.getfixturevalue("sentences")) if case.data else ""

    def run(words: str, processes: int, **variables: str):
        words = f"{case.model} {words}".replace("{data}", data)
        return _train(case, tree, python_3_12, tmp_path, words, processes, **variables)

    whole, shared = _whole_and_layout(case, run, tmp_path / "checkpoints")
    assert [i.number for i in whole] == [1, 2, 3, 4]
    expected = [i.lm_loss for i in whole]
    if case.start == "goes on":  # the second loss after a start is printed as the mean of the first two
        assert [i.number for i in shared] == [3, 4]
        expected = [expected[2], (expected[2] + expected[3]) / 2]
    assert [i.lm_loss for i in shared] == pytest.approx(expected, rel=1e-5)
    assert [i.grad_norm for i in shared] == pytest.approx(
        [i.grad_norm for i in whole[-len(shared) :]], rel=1e-5, abs=tools.PRINTED * 1.001
    )
    assert (
        case.start == "weights" or whole[-1].lm_loss < whole[0].lm_loss
    )  # from trained weights it may rise first
    pairs = zip(shared, expected, strict=True)
    record_property("largest_difference", max(abs(i.lm_loss / e - 1) for i, e in pairs))


def _generated(
    one: Generation, tree: Path, python: Path, weights: Path, sentences: Path, folder: Path
) -> list[dict]:
    """What a program writes about each prompt."""
    folder.mkdir()
    words = f"--load {weights} --ckpt-format torch_dist {one.layout} {one.words}".split()
    # The engines ask a tokenizer for more than Megatron's NullTokenizer has. The padded size is that of the weights.
    words += ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", str(sentences)]
    tensor = 2 if newest.TENSOR in one.layout else 1
    words += [
        "--make-vocab-size-divisible-by",
        str(4096 // tensor),
        "--tokenizer-hf-no-include-special-tokens",
    ]
    words += ["--prompts", "word1 word2 word3", "word40 word50 word60 word70"]
    words += ["--num-tokens-to-generate", "6", "--return-log-probs"]
    words += ["--incoming-requests-per-step", "8"]  # other ways to time requests need simpy
    words += ["--inference-max-seq-length", "64", "--output-path", f"{folder}/out"]
    script = f"examples/inference/advanced/{one.program}"
    common = tools.without(tools.COMMON, "--vocab-size", "--mock-data")
    done = subprocess.run(
        tools.command(folder, words, one.processes, STEPS, python, script, common),
        cwd=tree,
        env=tools.environment(tree, one.processes, python, MSADAPTER_TRITON="1", **dict(one.variables)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    written = json.loads((folder / "out").read_text()).values()
    return [entry for entry in written if isinstance(entry, dict) and "generated_tokens" in entry]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(GENERATED))
def test_generates_as_one_process(
    name: str,
    tree: Path,
    python_3_12: Path,
    reference: Path,
    sentences: Path,
    tmp_path: Path,
    record_property,
) -> None:
    pytest.importorskip("mpi4py")
    record_property("release", newest.RELEASE)
    record_property("row", name)
    given = tree, python_3_12, reference / "init_gpt_dist", sentences
    alone = _generated(Generation(1), *given, tmp_path / "alone")
    other = _generated(GENERATED[name], *given, tmp_path / "other")
    assert len(alone) == 2 and all(len(entry["generated_tokens"]) == 6 for entry in alone)
    assert [entry["generated_tokens"] for entry in other] == [entry["generated_tokens"] for entry in alone]
    pairs = [
        pair
        for mine, first in zip(other, alone, strict=True)
        for pair in zip(mine["logprobs"], first["logprobs"], strict=True)
    ]
    difference = max(abs(mine - first) for mine, first in pairs)
    record_property("largest_difference", difference)
    assert difference < 1e-5


def _absent(packages: str, tree: Path, python: Path) -> str:
    """Those of the packages that an environment does not have."""
    ask = "import sys; from importlib.util import find_spec; print(*(n for n in sys.argv[1:] if find_spec(n) is None))"
    return subprocess.run(
        [str(python), "-c", ask, *packages.split()],
        env=tools.environment(tree, python=python),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(REFUSALS))
def test_is_refused_by_name(
    name: str, tree: Path, python_3_12: Path, reference: Path, tmp_path: Path, request
) -> None:
    case = REFUSALS[name]
    if absent := _absent(case.packages, tree, python_3_12):
        pytest.skip(f"needs {absent} in the environment of {python_3_12}")
    data = str(request.getfixturevalue("sentences")) if "{data}" in case.words else ""
    words = case.words.replace("{data}", data).replace("{weights}", str(reference / "init_gpt_dist"))
    processes = 2 if newest.PIPELINE in words else 1
    common = tools.without(tools.COMMON, *case.dropped.split())
    more = [] if data else WORDS.split()
    layers = ["--transformer-impl", "transformer_engine"] if case.engine else []
    done = subprocess.run(
        tools.command(
            tmp_path,
            [*words.split(), *more, *layers],
            processes,
            STEPS,
            python_3_12,
            case.script,
            common,
        ),
        cwd=tree,
        env=tools.environment(
            tree,
            processes,
            python_3_12,
            MSADAPTER_TRITON="1",
            MSADAPTER_TRANSFORMER_ENGINE=str(int(case.engine)),
            HF_HUB_OFFLINE="1",
        ),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert case.message in done.stdout + done.stderr, (done.stdout + done.stderr)[-4000:]


def test_the_page_is_that_of_the_cases() -> None:
    """docs/megatron_newest.md is written by python -m tests.megatron.newest."""
    assert newest.PAGE.read_text(encoding="utf-8") == newest.page()
