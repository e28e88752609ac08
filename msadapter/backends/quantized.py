"""torch.backends.quantized: quantized engines do not exist here."""

supported_engines = ["none"]
engine = "none"
