"""torch.backends: settings that programs set, read back and restore."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def flags_are_restored(torch):
    cudnn, seen = torch.backends.cudnn, []
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=False):
        seen.append([cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32])
    seen.append([cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32])
    return seen


def flags_are_restored_after_an_error(torch):
    mkldnn = torch.backends.mkldnn
    try:
        with mkldnn.flags(enabled=False):
            inside = mkldnn.enabled
            raise KeyError("within")
    except KeyError:
        return [inside, mkldnn.enabled]


def unknown_flag(torch):
    with torch.backends.cudnn.flags(speed=3):
        return


def set_and_read(torch):
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = True, True
    seen = [cudnn.benchmark, cudnn.deterministic]
    cudnn.benchmark, cudnn.deterministic = before
    return [seen, list(before)]


def set_flags_returns_the_former_values(torch):
    before = torch.backends.cudnn.set_flags(True, True, 10, True, False)
    again = torch.backends.cudnn.set_flags(*before)
    return [before[0], before[1], before[3], again[0], again[1], again[3]]  # the third depends on cuDNN


def products_settings(torch):
    matmul = torch.backends.cuda.matmul
    names = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    first = [getattr(matmul, name) for name in names]
    matmul.allow_tf32 = True
    changed = matmul.allow_tf32
    matmul.allow_tf32 = False
    return [first, changed, matmul.allow_tf32]


def attention_switches(torch):
    cuda, seen = torch.backends.cuda, []
    for name in ("flash", "mem_efficient", "math"):
        get, put = getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
        before = get()
        put(False)
        seen.append([before, get()])
        put(before)
    return seen


def attention_block(torch):
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
        inside = [cuda.flash_sdp_enabled(), cuda.math_sdp_enabled(), cuda.mem_efficient_sdp_enabled()]
    return [inside, cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled()]


def availability_without_an_accelerator(torch):
    b = torch.backends
    return [b.cudnn.is_available(), b.cudnn.version(), b.mps.is_available(), b.mkldnn.is_available()]


def order_of_contractions(torch):
    opt = torch.backends.opt_einsum
    with opt.flags(enabled=False):
        inside = opt.enabled
    return [
        inside,
        opt.enabled == opt.is_available(),
        opt.strategy == ("auto" if opt.is_available() else None),
    ]


def a_strategy_while_not_enabled(torch):
    with torch.backends.opt_einsum.flags(enabled=False), torch.backends.opt_einsum.flags(strategy="auto"):
        return


_PRECISIONS = """
import os, warnings, {name} as torch
warnings.simplefilter("ignore")
B = torch.backends
NAMES = "B B.cuda.matmul B.cudnn B.cudnn.conv B.cudnn.rnn B.mkldnn B.mkldnn.matmul B.mkldnn.conv B.mkldnn.rnn".split()
OLDER = "B.cuda.matmul.allow_tf32 B.cudnn.allow_tf32 B.mkldnn.allow_tf32 torch.get_float32_matmul_precision()".split()
def show(text):
    try:
        return str(eval(text))
    except Exception as error:
        return type(error).__name__ + ": " + str(error).partition(". ")[0]
def state():
    return " ".join([show(name + ".fp32_precision") for name in NAMES] + [show(text) for text in OLDER])
def inside(flags, **values):
    with flags(**values):
        print(state())
for step in {steps!r}:
    if os.fork() == 0:  # each step begins with the settings of a new process
        try:
            exec(step)
            print(step, "|", state(), flush=True)
        except Exception as error:
            print(step, "|", type(error).__name__, str(error).partition(". The")[0], flush=True)
        os._exit(0)
    os.wait()
"""


def _after(torch, *steps):
    """Return what the settings are after each of the steps, in a process where nothing was set before."""
    package = Path(torch.__file__).parent.name  # its name may be torch for msadapter too
    program = _PRECISIONS.format(name=package, steps=steps)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout.splitlines()


def precision_is_inherited(torch):
    set_ = [f"B.fp32_precision = {p!r}" for p in ("none", "ieee", "tf32", "bf16")]
    own = [
        f"B.{name}.fp32_precision = {p!r}"
        for name in (
            "cuda.matmul",
            "cudnn",
            "cudnn.conv",
            "cudnn.rnn",
            "mkldnn",
            "mkldnn.matmul",
            "mkldnn.conv",
            "mkldnn.rnn",
        )
        for p in ("none", "ieee", "tf32", "bf16")
    ]
    both = [f"{a}; {b}" for a, b in zip(set_ * len(own), own, strict=False)]
    return _after(torch, "pass", *set_, *own, *both, "B.fp32_precision = 'tf32'; B.fp32_precision = 'none'")


def precision_and_the_older_settings(torch):
    older = [f"torch.set_float32_matmul_precision({p!r})" for p in ("high", "medium", "highest", "x")]
    older += [
        f"B.{name}.allow_tf32 = {v}" for name in ("cuda.matmul", "cudnn", "mkldnn") for v in (True, False)
    ]
    mixed = [f"{a}; B.fp32_precision = {p!r}" for a in older for p in ("ieee", "tf32")]
    mixed += ["B.cuda.matmul.fp32_precision = 'tf32'; torch.set_float32_matmul_precision('highest')"]
    return _after(torch, *older, *mixed)


def precision_in_blocks(torch):
    blocks = [
        f"inside(B{name}.flags{values}"
        for name in ("", ".cudnn", ".mkldnn")
        for values in (")", ", fp32_precision='tf32')", ", fp32_precision='ieee')")
    ]
    calls = [
        f"print(B{name}.set_flags(_fp32_precision={p})[-1:])"
        for name in ("", ".mkldnn")
        for p in ("None", "'tf32'")
    ]
    return _after(torch, *blocks, *calls)


def precision_refused(torch):
    wrong = [
        f"{name}.fp32_precision = {v!r}"
        for name in ("B", "B.cudnn", "B.mkldnn.matmul")
        for v in ("x", 1, None)
    ]
    wrong += ["B.cudnn.conv.x = 1", "B.mkldnn.rnn.x", "B.cuda.matmul.x", "B.cuda.matmul.x = 1"]
    wrong += [
        "torch.set_float32_matmul_precision(3)",
        "B.cuda.matmul.allow_tf32 = 1",
        "B.cudnn.allow_tf32 = 'x'",
    ]
    reads = [
        f"print(torch._C._get_fp32_precision_getter({pair}))"
        for pair in ("'cuda', 'all'", "'x', 'all'", "'cuda', 'x'")
    ]
    reads += [
        f"print(torch._C._set_fp32_precision_setter('generic', {op!r}, 'tf32'))" for op in ("all", "matmul")
    ]
    return _after(torch, *wrong, *reads)


def frozen_flags(torch):
    freeze = "B.disable_global_flags(); "
    settings = [
        "B.fp32_precision = 'ieee'",
        "B.cudnn.enabled = False",
        "B.cudnn.benchmark = True",
        "B.cudnn.benchmark_limit = 3",
        "B.cudnn.deterministic = True",
        "B.cudnn.allow_tf32 = False",
        "B.cudnn.fp32_precision = 'ieee'",
        "B.cudnn.depthwise_kernel = 'auto'",
        "B.cudnn.conv.fp32_precision = 'ieee'",
        "B.mkldnn.enabled = False",
        "B.mkldnn.deterministic = True",
        "B.mkldnn.fp32_precision = 'ieee'",
        "B.opt_einsum.enabled = False",
        "B.cuda.matmul.allow_tf32 = True",
    ]
    flag = "print(B.flags_frozen(), B.__allow_nonbracketed_mutation_flag); "
    still = [
        flag + freeze + flag,
        freeze + "inside(B.flags, fp32_precision='tf32')",
        freeze + "inside(B.cudnn.flags, enabled=False)",
        freeze + "inside(B.mkldnn.flags, enabled=False)",
        freeze + "print(B.cudnn.set_flags(_benchmark=True)[1], B.cudnn.benchmark)",
        freeze + "B.cudnn.flags(enabled=False).__enter__(); B.cudnn.enabled = True",
        freeze + "w = B.__allow_nonbracketed_mutation(); w.__enter__(); B.cudnn.enabled = False; "
        "w.__exit__(None, None, None); print(B.cudnn.enabled, B.flags_frozen())",
    ]
    return _after(torch, *(freeze + step for step in settings), *still)


def libraries_that_are_not_used(torch):
    """cuSPARSELt, KleidiAI and XNNPACK are in no build of PyTorch for x86; MIOpen and NNPACK have switches everywhere."""
    xnnpack = "X = __import__(torch.__name__ + '.backends.xnnpack', fromlist=['X']); "
    freeze = "B.disable_global_flags()\n"
    steps = [
        "print(B.cusparselt.is_available(), B.cusparselt.version(), B.cusparselt.get_max_alg_id())",
        f"{xnnpack}print(B.kleidiai.is_available(), X.enabled)",
        f"{xnnpack}X.enabled = True",
        "print(B.miopen.set_flags(True), B.miopen.set_flags(), B.miopen.set_flags(None), B.miopen.immediate)",
        "B.miopen.immediate = 1",
        "B.miopen.set_flags('x')",
        "with B.miopen.flags(True): print(B.miopen.immediate)\nprint(B.miopen.immediate)",
        "with B.miopen.flags(): print(B.miopen.immediate)",
        "print(B.nnpack.set_flags(False), B.nnpack.set_flags(True))",
        "B.nnpack.set_flags(1)",
        "B.nnpack.set_flags(None)",
        "with B.nnpack.flags(): print(B.nnpack.set_flags(False))\nprint(B.nnpack.set_flags(True))",
        freeze + "B.miopen.immediate = True",
        freeze + "B.miopen.set_flags(False)",
        freeze + "with B.miopen.flags(True): print(B.miopen.immediate)",
        freeze + "print(B.nnpack.set_flags(False))",
    ]
    return _after(torch, *steps)
