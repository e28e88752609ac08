"""torch.fx.passes.infra: the classes of a pass."""
