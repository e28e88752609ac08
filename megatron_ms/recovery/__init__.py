"""Keeps a long training going: whole checkpoints, signs of life, restarts, and a checkpoint before the end."""
