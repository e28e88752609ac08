"""Recorded answers of real PyTorch, and everything that makes, keeps and compares them.

answers.py  what is kept of an answer, and the rule for error texts
suites.py   every suite: where its cases are, and its file
record.py   writes the files: <python with torch 2.13.0> -m tests.golden.record NAME ...
store.py    the format of the files
verdict.py  the comparison: one table of tolerances, and the known failures
"""
