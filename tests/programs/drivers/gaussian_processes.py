"""Gaussian processes of gpytorch: exact with several kernels, by inducing points, of several tasks, of classes."""

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
    SpectralMixtureKernel,
)

STEPS = 4
torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(6 * x) + 0.1 * torch.randn(40)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, likelihood, tasks=0):
        given = y if not tasks else torch.stack([y, torch.cos(6 * x)], -1)
        super().__init__(x, given, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel
        self.tasks = tasks
        if tasks:
            self.mean_module = gpytorch.means.MultitaskMean(self.mean_module, tasks)
            self.covar_module = gpytorch.kernels.MultitaskKernel(kernel, num_tasks=tasks, rank=1)

    def forward(self, x):
        kind = MultitaskMultivariateNormal if self.tasks else MultivariateNormal
        return kind(self.mean_module(x), self.covar_module(x))


class Inducing(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(
            gpytorch.variational.VariationalStrategy(
                self, points, distribution, learn_inducing_locations=True
            )
        )
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), ScaleKernel(RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def train(name, model, likelihood, objective, target) -> None:
    """Print the losses of some steps, the norm of the gradients, and the prediction at three points."""
    parameters = [
        *model.parameters(),
        *(p for p in likelihood.parameters() if p not in {*model.parameters()}),
    ]
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    model.train()
    likelihood.train()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = -objective(model(x), target)
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()
        print(f"{name} {step}: loss {loss.item():.7g} gradient {norm.item():.6g}", flush=True)
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.tensor([0.1, 0.5, 1.2])))
        print(
            f"{name} mean",
            *predicted.mean.flatten().tolist(),
            "variance",
            *predicted.variance.flatten().tolist(),
        )


KERNELS = {
    "RBF": lambda: ScaleKernel(RBFKernel()),
    "Matern 3/2": lambda: ScaleKernel(MaternKernel(nu=1.5)),
    "Matern 5/2": lambda: ScaleKernel(MaternKernel(nu=2.5)),
    "periodic + linear": lambda: PeriodicKernel() + LinearKernel(),
    "rational quadratic": lambda: ScaleKernel(RQKernel()),
    "spectral mixture": lambda: SpectralMixtureKernel(num_mixtures=3),
}
for name, kernel in KERNELS.items():
    torch.manual_seed(1)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(kernel(), likelihood)
    train(name, model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), y)
torch.manual_seed(2)
likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
model = Exact(RBFKernel(), likelihood, tasks=2)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
train("two tasks", model, likelihood, objective, model.train_targets)
for name, likelihood, target in (
    ("inducing points", gpytorch.likelihoods.GaussianLikelihood(), y),
    ("classes", gpytorch.likelihoods.BernoulliLikelihood(), (y > 0).float()),
    ("student's t", gpytorch.likelihoods.StudentTLikelihood(), y),
):
    torch.manual_seed(3)
    model = Inducing(x[::5].clone())
    train(name, model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, len(x)), target)
