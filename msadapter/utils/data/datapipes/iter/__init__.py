"""torch.utils.data.datapipes.iter: only the module of the class that shuffles."""
