"""torch.backends.quantized: there are no quantized engines."""

supported_engines = ["none"]
engine = "none"
