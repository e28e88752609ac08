"""Averages of weights, and the statistics of batch norm that go with them."""

from __future__ import annotations

from tests.golden.answers import refusal


def _averaged(make, use_buffers=False):
    """An average over four states of a model with a float and an integer buffer."""

    def case(torch):
        model = torch.nn.BatchNorm1d(2)
        average = torch.optim.swa_utils.AveragedModel(
            model, use_buffers=use_buffers, **make(torch.optim.swa_utils)
        )
        found = []
        for k in range(4):
            with torch.no_grad():
                model.weight.copy_(torch.tensor([1.0, 2.0]) * (k + 1) ** 2)
                model.running_mean.fill_(float(k * k))
                model.num_batches_tracked.fill_(k * 10)
            average.update_parameters(model)
            inner = average.module
            found.append([inner.weight.tolist(), inner.running_mean.tolist(), int(inner.num_batches_tracked)])
            found.append(int(average.n_averaged))
        model.eval(), average.eval()
        return [found, average(torch.ones(1, 2)).tolist(), sorted(average.state_dict())]

    return case


def functions_of_averages(torch):
    space = torch.optim.swa_utils
    found = []
    for make in (space.get_ema_avg_fn, space.get_ema_multi_avg_fn):
        for decay in (0.0, 1.0, -0.01, 1.01):
            found.append(refusal(make, decay))
    old, new = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 8.0])
    found.append(space.get_ema_avg_fn(0.75)(old, new, 3).tolist())
    found.append(space.get_swa_avg_fn()(old, new, 3).tolist())
    for make in (space.get_ema_multi_avg_fn(0.75), space.get_swa_multi_avg_fn()):
        for count in (3, torch.tensor(3)):
            for mine, given in (
                ([old.clone()], [new.clone()]),
                ([torch.tensor([8, 40])], [torch.tensor([16, 80])]),
            ):
                try:
                    make(mine, given, count)
                except RuntimeError as error:
                    found.append(isinstance(error, RuntimeError))
                found.append([t.tolist() for t in mine])
    return [*found, refusal(space.AveragedModel, torch.nn.Linear(1, 1), None, max, max)[0]]


def updated_statistics(torch):
    found = []
    batches = [torch.tensor([[1.0, 2.0], [3.0, 8.0]]), torch.tensor([[5.0, 1.0], [2.0, 2.0]])]
    for training in (True, False):
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=0.3), torch.nn.Identity())
        model[0].running_mean.fill_(77.0)
        model.train(training)
        torch.optim.swa_utils.update_bn(iter(batches) if training else [(b, 1) for b in batches], model)
        layer = model[0]
        found.append(
            [layer.running_mean.tolist(), layer.running_var.tolist(), layer.momentum, model.training]
        )
        found.append([int(layer.num_batches_tracked), [m.training for m in model.modules()]])
    plain = torch.nn.Linear(2, 2)
    plain.eval()
    torch.optim.swa_utils.update_bn(batches, plain)
    without = torch.nn.BatchNorm1d(2, track_running_stats=False)
    torch.optim.swa_utils.update_bn(batches, without)
    lists = torch.nn.BatchNorm1d(2)
    torch.optim.swa_utils.update_bn([[batches[0], 3], [batches[1], 4]], lists, device="cpu")
    return [*found, plain.training, without.momentum, lists.running_mean.tolist(), lists.momentum]


def statistics_without_a_device(torch):
    layer = torch.nn.BatchNorm1d(2)
    seen = []
    layer.register_forward_pre_hook(
        lambda m, args: seen.append([type(args[0]).__name__, str(args[0].device)])
    )
    for device in (None, "cpu"):
        torch.optim.swa_utils.update_bn([torch.ones(3, 2)], layer, device=device)
    moved = []

    class Batch:
        def to(self, device):
            moved.append(str(device))
            return torch.ones(3, 2)

    torch.optim.swa_utils.update_bn([Batch()], layer, device="cpu")
    return [seen, moved, refusal(torch.optim.swa_utils.update_bn, [Batch()], layer)[0] != "nothing raised"]


CASES = {
    "averaged": _averaged(lambda s: {}),
    "averaged_with_buffers": _averaged(lambda s: {"device": "cpu"}, use_buffers=False),
    "averaged_ema": _averaged(lambda s: {"avg_fn": s.get_ema_avg_fn(0.75)}),
    "averaged_multi_ema": _averaged(
        lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.75)}, use_buffers=True
    ),
    "averaged_multi_swa": _averaged(lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()}),
    "averaged_own": _averaged(
        lambda s: {"avg_fn": lambda old, new, n: old + new * (n + 1)}, use_buffers=True
    ),
}
