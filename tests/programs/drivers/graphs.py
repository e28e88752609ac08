"""Layers of torch_geometric on a small random graph: training steps and the gradients of the inputs."""

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, softmax, to_undirected

torch.manual_seed(0)
nodes, width = 24, 8
edges = to_undirected(torch.randint(0, nodes, (2, 60)))
x, target = torch.randn(nodes, width), torch.randint(0, 3, (nodes,))
LAYERS = {
    "GCN": lambda: GCNConv(width, 3),
    "GAT": lambda: GATConv(width, 3, heads=2, concat=False),
    "GATv2": lambda: GATv2Conv(width, 3, heads=2, concat=False),
    "SAGE": lambda: SAGEConv(width, 3),
    "GraphConv": lambda: GraphConv(width, 3),
    "GIN": lambda: GINConv(
        torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    ),
}
for name, make in LAYERS.items():
    torch.manual_seed(1)
    layer = make()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for step in range(4):
        given = x.clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(layer(given, edges), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{name} {step}: loss {loss.item():.7g} gradient {given.grad.norm().item():.6g}", flush=True)
graphs = [Data(x=torch.randn(n, width), edge_index=torch.randint(0, n, (2, 2 * n))) for n in (3, 5, 4)]
batch = Batch.from_data_list(graphs)
torch.manual_seed(2)
print(
    "pooled", *global_mean_pool(GCNConv(width, 2)(batch.x, batch.edge_index), batch.batch).flatten().tolist()
)
print("degree", *degree(edges[0], nodes).tolist(), add_self_loops(edges)[0].shape[1])
print("softmax", *softmax(torch.arange(10.0), torch.tensor([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])).tolist())
