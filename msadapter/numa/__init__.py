"""torch.numa: how ranks are bound to the cores of a machine."""
