"""Programs for PyTorch on the simulated NPU: run by test_torch.py. Prints "ok" and a name for each check that holds.

Without arguments all checks run, otherwise those that are named.
"""

import copy
import io
import sys

import pytest
import torch
import torch.nn.functional as F
from checks import run_checks

from msadapter._host import simulator
from msadapter._host.native import load

DEVICE = "npu"
DEVICE_MEMORY = (0x12C000000000, 0x13C000000000)  # addresses of the simulated device


def same(found, expected, tolerance=1e-5):
    expected = torch.as_tensor(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    torch.testing.assert_close(found.cpu(), expected.cpu(), rtol=tolerance, atol=tolerance)


def two_memories():
    host, device = torch.arange(6.0).view(2, 3), torch.arange(6.0, device=DEVICE).view(2, 3)
    assert device.device == torch.device("npu:0") and device.is_npu and host.device.type == "cpu"
    assert DEVICE_MEMORY[0] <= device.data_ptr() < DEVICE_MEMORY[1]
    assert not DEVICE_MEMORY[0] <= host.data_ptr() < DEVICE_MEMORY[1]
    same(device + device, host + host)
    copied = host.to(DEVICE)
    copied += 1
    same(host, torch.arange(6.0).view(2, 3))
    assert copied.cpu().device.type == "cpu" and device.to(DEVICE) is device
    assert device[1, 2].item() == 5.0 and device.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "device='npu:0'" in repr(device)
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        device.numpy()
    same(host.T.to(DEVICE)[1:], host.T[1:])
    same(host.to(DEVICE, torch.bfloat16, non_blocking=True), host.bfloat16())
    host.copy_(device * 3)
    same(host, torch.arange(6.0).view(2, 3) * 3)


def devices_do_not_mix():
    host, device = torch.ones(2), torch.ones(2, device=DEVICE)
    text = "Expected all tensors to be on the same device"
    with pytest.raises(RuntimeError, match=text):
        host + device
    with pytest.raises(RuntimeError, match=text):
        device.add_(host)
    with pytest.raises(RuntimeError, match=text):
        torch.cat([host, device])
    with pytest.raises(RuntimeError, match=text):
        F.linear(device, torch.ones(3, 2))
    same(device + torch.tensor(2.0), [3.0, 3.0])  # numbers on the host may take part
    same(torch.tensor(2.0) * device, [2.0, 2.0])


def views_and_writes_in_place():
    results = []
    for device in ("cpu", DEVICE):
        x = torch.zeros(4, 6, device=device)
        x[1:3, ::2] += 1
        x.T[2].fill_(7)
        x[x > 5] = -1
        x[[0, 3], 1] = torch.tensor([8.0, 9.0], device=device)
        x.view(2, 12)[1].mul_(2)
        results.append(x)
        empty = torch.ones_like(torch.tensor(1.0, device=device).expand(5, 0))
        empty.add_(1).zero_().copy_(torch.rand_like(empty))
    same(results[1], results[0])


def train(device, kind, steps=4):
    """The losses of a small network, and the weights after training."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)
    )
    model, x, target = model.to(device), torch.randn(8, 6).to(device), torch.randint(3, (8,)).to(device)
    optimizer = kind(model.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


def networks_learn_as_on_the_host():
    for kind in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, 0.01),
        lambda p: torch.optim.Adam(p, 0.01, foreach=False),
    ):
        losses, weights = train("cpu", kind)
        there, others = train(DEVICE, kind)
        same(torch.tensor(there), losses)
        for a, b in zip(others, weights, strict=True):
            same(a, b, 2e-5)


class Block(torch.nn.Module):
    """A layer of a decoder: causal attention and a network, both with normalisation before them."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = torch.nn.LayerNorm(width), torch.nn.RMSNorm(width)
        self.joint, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            self.joint(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.network(self.before_network(x))


def language_model(device, dtype, steps=3):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Embedding(40, 32),
        Block(32, 4),
        Block(32, 4),
        torch.nn.LayerNorm(32),
        torch.nn.Linear(32, 40),
    )
    model[-1].weight = model[0].weight
    tokens = torch.randint(40, (2, 17)).to(device)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.1)
    losses = []
    for _ in range(steps):
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


def a_language_model_learns_as_on_the_host():
    same(language_model(DEVICE, torch.float32), language_model("cpu", torch.float32))
    same(language_model(DEVICE, torch.bfloat16), language_model("cpu", torch.float32), 3e-2)


def gradients_of_views_and_graphs():
    results = []
    for device in ("cpu", DEVICE):
        x = torch.linspace(-1, 1, 12).view(3, 4).to(device).requires_grad_()
        y = x * 1
        y[1:, ::2] *= 3
        (y.T.exp().sum() + x[:, 1].pow(3).sum()).backward()
        (first,) = torch.autograd.grad(x.sin().pow(2).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        results.append((x.grad, second))
    for a, b in zip(results[1], results[0], strict=True):
        same(a, b)
    complex_numbers = torch.complex(torch.arange(4.0), torch.ones(4)).to(DEVICE)
    room = torch.zeros(4, 2, dtype=torch.complex64, device=DEVICE)
    room[:, 1] = complex_numbers * 2
    same(room.cpu()[:, 1], complex_numbers.cpu() * 2)
    leaf = torch.ones(3, requires_grad=True)
    (leaf.to(DEVICE) * 2).sum().backward()
    assert leaf.grad.device.type == "cpu" and leaf.grad.tolist() == [2, 2, 2]


def random_numbers():
    torch.npu.manual_seed(7)
    state = torch.npu.get_rng_state()
    assert state.device.type == "cpu" and state.numel() == 16
    first, second = torch.randn(100, device=DEVICE), torch.randn(100, device=DEVICE)
    assert not torch.equal(first, second)
    torch.npu.set_rng_state(state)
    same(torch.randn(100, device=DEVICE), first)
    torch.manual_seed(3)  # seeds the accelerator too
    first = torch.rand(100, device=DEVICE)
    torch.manual_seed(3)
    same(torch.rand(100, device=DEVICE), first)
    assert first.min().item() >= 0 and first.max().item() < 1
    own = torch.Generator(DEVICE).manual_seed(9)
    a = torch.empty(50, device=DEVICE).normal_(generator=own)
    same(torch.empty(50, device=DEVICE).normal_(generator=own.manual_seed(9)), a)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(2, device=DEVICE, generator=torch.Generator())
    kept = (F.dropout(torch.ones(1000, device=DEVICE), 0.25) != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.06, kept
    torch.manual_seed(3)
    host = torch.rand(4)
    torch.manual_seed(3)
    torch.rand(4, device=DEVICE)
    same(torch.rand(4), host)  # the device has its own stream of numbers


def streams_and_events():
    x = torch.randn(64, 64, device=DEVICE)
    side, start, end = (
        torch.npu.Stream(),
        torch.npu.Event(enable_timing=True),
        torch.npu.Event(enable_timing=True),
    )
    assert torch.npu.current_stream() == torch.npu.default_stream() != side
    side.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(side):
        assert torch.npu.current_stream() == side
        start.record()
        y = x @ x
        end.record()
    torch.npu.current_stream().wait_stream(side)
    same(y, x.cpu() @ x.cpu(), 1e-4)
    torch.npu.synchronize()
    assert side.query() and end.query() and start.elapsed_time(end) >= 0


def saved_and_loaded():
    model = torch.nn.Linear(3, 2).to(DEVICE)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    for where in (None, "cpu", DEVICE):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded["weight"].device.type == (where or DEVICE)
        same(loaded["weight"], model.weight.detach())
    file = io.BytesIO()
    torch.save(model.state_dict(), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    same(torch.load(file)["bias"], model.bias.detach())
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.weight.zero_()
    assert model.weight.abs().sum().item() > 0 and twin.weight.device.type == "npu"
    grown = torch.arange(4.0, device=DEVICE)
    grown.untyped_storage().resize_(32)
    same(torch.as_strided(grown, (4,), (1,)), [0.0, 1.0, 2.0, 3.0])
    assert grown.untyped_storage().nbytes() == 32 and grown.resize_(2, 4).shape == (2, 4)
    storage = model.weight.untyped_storage()
    assert storage.device.type == "npu" and bytes(storage.cpu().tolist()) == bytes(storage.tolist())


def out_of_memory():
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        torch.empty(1 << 36, device=DEVICE)
    same(torch.ones(2, device=DEVICE) + 1, [2.0, 2.0])
    before = torch.npu.memory_allocated()
    block = torch.empty(1 << 20, device=DEVICE)
    assert torch.npu.memory_allocated() - before >= 4 << 20
    assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated()
    del block
    assert torch.npu.memory_allocated() == before
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total


def a_step_copies_nothing_to_the_host():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)
    )
    model = model.to(DEVICE)
    x, target = torch.randn(8, 6, device=DEVICE), torch.arange(8, device=DEVICE) % 3
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()

    step()
    before = load().copy_counts()
    step()
    after = load().copy_counts()
    assert after[0] == before[0], f"{after[0] - before[0]} copies to the host"


def counted(work, some=(), never=(), **exactly):
    """Do some work. On the simulated NPU, check how often it made calls of CANN; a device has no such counters.

    Names of operators are without aclnn. Calls in `some` are made at least once.
    """
    if not simulator.is_asked_for():
        work()
        return
    torch.npu.synchronize()
    before = simulator.counters()
    work()
    # An address is known once MindSpore's queue is empty. Nothing is waited for.
    torch.empty(1, device=DEVICE).data_ptr()
    seen = {name.removeprefix("aclnn"): n - before.get(name, 0) for name, n in simulator.counters().items()}
    found = {name: seen.get(name, 0) for name in (*exactly, *never, *some)}
    assert found | exactly == found and not any(found[n] for n in never) and all(found[n] for n in some), (
        found
    )


def writes_in_place_without_a_copy():
    x, y = torch.arange(1.0, 7.0, device=DEVICE).view(2, 3), torch.full((2, 3), 2.0, device=DEVICE)
    version = x._version
    counted(
        lambda: x.add_(y, alpha=3).mul_(0.5).sub_(1).div_(y).mul_(y[0]).relu_(),
        never=["InplaceCopy"],
        InplaceAdd=1,
        InplaceMuls=1,
        InplaceMul=1,
    )
    same(x, (torch.arange(1.0, 7.0).view(2, 3) + 6) * 0.5 - 1)
    assert x._version == version + 6
    rows = x.T[1:]
    rows += 1
    same(x[:, 1:], ((torch.arange(1.0, 7.0).view(2, 3) + 6) * 0.5 - 1)[:, 1:] + 1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(3, device=DEVICE).add_(y)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64, device=DEVICE).mul_(0.5)
    leaf = torch.ones(2, 3, device=DEVICE, requires_grad=True)
    z = leaf * 2
    z.mul_(y).add_(leaf)
    z.sum().backward()
    same(leaf.grad, torch.full((2, 3), 5.0))


def adam_is_one_launch_for_each_parameter():
    for kind, options in (
        (torch.optim.AdamW, {}),
        (torch.optim.Adam, {"weight_decay": 0.1, "maximize": True}),
        (torch.optim.AdamW, {"amsgrad": True, "fused": True}),
    ):
        results = []
        for device in ("cpu", DEVICE):
            torch.manual_seed(2)
            weights = [torch.randn(4, 3).to(device).requires_grad_() for _ in range(3)]
            optimizer = kind(weights, 0.1, **options)
            for step in range(3):
                for weight in weights:
                    weight.grad = torch.randn(4, 3).to(device)
                learned = step > 0 and device == DEVICE  # the first step makes the averages
                counts = {"never": ["InplaceCopy"], "ApplyAdamWV2": 3} if learned else {}
                counted(optimizer.step, **counts)
            results.append(weights)
        for a, b in zip(results[1], results[0], strict=True):
            same(a, b)


def attention_with_dropout():
    torch.manual_seed(4)
    q, k, v = (torch.randn(2, 4, 16, 8).half().to(DEVICE).requires_grad_() for _ in range(3))
    weights = torch.randn(2, 4, 16, 8, device=DEVICE)

    def attend(p):
        torch.npu.manual_seed(5)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p).float()

    out = attend(0.4)
    same(attend(0.4).detach(), out.detach())
    assert (out - attend(0.0)).abs().max().item() > 0.1
    # The output is linear in the values, so this holds if the gradient has the mask of the output.
    counted(lambda: (out * weights).sum().backward(), FlashAttentionScoreGradV2=1)
    same((v.grad.float() * v).sum().detach(), (out * weights).sum().detach(), 2e-2)
    with pytest.raises(NotImplementedError, match="second derivatives with dropout"):
        torch.autograd.grad(attend(0.4).sum(), q, create_graph=True)


def cross_entropy_with_smoothing():
    """MindSpore's own kernel has no gradient for it on an NPU."""
    torch.manual_seed(2)
    for shape, weight, reduction in (
        ((4, 5), None, "mean"),
        ((4, 5), torch.rand(5), "none"),
        ((2, 5, 3), torch.rand(5), "sum"),
    ):
        logits, target = torch.randn(shape), torch.randint(0, 5, shape[:1] + shape[2:])
        target.view(-1)[0] = -100
        found = []
        for device in ("cpu", DEVICE):
            x = logits.clone().to(device).requires_grad_()
            w = None if weight is None else weight.to(device)
            loss = F.cross_entropy(x, target.to(device), w, reduction=reduction, label_smoothing=0.2)
            loss.sum().backward()
            found.append((loss.detach(), x.grad))
        for host, device in zip(*found, strict=True):
            same(device, host)


def copies_that_do_not_wait():
    pinned = torch.arange(1000.0).pin_memory()
    assert pinned.is_pinned() and pinned[10:].is_pinned() and not torch.ones(2).is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned() and pinned.untyped_storage().is_pinned()
    results = []

    def there_and_back():
        there = pinned.to(DEVICE, non_blocking=True)
        results.append(torch.zeros(1000).pin_memory().copy_(there * 2, non_blocking=True))
        target = torch.zeros(1000).pin_memory()
        results.append(target.copy_(there, non_blocking=True))

    counted(there_and_back, never=["waits of the host"], **{"copies device to host": 2})
    torch.npu.synchronize()
    same(results[0], torch.arange(1000.0) * 2)
    same(results[1], torch.arange(1000.0))
    same((pinned.to(DEVICE, non_blocking=True) * 3).to("cpu", non_blocking=True), torch.arange(1000.0) * 3)
    counted(lambda: pinned.to(DEVICE), some=["waits of the host"])
    counted(lambda: torch.ones(9).to(DEVICE, non_blocking=True), some=["waits of the host"])
    for k in range(20):  # the memory of each source is given back while its copy may still run
        source = torch.full((5000,), float(k)).pin_memory()
        moved = source.npu(non_blocking=True)
        del source
        torch.full((5000,), -1.0).pin_memory()
        same(moved, torch.full((5000,), float(k)))
    data = torch.utils.data.TensorDataset(torch.arange(8.0), torch.arange(8))
    batches = list(torch.utils.data.DataLoader(data, 4, pin_memory=True))
    assert all(part.is_pinned() for batch in batches for part in batch)


CHECKS = {
    check.__name__: check
    for check in (
        two_memories,
        devices_do_not_mix,
        views_and_writes_in_place,
        networks_learn_as_on_the_host,
        a_language_model_learns_as_on_the_host,
        gradients_of_views_and_graphs,
        random_numbers,
        streams_and_events,
        saved_and_loaded,
        out_of_memory,
        a_step_copies_nothing_to_the_host,
        writes_in_place_without_a_copy,
        adam_is_one_launch_for_each_parameter,
        attention_with_dropout,
        cross_entropy_with_smoothing,
        copies_that_do_not_wait,
    )
}

if __name__ == "__main__":
    sys.exit(run_checks(CHECKS))
