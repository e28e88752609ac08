"""Checkpoints that lie, made at random and loaded: `python -m tests.fuzz --cases N --seed S`.

A case is a function of (seed, number) alone (`cases.py`). Worker processes load many cases each (`worker.py`), the parent
sees crashes and hangs and goes on behind them (`__main__.py`). `python -m tests.fuzz --seed S --only NUMBER` runs one
case here, with its traceback.
"""
