"""Ordinary programs, run unmodified with PyTorch and with msadapter: does each run, and are its numbers PyTorch's?

See __main__.py for the command. The result is docs/programs.md.
"""
