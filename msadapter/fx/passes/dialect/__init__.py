"""torch.fx.passes.dialect: passes by the kind of operators that graphs consist of."""
