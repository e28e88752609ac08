"""Normalizing flows of normflows, trained on points of two moons: the loss, the gradients and samples."""

import normflows as nf
import numpy
import torch

STEPS = 4


def mlp(*sizes):
    return nf.nets.MLP([*sizes], init_zeros=False)


def coupling():
    for i in range(4):
        mask = torch.tensor([i % 2, 1 - i % 2], dtype=torch.float32)
        yield nf.flows.MaskedAffineFlow(mask, mlp(2, 16, 2), mlp(2, 16, 2))
        yield nf.flows.ActNorm(2)


def real_nvp():
    for _ in range(3):
        yield nf.flows.AffineCouplingBlock(mlp(1, 16, 2))
        yield nf.flows.Permute(2, mode="swap")


FLOWS = {
    "planar": lambda: [nf.flows.Planar((2,)) for _ in range(4)],
    "radial": lambda: [nf.flows.Radial((2,)) for _ in range(4)],
    "masked coupling": lambda: [*coupling()],
    "affine coupling": lambda: [*real_nvp()],
    "autoregressive": lambda: [nf.flows.MaskedAffineAutoregressive(2, 16, num_blocks=1) for _ in range(2)],
    "spline coupling": lambda: [nf.flows.CoupledRationalQuadraticSpline(2, 1, 16) for _ in range(2)],
    "spline autoregressive": lambda: [
        nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16),
        nf.flows.LULinearPermute(2),
    ],
    "residual": lambda: [
        nf.flows.Residual(
            nf.nets.LipschitzMLP([2, 16, 2], init_zeros=False, lipschitz_const=0.9), reduce_memory=False
        )
    ],
    "1x1 convolution": lambda: [nf.flows.InvertibleAffine(2), nf.flows.InvertibleAffine(2, use_lu=False)],
}
for name, make in FLOWS.items():
    torch.manual_seed(1)
    numpy.random.seed(1)  # the residual flow draws the number of its terms
    target = nf.distributions.TwoMoons()
    model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), make(), target)
    points = target.sample(64)
    # Adam divides gradients by their size, and some of these are nothing but rounding.
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        optimizer.zero_grad()
        # Planar and radial flows have no inverse in closed form, so they are trained from their samples.
        loss = model.reverse_kld(64) if name in ("planar", "radial") else model.forward_kld(points)
        loss.backward()
        norm = torch.stack([p.grad.double().norm() for p in model.parameters() if p.grad is not None]).norm()
        print(f"{name} {step}: loss {loss.item():.7g} gradient {norm.item():.6g}", flush=True)
        optimizer.step()
    with torch.no_grad():
        drawn, logarithms = model.sample(3)
    print(name, *(f"{value:.6g}" for value in (*drawn.flatten().tolist(), *logarithms.tolist())))
