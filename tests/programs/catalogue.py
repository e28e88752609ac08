"""The programs: where each comes from, how it is started on tiny data, and which of its lines hold numbers to compare."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import data

DRIVERS = Path(__file__).with_name("drivers")


@dataclass(frozen=True)
class Program:
    """A program, run as ``python SCRIPT ARGUMENTS`` in a copy of its source.

    name: its row in the table
    source: the folder below --sources; "" for a driver of ours, which calls an installed package
    script: the script's path in the source; its folder is the working folder. "-m module" starts a module
    arguments: of the command line
    prepare: writes tiny data, given the working folder
    lines: a regular expression; numbers are compared on the lines in which it is found
    without: a regular expression of what is removed from these lines, such as times
    tolerance: the largest allowed relative difference of a number
    before: scripts that run first, for example to make the data
    from_top: the working folder is the source's own, because the script imports what is there
    ranks: started by torchrun with so many processes
    packages: what must be importable beside torch
    models: each line that it prints is another model ("name: numbers"), which gets a row and is judged by itself
    remark: what its row says besides its error, if it fails here
    """

    name: str
    source: str
    script: str
    arguments: tuple[str, ...] = ()
    prepare: Callable[[Path], None] | None = None
    lines: str = r"(?i)loss|acc|ppl|error"
    without: str = r"\d+\.?\d*(e-?\d+)?\s*(ms|s)\b|time:?\s*\d+\.\d+|ms/batch\s+\d+\.\d+"
    tolerance: float = 1e-4
    before: tuple[str, ...] = ()
    from_top: bool = False
    ranks: int = 0
    packages: tuple[str, ...] = field(default=())
    models: bool = False
    remark: str = ""


def _mnist_above(folder: Path) -> None:
    data.mnist(folder.parent / "data")


def _mnist_and_results(folder: Path) -> None:
    _mnist_above(folder)
    (folder / "results").mkdir(exist_ok=True)


def _mnist_inside(folder: Path) -> None:
    data.mnist(folder / "data")


def _corpus(folder: Path) -> None:
    data.corpus(folder / "data" / "wikitext-2")


def _cora(folder: Path) -> None:
    data.cora(folder / "cora")


def _cora_download(folder: Path) -> None:
    """The program downloads an archive with `requests`; a module of this name in its folder hands it the tiny one."""
    data.cora(folder / "made" / "cora")
    with tarfile.open(folder / "cora.tgz", "w:gz") as archive:
        archive.add(folder / "made" / "cora", "cora")
    (folder / "requests.py").write_text(
        "import contextlib, types\n\n\n@contextlib.contextmanager\ndef get(url, stream=False):\n"
        "    with open('cora.tgz', 'rb') as raw:\n        yield types.SimpleNamespace(raw=raw)\n"
    )


def _restoration(folder: Path) -> None:
    data.pictures(folder / "dataset" / "BSDS300" / "images", {"train": 12, "test": 6}, 300)


def _classes(folder: Path) -> None:
    for part, count in (("train", 8), ("val", 4)):
        data.pictures(folder / "sample" / part, {"cats": count, "dogs": count}, 80)


def _characters(folder: Path) -> None:
    data.tokens(folder / "data" / "shakespeare_char")


def _shard(folder: Path) -> None:
    """The program asks tiktoken for GPT-2's tokenizer, which is downloaded; it uses it only to write text."""
    data.token_shard(folder / "dev" / "data" / "tinyshakespeare" / "tiny_shakespeare_val.bin")
    (folder / "tiktoken.py").write_text("def get_encoding(name):\n    return None\n")


def _mnist_of_gans(folder: Path) -> None:
    data.mnist(folder / "data" / "mnist", train=320)


def _few_batches(folder: Path) -> None:
    """The program trains for 100,000 batches. The eighth is the last here."""
    script = folder / "train_copy.py"
    text = script.read_text()
    if "int(1e5)" not in text:
        raise ValueError("train_copy.py no longer says how many batches there are as int(1e5)")
    script.write_text(text.replace("int(1e5)", "8"))


def _example(name: str, script: str = "main.py", *arguments: str, **options) -> Program:
    folder = name.partition(" ")[0]
    return Program(f"examples/{name}", "examples", f"{folder}/{script}", arguments, **options)


_VISION = ("torchvision", "PIL")
_WORDS = ("--epochs", "1", "--emsize", "32", "--nhid", "32", "--batch_size", "10", "--log-interval", "2")
_SMALL_GPT = (
    "data_config.path=data/input.txt",
    "data_config.truncate=0.002",
    "data_config.block_size=32",
    "gpt_config.n_layer=2",
    "gpt_config.n_head=2",
    "gpt_config.n_embd=32",
    "trainer_config.max_epochs=1",
    "trainer_config.batch_size=64",
    "trainer_config.data_loader_workers=0",
)
EXAMPLES = (
    _example("mnist", "main.py", "--epochs", "2", "--no-accel", prepare=_mnist_above, packages=_VISION),
    _example("mnist_rnn", "main.py", "--epochs", "1", prepare=_mnist_above, packages=_VISION),
    _example(
        "mnist_hogwild",
        "main.py",
        "--epochs",
        "1",
        "--num-processes",
        "1",
        prepare=_mnist_above,
        packages=_VISION,
        lines="Train Epoch|Test set",
        without=r"^\d+",
    ),
    _example(
        "mnist_forward_forward",
        "main.py",
        "--epochs",
        "20",
        "--no_accel",
        "--train_size",
        "500",
        "--test_size",
        "200",
        prepare=_mnist_inside,
        packages=_VISION,
    ),
    _example(
        "vae",
        "main.py",
        "--epochs",
        "2",
        "--no-accel",
        prepare=_mnist_and_results,
        packages=_VISION,
    ),
    _example(
        "siamese_network",
        "main.py",
        "--epochs",
        "1",
        "--no-accel",
        "--dry-run",
        prepare=_mnist_above,
        packages=_VISION,
        remark="The program calls numpy.array(copy=None), which needs NumPy 2; MindSpore 2.10 needs 1.26.",
    ),
    _example(
        "dcgan",
        "main.py",
        "--dataset",
        "fake",
        "--dry-run",
        "--manualSeed",
        "3",
        "--workers",
        "0",
        "--imageSize",
        "64",
        "--ngf",
        "16",
        "--ndf",
        "16",
        lines="Loss_D",
        packages=_VISION,
    ),
    _example(
        "imagenet resnet18",
        "main.py",
        "sample",
        "--epochs",
        "1",
        "--lr",
        "0.001",
        "-b",
        "4",
        "-j",
        "0",
        "--seed",
        "1",
        "-p",
        "1",
        "--no-accel",
        prepare=_classes,
        lines="Loss",
        without=r"(Time|Data)\s+[\d.]+ \(\s*[\d.]+\)|Acc@.*",  # one picture of eight changes it by an eighth
        packages=_VISION,
    ),
    _example(
        "super_resolution",
        "main.py",
        "--upscale_factor",
        "3",
        "--batchSize",
        "4",
        "--testBatchSize",
        "2",
        "--nEpochs",
        "1",
        "--threads",
        "0",
        prepare=_restoration,
        lines="Loss|PSNR",
        packages=(*_VISION, "six"),
    ),
    *(
        _example(f"word_language_model {kind}", "main.py", "--model", kind, *_WORDS, *rate, prepare=_corpus)
        for kind, rate in (
            ("LSTM", ()),
            ("GRU", ()),
            ("RNN_TANH", ("--lr", "1")),  # with the default of 20 the last bits decide
            ("Transformer", ()),
        )
    ),
    _example(
        "time_sequence_prediction",
        "train.py",
        "--steps",
        "2",
        before=("generate_sine_wave.py",),
        packages=("matplotlib",),
    ),
    _example(
        "gcn", "main.py", "--epochs", "40", "--no-accel", prepare=_cora_download, without=r"\([\d.]+s\)"
    ),
    _example(
        "gat",
        "main.py",
        "--epochs",
        "20",
        "--no-accel",
        prepare=_cora,
        without=r"\([\d.]+s\)",
        packages=("requests",),
    ),
    *(
        _example(f"fx {name}", f"{name}.py", lines=".", without="0x[0-9a-f]+")
        for name in (
            "invert",
            "module_tracer",
            "primitive_library",
            "replace_op",
            "subgraph_rewriter_basic_use",
            "wrap_output_dynamically",
        )
    ),
    *(
        Program(
            f"examples/distributed/{name}",
            "examples",
            str(DRIVERS / "on_cpu.py"),
            (f"distributed/{script}", *arguments),
            lines="step: ",
            without="^.*(?=step: )",  # what another rank has written without an end of the line
            before=(str(DRIVERS / "first_checkpoint.py"),) if name.startswith("FSDP2") else (),
            ranks=ranks,
            packages=("hydra", "boto3") if name == "minGPT-ddp" else (),
        )
        for name, ranks, script, *arguments in (
            ("ddp", 2, "ddp/example.py"),
            ("FSDP2", 2, "FSDP2/example.py"),
            ("FSDP2, other options", 2, "FSDP2/example.py", "--explicit-prefetching", "--dcp-api"),
            ("tensor_parallelism", 2, "tensor_parallelism/tensor_parallel_example.py"),
            ("sequence_parallel", 2, "tensor_parallelism/sequence_parallel_example.py"),
            ("fsdp_tp", 4, "tensor_parallelism/fsdp_tp_example.py"),
            (
                "ddp-tutorial-series",
                2,
                "ddp-tutorial-series/multigpu_torchrun.py",
                "2",
                "1",
                "--batch_size=64",
            ),
            ("minGPT-ddp", 2, "minGPT-ddp/mingpt/main.py", *_SMALL_GPT),
        )
    ),
    _example("distributed/rpc/rnn", lines="Training epoch"),
    Program(
        "examples/regression",
        "examples",
        str(DRIVERS / "seeded.py"),
        ("regression/main.py",),
        lines="Loss|function",
    ),
    Program(
        "examples/distributed, in a pipeline",
        "examples",
        str(DRIVERS / "pipeline_schedules.py"),
        ranks=2,
        lines="step",
        without=r"1F1B|step \d",
    ),
)
_NANO = (
    "config/train_shakespeare_char.py",
    "--device=cpu",
    "--compile=False",
    "--eval_iters=2",
    "--log_interval=1",
    "--block_size=32",
    "--batch_size=6",
    "--n_layer=2",
    "--n_head=2",
    "--n_embd=32",
    "--max_iters=20",
    "--lr_decay_iters=20",
    "--eval_interval=10",
)
GPTS = (
    Program(
        "nanoGPT train.py",
        "nanoGPT",
        "train.py",
        (*_NANO, "--dropout=0.0"),
        _characters,
        without=r"time [\d.]+ms, mfu -?[\d.]+%",
    ),
    Program(
        "nanoGPT train.py, dropout",
        "nanoGPT",
        "train.py",
        (*_NANO, "--dropout=0.2"),
        _characters,
        without=r"time [\d.]+ms, mfu -?[\d.]+%",
    ),
    Program(
        "nanoGPT train.py, compiled",
        "nanoGPT",
        "train.py",
        (*_NANO[:2], "--compile=True", *_NANO[3:], "--dropout=0.0"),
        _characters,
        without=r"time [\d.]+ms, mfu -?[\d.]+%",
    ),
    Program(
        "minGPT adder",
        "minGPT",
        "projects/adder/adder.py",
        ("--trainer.max_iters=30", "--data.ndigit=1", "--trainer.device=cpu"),
        lines="train loss",
        without=r"iter_dt [\d.]+ms|number of parameters.*",
        from_top=True,
    ),
    Program(
        "llm.c train_gpt2.py",
        "llm.c",
        "train_gpt2.py",
        (
            "--model=d12",
            "--batch_size=1",
            "--sequence_length=16",
            "--total_batch_size=16",
            "--num_iterations=3",
            "--write_tensors=0",
            "--device=cpu",
        ),
        _shard,
        lines="train loss",
        without=r"\(.*",
    ),
    Program(
        "nanochat",
        "nanochat",
        str(DRIVERS / "nanochat_training.py"),
        lines=".",
        packages=("filelock",),
    ),
    Program("modded-nanogpt's Muon", "modded-nanogpt", str(DRIVERS / "muon_optimizer.py"), lines="."),
    Program(
        "mamba-minimal",
        "mamba-minimal",
        str(DRIVERS / "mamba_minimal.py"),
        lines=".",
        packages=("einops", "transformers"),
    ),
    Program(
        "segment-anything image encoder",
        "segment-anything",
        str(DRIVERS / "image_segmenter.py"),
        lines=".",
        packages=_VISION,
    ),
)
_TITAN = ("tyro", "datasets", "tokenizers", "tensorboard")
TITAN = tuple(
    Program(
        f"torchtitan's debug model, {ranks} rank{'s' * (ranks > 1)}",
        "torchtitan",
        str(DRIVERS / "titan_training.py"),
        lines="step",
        ranks=ranks,
        packages=_TITAN,
    )
    for ranks in (1, 2)
)
MODELS = (
    Program(
        "pytorch-cifar",
        "pytorch-cifar",
        str(DRIVERS / "cifar_models.py"),
        lines=".",
        models=True,
    ),
    Program(
        "x-transformers train_copy.py",
        "x-transformers",
        str(DRIVERS / "seeded.py"),
        ("train_copy.py",),
        _few_batches,
        lines=r"^\d+: ",
        packages=("einx", "einops", "loguru", "torch_einops_utils"),
    ),
    Program(
        "whisper",
        "whisper",
        str(DRIVERS / "whisper_model.py"),
        lines=".",
        packages=("numba", "tiktoken", "more_itertools"),
    ),
)
_PLAY = {
    "ppo": ("--no-cuda", "--total-timesteps=1024", "--num-envs=2", "--num-steps=128"),
    "dqn": ("--no-cuda", "--total-timesteps=1200", "--learning-starts=200"),
    "c51": ("--no-cuda", "--total-timesteps=1200", "--learning-starts=200"),
}
GAMES = tuple(
    Program(
        f"cleanrl {name}.py",
        "cleanrl",
        str(DRIVERS / "scalars.py"),
        (f"cleanrl/{name}.py", *arguments),
        lines="losses/|charts/(?!SPS)",
        packages=("gymnasium", "tyro", "tensorboard"),
    )
    for name, arguments in _PLAY.items()
)
GANS = tuple(
    Program(
        f"PyTorch-GAN {name}.py",
        "PyTorch-GAN",
        str(DRIVERS / "seeded.py"),
        (
            "--torchvision",
            f"implementations/{name}/{name}.py",
            "--n_epochs=1",
            "--n_cpu=0",
            "--batch_size=32",
        ),
        _mnist_of_gans,
        lines="loss",
        packages=_VISION,
    )
    for name in ("gan", "wgan_gp", "acgan", "infogan", "aae")
)
OTHERS = (
    Program("DETR", "detr", str(DRIVERS / "detector.py"), lines=".", packages=_VISION),
    Program(
        "denoising-diffusion-pytorch",
        "denoising-diffusion-pytorch",
        str(DRIVERS / "diffusion_from_noise.py"),
        lines=".",
        packages=(*_VISION, "einops", "ema_pytorch", "accelerate", "pytorch_fid"),
    ),
)
_LIBRARIES = {
    "torchvision classification": ("torchvision_models", _VISION),
    "torchvision detection": ("torchvision_detection", _VISION),
    "timm": ("timm_models", ("timm",)),
    "vit-pytorch": ("vit", ("vit_pytorch", "einops")),
    "diffusers": ("diffusion", ("diffusers",)),
    "torchmetrics": ("metrics", ("torchmetrics",)),
    "Lightning": ("lightning_trainer", ("lightning",)),
    "sentence-transformers": ("sentences", ("sentence_transformers", "sklearn")),
    "torch_geometric": ("graphs", ("torch_geometric",)),
    "trl": ("trainers", ("trl", "datasets", "accelerate", "transformers")),
    "accelerate": ("accelerated", ("accelerate",)),
    "peft": ("adapters", ("peft",)),
    "gpytorch": ("gaussian_processes", ("gpytorch",)),
    "pyro": ("probabilistic", ("pyro", "pyroapi", "opt_einsum")),
    "normflows": ("flows", ("normflows",)),
    "kornia": ("vision_operators", ("kornia", "kornia_rs")),
}
_OF_MODELS = ("torchvision classification", "timm", "trl")  # their differences are of very different sizes
_OWN_LINES = {"trl": r"^(sft|dpo|reward|grpo)[^:]*: "}  # the trainers print lines too, with times
LIBRARIES = tuple(
    Program(
        name,
        "",
        str(DRIVERS / f"{driver}.py"),
        lines=_OWN_LINES.get(name, "."),
        packages=packages,
        models=name in _OF_MODELS,
    )
    for name, (driver, packages) in _LIBRARIES.items()
)
PROGRAMS = (*EXAMPLES, *GPTS, *MODELS, *TITAN, *GAMES, *GANS, *OTHERS, *LIBRARIES)
