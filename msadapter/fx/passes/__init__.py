"""torch.fx.passes: what passes over graphs are made of."""
