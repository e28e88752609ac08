"""The agent of this process and its references, between ``init_rpc`` and ``shutdown``."""

from __future__ import annotations

from typing import Any

from .agent import RpcAgent

_agent: RpcAgent | None = None
_references: Any = None


def begin(agent: RpcAgent, references) -> None:
    global _agent, _references
    _agent, _references = agent, references


def stop() -> None:
    global _agent, _references
    _agent = _references = None


def has_agent() -> bool:
    return _agent is not None


def agent() -> RpcAgent:
    """Return the agent of this process. RuntimeError before ``init_rpc``."""
    if _agent is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _agent


def references():
    """Return the references of this process. RuntimeError before ``init_rpc``."""
    agent()
    return _references
