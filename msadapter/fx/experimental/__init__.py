"""torch.fx.experimental: graphs of programs that were run on example values, and questions about symbolic sizes."""
