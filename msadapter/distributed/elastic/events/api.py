"""The events of a job: data that can be written as JSON and read back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import ClassVar

__all__ = ["Event", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, Enum):
    """Who has made an event."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):
    """What a node of a rendezvous was doing when an event was made."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Written:
    """A dataclass that is written as JSON, with the names of its fields. Its text is its JSON too."""

    _enumerated: ClassVar[tuple[str, type[Enum]]]  # the field that is an enumeration, and the enumeration

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """The fields as a JSON object."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]  # every subclass is a dataclass

    @classmethod
    def _read(cls, data):
        if isinstance(data, cls):
            return data
        fields, (name, values) = json.loads(data), cls._enumerated
        return cls(**{**fields, name: values[fields[name]]})


@dataclass
class Event(_Written):
    """Something that happened in a job: its name, who says so, the time in milliseconds, and further data."""

    _enumerated = ("source", EventSource)
    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """The event of a JSON text. An event is returned as it is."""
        return Event._read(data)


@dataclass
class RdzvEvent(_Written):
    """Something that happened in a rendezvous. ``error_trace`` is the traceback of a failure, otherwise empty."""

    _enumerated = ("node_state", NodeState)
    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """The event of a JSON text. An event is returned as it is."""
        return RdzvEvent._read(data)
