"""torch.backends: settings that programs set, read back and restore."""


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
