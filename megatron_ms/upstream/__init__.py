"""Upstream's programs: where their trees are, which flags they take, and the command that runs one."""
