"""The base of a section of the configuration: pydantic checks its keys, and the keys tell how they are documented and passed on."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A section of the YAML file. Every key is declared with `key`; an unknown one is an error that names the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def takes_flags(cls) -> bool:
        """True if further keys are allowed, which are then upstream's own flags."""
        return cls.model_config.get("extra") == "allow"


def key(default: Any = ..., help: str = "", flag: str = "", **limits: Any) -> Any:
    """Declares a key of a section.

    default: its value when it is absent; without one the key must be given.
    flag: the upstream flag, without dashes at its front, that receives the value. The flag's name is accepted as the key too.
    limits: of pydantic's Field, such as gt=0.
    """
    return Field(default, description=help, json_schema_extra={"flag": flag}, **limits)


def flags_of(kind: type[Section]) -> dict[str, str]:
    """Upstream flag -> our key, for the keys of a section that have one. Flags are written with underscores."""
    found = {}
    for name, field in kind.model_fields.items():
        extra = field.json_schema_extra
        flag = extra.get("flag") if isinstance(extra, dict) else None
        if flag:
            found[str(flag).replace("-", "_")] = name
    return found
