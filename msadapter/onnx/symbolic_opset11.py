"""torch.onnx.symbolic_opset11: functions that export operators. There are none, because nothing is exported here."""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"torch.onnx.symbolic_opset11.{name} is not supported: export to ONNX is not (docs/coverage.md)"
    )
