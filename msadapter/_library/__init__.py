"""torch._library: where PyTorch keeps what torch.library shows."""
