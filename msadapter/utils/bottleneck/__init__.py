"""torch.utils.bottleneck of older releases of PyTorch, such as 2.7: a program that shows where a script spends its time."""
