"""Times every operator of the table against PyTorch: python -m benchmarks operators --torch-python PATH.

The works are generated from msadapter's declarations. An operator is called with the arguments of its line in
operator_arguments.py; one without a line gets a matrix for each tensor, if its schema asks for nothing else. The rest is
named on the page. As elsewhere, both sides take turns in one run (sides.py).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from . import operators_report as report
from .operator_arguments import FORM, follows_size, reason_left_out, table
from .sides import LIMITS, ROOT, Pair, environment, limit, processor_flags

PREFIX = "operator "

#: Modules of the operator table -> the family of the page.
FAMILIES = {
    "pointwise": "pointwise copying pointwise_binary complex quantizing",
    "comparisons and choices": "compare",
    "special functions": "special",
    "reductions": "reduction reduction_moment reduction_norm",
    "scans": "scan calculus",
    "sorting and counting": "sorting histograms hashing",
    "shape": "shape joining slicing view view_window private_forms",
    "indexing": "indexing",
    "creation and random": "creation random windows dropout nn_dropout",
    "products": "matmul internal",
    "linear algebra": "linalg linalg_misc linalg_spectral linalg_rank linalg_lobpcg",
    "FFT": "fft",
    "activation": "nn_activation nn_activation_smooth nn_softmax",
    "normalization": "nn_norm nn_normalize",
    "losses": "nn_loss nn_loss_classes nn_loss_pairs nn_loss_margins nn_ctc",
    "convolution": "nn_conv",
    "pooling and resizing": "nn_pool nn_unpool nn_antialias nn_resize",
    "recurrent": "nn_rnn",
    "attention, embedding, distance": "attention nn_misc nn_bags nn_distance nn_grouped nn_multihead optim_fused torch_forms",
}
_FAMILY = {module: family for family, modules in FAMILIES.items() for module in modules.split()}
_RECURRENT = ("lstm", "gru", "rnn")

#: The operators that are timed in other types than float32 too, forwards.
_SAMPLE = """add mul div exp log sqrt sin tanh sigmoid abs maximum where clamp eq sum mean var amax argmax cumsum softmax sort topk
cat gather index_select scatter_add masked_fill tril matmul bmm fft.fft linalg.solve linalg.cholesky nn.functional.linear
nn.functional.gelu nn.functional.silu nn.functional.layer_norm nn.functional.batch_norm nn.functional.cross_entropy
nn.functional.conv2d nn.functional.max_pool2d nn.functional.embedding nn.functional.scaled_dot_product_attention"""
SAMPLE = frozenset(_SAMPLE.split())
SAMPLE_DTYPES = ("bfloat16", "float16", "float64", "int64", "complex64")

#: Numbers of elements that are measured by default, and the one on which the targets are set.
SIZES = (16384, 131072, 1048576, 4194304)
MIDDLE = 1048576

#: Families of products, and operators of other families that consist of products.
_PRODUCTS = ("products", "convolution", "linear algebra")
_PRODUCT_CALLS = ("nn.functional.scaled_dot_product_attention",)
#: 16-bit type -> the processor's units (names of /proc/cpuinfo) without which PyTorch has no kernel for its products.
_UNITS = {
    "bfloat16": {"amx_bf16", "avx512_bf16", "bf16"},
    "float16": {"amx_fp16", "avx512_fp16", "fphp"},
}


def declared() -> list[dict]:
    """Name, module and required parameters of every operator of the table. A child process imports msadapter."""
    code = (
        "import json, msadapter\nfrom msadapter.ops import _declare\n"
        "print(json.dumps([{'name': d.schema.name, 'module': d.module.rpartition('.')[2], 'pointwise': d.facts.pointwise,"
        " 'gradient': bool(d.differentiable), 'required': [p.type for p in d.schema.parameters if p.required]}"
        " for d in _declare.declarations.values()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(True, 1), capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(
            f"python -m benchmarks operators: msadapter cannot be imported\n{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def default_arguments(operator: dict) -> str | None:
    """A matrix for each tensor; None if the schema asks for anything else."""
    required = operator["required"]
    if not required or not all(kind in ("Tensor", "TensorOrScalar") for kind in required):
        return None
    if len(required) > 1 and not operator["pointwise"]:
        return None
    return ", ".join(["r(s, s)"] * len(required))


def family_of(operator: dict) -> str:
    """The family of the page. SystemExit if FAMILIES has none for the operator's module."""
    if operator["name"].startswith(_RECURRENT):
        return "recurrent"
    if operator["module"] not in _FAMILY:
        raise SystemExit(
            f"benchmarks/operators.py: FAMILIES has no family for the module {operator['module']!r} of {operator['name']}"
        )
    return _FAMILY[operator["module"]]


def calls(operators: list[dict]) -> tuple[list[dict], list[str]]:
    """(the calls that are timed, the operators without arguments)."""
    lines, found, without = table(), [], []
    for operator in operators:
        name = operator["name"]
        own = {label: args for label, args in lines.items() if label.split(" ")[0] == name}
        if not own:
            if reason_left_out(name):
                continue
            if (arguments := default_arguments(operator)) is None:
                without.append(name)
                continue
            own = {name: arguments}
        about = {"call": name, "family": family_of(operator), "gradient": operator["gradient"]}
        found += [{**about, "label": label, "arguments": arguments} for label, arguments in own.items()]
    return found, sorted(without)


def not_timed(operators: list[dict], found: list[dict], without: list[str]) -> dict:
    """What the page says of operators that have no rows, or rows of one size: the keys left_out, without and fixed."""
    timed = {call["call"] for call in found}
    left_out: dict[str, list[str]] = {}
    for name in sorted(operator["name"] for operator in operators):
        reason = reason_left_out(name)
        if reason and name not in timed and reason != FORM:
            left_out.setdefault(reason, []).append(name)
    fixed = [call["label"] for call in found if not follows_size(call["arguments"])]
    return {"left_out": left_out, "without": without, "fixed": fixed}


def works(found: list[dict], sizes: list[int], names: list[str]) -> list[dict]:
    """The rows: every call forwards and, with a gradient, with its backward pass; the sample in other types at one size.

    A call whose arguments do not follow the number of elements has rows at the largest size alone.
    """
    rows = []
    for call in found:
        if names and not any(part in call["label"] or part in call["family"] for part in names):
            continue
        for size in sizes if follows_size(call["arguments"]) else sizes[-1:]:
            ways = [("float32", False)] + [("float32", True)] * call["gradient"]
            if call["label"] in SAMPLE and size == max(s for s in sizes if s <= max(MIDDLE, min(sizes))):
                ways += [(dtype, False) for dtype in SAMPLE_DTYPES]
            rows += [{**call, "size": size, "dtype": dtype, "backward": both} for dtype, both in ways]
    return rows


def key_of(row: dict) -> str:
    way = "forward and backward" if row["backward"] else "forward"
    return f"{row['label']} | {row['dtype']} | {row['size']} | {way}"


def work_of(row: dict) -> str:
    return PREFIX + json.dumps([row[k] for k in ("call", "arguments", "dtype", "size", "backward")])


def is_product(row: dict) -> bool:
    return row["family"] in _PRODUCTS or row["call"] in _PRODUCT_CALLS


def apart(row: dict, entry: dict, flags: set[str]) -> str:
    """Why a row counts in no mean: a reason, or nothing."""
    if "absent" in entry:
        return entry["absent"]
    if "theirs" in entry.get("failed", ()):
        return "PyTorch refuses it: " + entry["error"].splitlines()[0]
    units = _UNITS.get(row["dtype"])
    if units and is_product(row) and not units & flags:
        return f"the processor has no products of {row['dtype']}"
    return ""


def measured(rows: list[dict], pair: Pair, args: argparse.Namespace, results: dict) -> None:
    """Adds the rows that `results` lacks to it, and writes it after each, so that a stopped run goes on."""
    flags = processor_flags()
    for position, row in enumerate(rows, 1):
        key = key_of(row)
        if key in results:
            continue
        entry = pair.compare(work_of(row), args.rounds, args.slice)
        if reason := apart(row, entry, flags):
            entry["apart"] = reason
        if "ratio" in entry and row["size"] >= MIDDLE:
            entry |= pair.peaks(work_of(row))
        results[key] = {**row, **entry}
        told = f"{entry['ratio']:.2f}" if "ratio" in entry else entry.get("apart") or entry["error"]
        print(f"{position}/{len(rows)} {key}: {told.splitlines()[0][:120]}", flush=True)
        if args.json:
            save(args.json, results, {})


def save(path: Path, results: dict, about: dict) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    part.replace(path)


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks operators", description=__doc__.splitlines()[0]
    )
    parser.add_argument("names", nargs="*", help="parts of names of operators or families (default: all)")
    parser.add_argument(
        "--torch-python", default=os.environ.get("MSADAPTER_TORCH_PYTHON"), help="python with real PyTorch"
    )
    parser.add_argument(
        "--sizes",
        default=",".join(map(str, SIZES)),
        help="numbers of elements, with commas (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side per row")
    parser.add_argument("--slice", type=float, default=0.02, help="approximate seconds per turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--instructions", choices=sorted(LIMITS), help="let both sides use no wider vectors than these"
    )
    parser.add_argument("--json", type=Path, help="write all numbers here, after every row")
    parser.add_argument(
        "--resume", action="store_true", help="keep the rows that the --json file already has"
    )
    parser.add_argument("--table", type=Path, help="write the Markdown page here, and its picture beside it")
    parser.add_argument(
        "--list", action="store_true", help="list the rows and the operators without one, and exit"
    )
    args = parser.parse_args(argv)
    limit(args.instructions)
    if args.resume and not args.json:
        parser.error("--resume needs the file of an earlier run: --json FILE")
    if not args.torch_python and not args.list:
        parser.error(
            "give the path of a python with real PyTorch: --torch-python PATH (or MSADAPTER_TORCH_PYTHON)"
        )
    try:
        args.sizes = [int(size) for size in args.sizes.split(",")]
    except ValueError:
        parser.error(
            f"--sizes {args.sizes}: expected whole numbers with commas between them, such as 65536,1048576"
        )
    if min(args.sizes) < 4096:
        parser.error(f"--sizes {min(args.sizes)}: the smallest size is 4096 elements")
    return args


def command(args: argparse.Namespace) -> str:
    """The command that writes the page of a run with these arguments."""
    words = ["python -m benchmarks operators --torch-python PATH"]
    if args.instructions:
        words.append(f"--instructions {args.instructions}")
    if tuple(args.sizes) != SIZES:
        words.append(f"--sizes {','.join(map(str, args.sizes))}")
    if args.table:
        words.append(f"--table docs/{args.table.name}")
    return " ".join(words)


def main(argv: list[str]) -> int:
    args = arguments(argv)
    operators = declared()
    found, without = calls(operators)
    rows = works(found, args.sizes, args.names)
    if args.list:
        print("\n".join(map(key_of, rows)))
        print("without arguments:", ", ".join(without))
        return 0
    results = {}
    if args.resume and args.json.exists():
        results = json.loads(args.json.read_text())["results"]
    load = os.getloadavg()[0]
    pair = Pair(args.torch_python, args.threads)
    try:
        measured(rows, pair, args, results)
    finally:
        pair.close()
    results = {key: results[key] for key in map(key_of, rows)}
    about = {
        **pair.circumstances(args.rounds, load),
        "sizes": args.sizes,
        "command": command(args),
        "limited": f", limited to {args.instructions.upper()}" if args.instructions else "",
        **not_timed(operators, found, without),
    }
    if args.json:
        save(args.json, results, about)
    print(report.summary(results, args.sizes))
    if args.table:
        picture = args.table.with_name(args.table.stem + ".png")
        args.table.write_text(report.markdown(about, results, picture.name))
        report.plot(results, picture, args.sizes)
    return 1 if any("error" in entry and "apart" not in entry for entry in results.values()) else 0
