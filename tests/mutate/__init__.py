"""Mutation testing: makes small changes to a module and reports those that no test notices.

`python -m tests.mutate msadapter/optim --samples 40 --seed 1`; see `__main__.py`.
"""
