"""torch.distributed.pipelining.pipeline: where models are split, and what their stages hold and compute."""


def _model(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("shift", torch.ones(4))

        def forward(self, x):
            return torch.relu(self.linear(x)) + self.shift

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(10, 4), nn.Linear(4, 10)
            self.layers = nn.ModuleDict({str(i): Block() for i in range(4)})

        def forward(self, x):
            start = hidden = self.embedding(x)
            for layer in self.layers.values():
                hidden = layer(hidden)
            return self.head(hidden + start)

    model = Model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) % 5 * 0.1 - 0.2)
    return model


def _tools(torch):
    import importlib

    return importlib.import_module(f"{torch.__name__}.distributed.pipelining")


def _stages(pipe) -> list:
    return [sorted(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)]


def _quiet(function, *args, **kwargs):
    """Call a function without what PyTorch's export writes while it works."""
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()):
        return function(*args, **kwargs)


def split_by_names(torch):
    tools, model = _tools(torch), _model(torch)
    ids = torch.arange(6).reshape(2, 3)
    spec = {"layers.1": tools.SplitPoint.BEGINNING, "layers.3": tools.SplitPoint.END}
    pipe = _quiet(tools.pipeline, model, (ids,), split_spec=spec)
    return [pipe.num_stages, _stages(pipe), pipe(ids), sorted(pipe.state_dict())[:3], pipe.info().num_stages]


def not_split(torch):
    tools, model = _tools(torch), _model(torch)
    ids = torch.arange(6).reshape(2, 3)
    pipe = _quiet(tools.pipeline, model, (ids,))
    return [pipe.num_stages, _stages(pipe), pipe(ids), pipe.has_loss_and_backward, pipe.loss_spec]


def split_by_the_model(torch):
    tools = _tools(torch)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

        def forward(self, x):
            x = self.a(x)
            tools.pipe_split()
            return self.b(x)

    return _stages(_quiet(tools.pipeline, Model(), (torch.ones(2, 4),)))


def unknown_module(torch):
    tools, model = _tools(torch), _model(torch)
    return tools.pipeline(model, (torch.zeros(2, 3).long(),), split_spec={"nope": tools.SplitPoint.BEGINNING})


def unknown_stage(torch):
    tools, model = _tools(torch), _model(torch)
    return _quiet(tools.pipeline, model, (torch.zeros(2, 3).long(),)).get_stage_module(7)


def two_ways_to_split(torch):
    tools, model = _tools(torch), _model(torch)
    return tools.pipeline(
        model, (torch.zeros(2, 3).long(),), split_spec={}, split_policy=lambda module: module
    )
