"""Runs about sixty operators with gradients and prints the results. test_two_paths.py runs it on both paths."""

import json

import msadapter as torch

F = torch.nn.functional


def program():
    torch.manual_seed(5)
    x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((4, 6), (6, 6), (6,)))
    index, labels = torch.tensor([0, 2, 3, 1]), torch.tensor([1, 0, 5, 3])
    h = F.linear(x, w, b)
    h = F.gelu(h) + F.silu(h) * 0.5 - F.relu(h) / 3
    h = F.layer_norm(h, (6,), b.exp(), b * 2)
    parts = h.chunk(2, dim=-1)
    h = torch.cat([parts[1].tanh(), parts[0].sigmoid()], dim=-1).contiguous()
    h = h.view(2, 2, 6).transpose(0, 1).reshape(4, 6).index_select(0, index)
    h = torch.where(h > 0, h.abs().sqrt(), h.square()) + x.masked_fill(x < 0, 0.1)
    attended = torch.softmax(h @ h.t() / 2.0, dim=-1) @ h
    attended = attended + torch.bmm(h.view(1, 4, 6), w.view(1, 6, 6)).squeeze(0).clamp(-1, 1)
    k = attended.clone()
    k[1:3] = k[0:2] * 2
    k[k > 1.5] = 0.25
    k.mul_(1.1).add_(x, alpha=0.1)
    k[:, 0].sub_(0.3)
    pieces = [
        k.sum(0),
        k.mean(-1).expand(3, 4).sum(0),
        k.amax(1),
        k.cumsum(1)[:, -1],
        k.std(0),
        k.norm(dim=1),
        k.prod(1),
        k.logsumexp(0),
        k.max(1).values,
        k.sort(1).values[:, 2],
        k.topk(2).values.flatten(),
        k.gather(1, index.view(4, 1)).flatten(),
        k.triu().sum(1),
        k.diagonal(),
        k.roll(1, 0)[0],
        k.flip(0)[1],
        k.var(1),
        k.narrow(1, 1, 2).flatten(),
        k.unsqueeze(0).permute(2, 0, 1).flatten(),
        F.embedding(index, k).flatten(),
        torch.stack([k, k]).select(0, 1).flatten(),
        torch.einsum("ij,ij->i", k, k),
        k.pow(3).flatten(),
        torch.maximum(k, x).flatten(),
        torch.addmm(b, k, w).flatten(),
        F.log_softmax(k, 1).flatten(),
        k.double().float().flatten(),
    ]
    loss = (
        F.cross_entropy(k, labels)
        + F.mse_loss(k, x)
        + sum((p * torch.arange(1.0, p.numel() + 1)).mean() for p in pieces)
    )
    loss.backward()
    return [loss.item(), *(p.tolist() for p in pieces), x.grad.tolist(), w.grad.tolist(), b.grad.tolist()]


if __name__ == "__main__":
    print(json.dumps(program()))
