"""Which calls warn, with which class, and how the text begins. PyTorch's own text may go on with advice."""

import io
import os
import warnings
from unittest import mock

import numpy as np


def _given(torch, *calls):
    """Of each call, the class and the beginning of its warnings, all of which are asked for every time."""
    found = []
    torch.set_warn_always(True)
    try:
        for call in calls:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                try:
                    call()
                    error = None
                except Exception as raised:
                    error = type(raised).__name__
            found.append([error, [[one.category.__name__, str(one.message)[:48]] for one in seen]])
    finally:
        torch.set_warn_always(False)
    return found


def deprecated_operators(torch):
    x = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    return _given(
        torch,
        lambda: torch.qr(x),
        x.qr,
        lambda: torch.cholesky(x),
        lambda: x.cholesky(upper=True),
        lambda: torch.lu(x),
        lambda: x.lu(get_infos=True),
        lambda: torch.lu_solve(x, *torch.linalg.lu_factor(x)),
        lambda: torch.triangular_solve(x, x),
        lambda: torch.chain_matmul(x, x),
        lambda: torch.svd(x),
        lambda: torch.ger(x[0], x[0]),
        lambda: torch.linalg.qr(x),
        lambda: torch.norm(x),
        lambda: torch.range(0, 3),
    )


def reversed_dims(torch):
    return _given(
        torch, *(lambda n=n: torch.ones([1] * n).T for n in range(4)), lambda: torch.ones(1, 2, 3).mT
    )


def grids_without_an_order(torch):
    x = torch.arange(2)
    return _given(torch, lambda: torch.meshgrid(x), lambda: torch.meshgrid(x, x, indexing="xy"))


def degrees_of_freedom(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    weights = torch.tensor([0.5, 0.25])
    return _given(
        torch,
        lambda: torch.cov(x),
        lambda: torch.cov(x, correction=2),
        lambda: torch.cov(x[:, :1]),
        lambda: torch.cov(x, aweights=weights),
        lambda: torch.cov(x, correction=3, fweights=torch.tensor([1, 2])),
        lambda: torch.corrcoef(x[:, :1]),
        lambda: torch.cov(x, fweights=torch.ones(2)),
        lambda: torch.cov(x, fweights=torch.tensor([-1, 1])),
        lambda: torch.cov(x, aweights=-weights),
        lambda: torch.cov(x, aweights=torch.ones(2, dtype=torch.int64)),
        lambda: torch.cov(x, aweights=0 * weights),
        lambda: torch.var(x[0, :1]),
    )


def softmax_without_a_dim(torch):
    F, nn, x = torch.nn.functional, torch.nn, torch.ones(2, 2)
    return _given(
        torch,
        lambda: F.softmax(x),
        lambda: F.log_softmax(x, None),
        lambda: F.softmin(x),
        lambda: nn.Softmax()(x),
        lambda: nn.LogSoftmax()(x),
        lambda: nn.Softmin()(x),
        lambda: F.softmax(x, 0),
        lambda: F.gumbel_softmax(x),
    )


def corners_of_grids(torch):
    F, x = torch.nn.functional, torch.ones(1, 1, 2, 2)
    return _given(
        torch,
        lambda: F.grid_sample(x, torch.zeros(1, 2, 2, 2)),
        lambda: F.grid_sample(x, torch.zeros(1, 2, 2, 2), align_corners=False),
        lambda: F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2)),
        lambda: F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2), False),
    )


def lost_imaginary_parts(torch):
    x, real = torch.tensor([1j, 2.0]), torch.ones(2)
    wanting = torch.ones(2, requires_grad=True)
    return _given(
        torch,
        x.float,
        x.int,
        x.bool,
        x.cdouble,
        lambda: x.to(torch.float64),
        lambda: x.type(torch.float16),
        lambda: real.copy_(x),
        lambda: real.__setitem__(0, x[0]),
        lambda: real.to(x.dtype),
        lambda: x.real.double(),
        lambda: (wanting * x).abs().sum().backward(),
        lambda: wanting.to(x.dtype).abs().sum().backward(),
        lambda: torch.add(x, 1, out=real),
    )


def sorted_sequences_with_gaps(torch):
    x = torch.arange(6.0).reshape(2, 3)
    whole = x.t().contiguous()
    return _given(
        torch,
        lambda: torch.searchsorted(x.t(), whole),
        lambda: torch.searchsorted(whole, x.t()),
        lambda: torch.searchsorted(whole, whole),
        lambda: torch.bucketize(x.t(), x[0]),
        lambda: torch.bucketize(x, x[0]),
    )


def older_names_of_amp(torch):
    amp, cpu = torch.cuda.amp, torch.cpu.amp
    return _given(
        torch,
        lambda: amp.autocast(enabled=False),
        lambda: amp.GradScaler(enabled=False),
        lambda: cpu.autocast(enabled=False),
        lambda: cpu.GradScaler(),
        lambda: amp.custom_fwd(print),
        lambda: amp.custom_bwd(print),
        torch.get_autocast_gpu_dtype,
        torch.get_autocast_cpu_dtype,
        torch.is_autocast_cpu_enabled,
        lambda: torch.set_autocast_cpu_enabled(False),
        lambda: torch.set_autocast_cpu_dtype(torch.bfloat16),
        lambda: torch.set_autocast_gpu_dtype(torch.float16),
        lambda: torch.get_autocast_dtype("cpu"),
        lambda: torch.amp.autocast("cpu"),
        lambda: torch.backends.cuda.sdp_kernel().__enter__(),
    )


def settings_of_a_loader(torch):
    load = torch.utils.data.DataLoader

    def with_workers(number):
        with mock.patch.object(os, "sched_getaffinity", return_value={0, 3}):
            load([1], num_workers=number)

    return _given(
        torch,
        lambda: with_workers(3),
        lambda: with_workers(2),
        lambda: list(load([1], pin_memory=True)),
        lambda: list(load([1], pin_memory=True, pin_memory_device="cuda")),
        lambda: list(load([1], pin_memory_device="cuda")),
    )


def tensors_of_other_objects(torch):
    fixed = np.ones(2)
    fixed.flags.writeable = False
    x = torch.ones(2)
    return _given(
        torch,
        lambda: torch.tensor(x),
        lambda: x.new_tensor(x),
        lambda: torch.as_tensor(x),
        lambda: torch.from_numpy(fixed),
        lambda: torch.add(x, 1, out=torch.ones(3)),
        lambda: torch.load(io.BytesIO()),
    )


def losses_of_other_sizes(torch):
    F, x, y = torch.nn.functional, torch.ones(2), torch.ones(2, 2)
    return _given(
        torch,
        *(lambda f=f: f(x, y) for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)),
        lambda: F.mse_loss(x, x, size_average=False),
        lambda: F.kl_div(y, y),
        lambda: F.kl_div(y, y, reduction="sum"),
        lambda: F.dropout2d(y),
        lambda: F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2),
        lambda: torch.nn.LSTM(2, 2, dropout=0.5),
    )
