"""MindSpore's own Ascend plugin, unmodified, on the simulated NPU: run by test_mindspore.py. Prints one line for each check."""

import mindspore as ms
import numpy as np

ms.set_device("Ascend")
from mindspore import mint  # noqa: E402

rng = np.random.default_rng(0)
A, B = rng.standard_normal((4, 6)).astype(np.float32), rng.standard_normal((6, 5)).astype(np.float32)


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), tolerance, tolerance
    )


def views_and_writes_in_place():
    x = mint.add(ms.Tensor(A), 0)
    same(mint.mul(mint.transpose(x, 0, 1)[1:5:2], 2).asnumpy(), A.T[1:5:2] * 2)
    x[1].add_(10)
    x[:, 0].mul_(2)
    expected = A.copy()
    expected[1] += 10
    expected[:, 0] *= 2
    same(x.asnumpy(), expected)


def element_types():
    for kind in (ms.float16, ms.bfloat16, ms.float32, ms.int64, ms.int32):
        x = mint.arange(6).to(kind)
        assert x.dtype == kind
        same(mint.add(x, x).to(ms.float32).asnumpy(), np.arange(6) * 2)


def gradients():
    def loss(w, v):
        x = mint.matmul(mint.nn.functional.gelu(mint.matmul(ms.Tensor(A.T), w)), v)
        return mint.mean(mint.square(x))

    w, v = rng.standard_normal((4, 6)).astype(np.float32), rng.standard_normal((6, 5)).astype(np.float32)
    _, (dw, _) = ms.value_and_grad(loss, (0, 1))(ms.Tensor(w), ms.Tensor(v))
    step = np.zeros_like(w)
    step[1, 2] = 1e-2
    numeric = (
        float(loss(ms.Tensor(w + step), ms.Tensor(v))) - float(loss(ms.Tensor(w - step), ms.Tensor(v)))
    ) / 2e-2
    same(dw.asnumpy()[1, 2], numeric, 5e-3)


def normalisation_embedding_loss():
    x = ms.Tensor(A)
    mean, std = A.mean(1, keepdims=True), A.std(1, keepdims=True)
    same(mint.nn.functional.layer_norm(x, (6,)).asnumpy(), (A - mean) / np.sqrt(std**2 + 1e-5))
    same(mint.nn.functional.embedding(ms.Tensor([2, 0, 1]), x).asnumpy(), A[[2, 0, 1]])
    target = np.array([1, 0, 3, 5])
    p = np.exp(A - A.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = mint.nn.functional.cross_entropy(x, ms.Tensor(target))
    same(loss.asnumpy(), -np.log(p[range(4), target]).mean())


def random_numbers():
    ms.manual_seed(3)
    first = mint.randn(500).asnumpy()
    ms.manual_seed(3)
    same(mint.randn(500).asnumpy(), first)
    kept = mint.nn.functional.dropout(mint.ones((1000,)), 0.25, True).asnumpy() != 0
    assert abs(kept.mean() - 0.75) < 0.06


def streams():
    stream, event = ms.runtime.Stream(), ms.runtime.Event()
    x = mint.add(ms.Tensor(A), 0)
    stream.wait_stream(ms.runtime.current_stream())
    with ms.runtime.StreamCtx(stream):
        y = mint.matmul(x, ms.Tensor(B))
        event.record()
    event.wait()
    ms.runtime.synchronize()
    same(y.asnumpy(), A @ B)


def results_whose_shape_depends_on_the_data():
    x = ms.Tensor(A)
    same(mint.masked_select(x, x > 0).asnumpy(), A[A > 0])
    same(mint.nonzero(x > 0).asnumpy(), np.argwhere(A > 0))


def images():
    f, image = mint.nn.functional, ms.Tensor(A.reshape(1, 1, 4, 6))
    cells = A.reshape(2, 2, 3, 2)
    same(f.avg_pool2d(image, 2).asnumpy()[0, 0], cells.mean((1, 3)))
    same(f.adaptive_avg_pool2d(image, (2, 3)).asnumpy()[0, 0], cells.mean((1, 3)))
    pooled, places = f.max_pool2d(image, 2, return_indices=True)
    same(pooled.asnumpy()[0, 0], cells.max((1, 3)))
    same(A.ravel()[places.asnumpy()[0, 0]], cells.max((1, 3)))
    twice = A.repeat(2, 0).repeat(2, 1)
    same(f.interpolate(image, scale_factor=(2.0, 2.0), mode="nearest").asnumpy()[0, 0], twice)
    corners = f.interpolate(image, size=(7, 11), mode="bilinear", align_corners=True).asnumpy()[0, 0]
    same(corners[::2, ::2], A)
    same(corners[1::2, ::2], (A[1:] + A[:-1]) / 2)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 6), indexing="ij")
    grid = ms.Tensor(np.stack([columns, rows], -1)[None].astype(np.float32))
    same(f.grid_sample(image, grid, align_corners=True).asnumpy()[0, 0], A)

    for operator in (
        lambda x: f.avg_pool2d(x, 2),
        lambda x: f.max_pool2d(x, 2),
        lambda x: f.interpolate(x, size=(2, 3), mode="nearest"),
        lambda x: f.grid_sample(x, grid, align_corners=True),
    ):
        gradient = ms.grad(lambda x, run=operator: mint.sum(run(x)))(image)
        size = operator(image).shape
        same(gradient.asnumpy().sum(), size[2] * size[3])


def refuses(call, *words):
    try:
        call().asnumpy()
    except RuntimeError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(f"not refused: {words}")


def what_is_refused():
    wide = ms.Tensor(A.astype(np.float64))
    refuses(lambda: mint.matmul(wide, wide.T), "aclnnM", "taken are", "ops-nn/matmul/mat_mul_v3")
    refuses(lambda: mint.trace(ms.Tensor(A)), "aclnnTrace")  # it is not simulated


for check in (
    views_and_writes_in_place,
    element_types,
    gradients,
    normalisation_embedding_loss,
    random_numbers,
    streams,
    results_whose_shape_depends_on_the_data,
    images,
    what_is_refused,
):
    check()
    print("ok", check.__name__, flush=True)
