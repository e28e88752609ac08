"""Models of pyro: variational inference with several guides, enumeration, Hamiltonian Monte Carlo, importance sampling."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Importance, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import (
    AutoDelta,
    AutoDiagonalNormal,
    AutoIAFNormal,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)

STEPS = 6
torch.manual_seed(0)
x = torch.randn(30, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * torch.randn(30)


def regression(x, y=None):
    weights = pyro.sample("weights", dist.Normal(torch.zeros(3), 1).to_event(1))
    shift = pyro.sample("shift", dist.StudentT(4.0, 0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(-1.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weights + shift, scale), obs=y)


@config_enumerate
def mixture(data):
    weights = pyro.sample("weights", dist.Dirichlet(torch.full((3,), 0.5)))
    rate = pyro.sample("rate", dist.Gamma(2.0, 1.0))
    with pyro.plate("components", 3):
        places = pyro.sample("places", dist.Normal(0.0, 3.0))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("observed", dist.Normal(places[which], rate), obs=data)


@config_enumerate
def chain(data):
    moves = pyro.sample("moves", dist.Dirichlet(torch.eye(3) * 4 + 1).to_event(1))
    shown = pyro.sample("shown", dist.Beta(torch.ones(3), torch.tensor([1.0, 2.0, 4.0])).to_event(1))
    state = 0
    for t in pyro.markov(range(len(data))):
        state = pyro.sample(f"state {t}", dist.Categorical(moves[state]))
        pyro.sample(f"seen {t}", dist.Bernoulli(shown[state]), obs=data[t])


def infer(name, model, guide, loss, *given) -> None:
    pyro.clear_param_store()
    pyro.set_rng_seed(1)
    svi = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.02}), loss)
    for step in range(STEPS):
        print(f"{name} {step}: loss {svi.step(*given):.7g}", flush=True)
    parameters = {key: value.double().sum().item() for key, value in pyro.get_param_store().items()}
    print(name, *(f"{value:.6g}" for key, value in sorted(parameters.items())))


GUIDES = (AutoDelta, AutoNormal, AutoDiagonalNormal, AutoMultivariateNormal, AutoLowRankMultivariateNormal)
for guide in (*GUIDES, AutoIAFNormal):
    pyro.set_rng_seed(1)
    infer(guide.__name__, regression, guide(regression), Trace_ELBO(num_particles=2), x, y)
hidden = pyro.poutine.block(mixture, hide=["which"])
infer("mixture", mixture, AutoNormal(hidden), TraceEnum_ELBO(max_plate_nesting=1), y)
hidden = pyro.poutine.block(chain, expose=["moves", "shown"])
infer("chain", chain, AutoDelta(hidden), TraceEnum_ELBO(max_plate_nesting=0), (y[:12] > 0).float())

pyro.clear_param_store()
pyro.set_rng_seed(2)
sampler = MCMC(NUTS(regression, max_tree_depth=3), num_samples=6, warmup_steps=4, disable_progbar=True)
sampler.run(x, y)
for site, values in sorted(sampler.get_samples().items()):
    print("NUTS", site, *(f"{value:.5g}" for value in values.flatten().tolist()))
pyro.set_rng_seed(3)
posterior = Importance(regression, num_samples=8).run(x, y)
print("importance", *(f"{value:.6g}" for value in torch.stack(posterior.log_weights).tolist()))
drawn = Predictive(regression, num_samples=3)(x[:4])
print("prior", *(f"{value:.6g}" for value in drawn["y"].flatten().tolist()))
