"""One training step of the course's model on an NPU, and what it launches: python -m msadapter --simulated-npu step.py

On the simulated NPU, the counts come from MindSpore's own Ascend plugin, which calls CANN's stand-ins. The program prints JSON.
"""

import collections
import json
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from model import Llama  # noqa: E402

from msadapter._host import simulator  # noqa: E402


def main():
    torch.manual_seed(0)
    device = torch.device("npu")
    model = Llama().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(256, (8, 65)).to(device)

    def step():
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    losses = [step()]  # the first step also makes the optimizer's moments
    before = collections.Counter(simulator.counters())
    losses.append(step())
    launched = collections.Counter(simulator.counters()) - before
    operators = {name: count for name, count in sorted(launched.items()) if name.startswith("aclnn")}
    print(json.dumps({"losses": losses, "operators": operators}))


main()
