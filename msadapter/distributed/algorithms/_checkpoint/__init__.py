"""Recomputation of modules' activations."""
