"""torch.fx.passes.utils: finding parts of graphs, and making modules of them."""
