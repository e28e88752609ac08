"""torch.fx.passes.dialect.common: passes for graphs of any operators."""
