"""The base of a section of the configuration: pydantic checks its keys, and the keys tell how they are documented and passed on."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.config import JsonDict


class Section(BaseModel):
    """A section of the YAML file. Every key is declared with `key`; an unknown one is an error that names the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def takes_flags(cls) -> bool:
        """True if further keys are allowed, which are then upstream's own flags."""
        return cls.model_config.get("extra") == "allow"


def at_home(path: str) -> str:
    """The path with the folder of the user in place of `~` at its front, as a shell has it.

    Raises:
        ValueError: there is no such user, or the system does not know the folder.
    """
    found = os.path.expanduser(path)
    if found.startswith("~"):
        raise ValueError(f"there is no home folder for {path.partition('/')[0]}: write the whole path")
    return found


Place = Annotated[str, AfterValidator(at_home)]  # a path in the configuration


def key(
    default: Any = ..., help: str = "", flag: str = "", megatron_only: bool = False, **limits: Any
) -> Any:
    """Declares a key of a section.

    default: its value when it is absent; without one the key must be given.
    flag: the upstream flag, without dashes at its front, that receives the value. The flag's name is accepted as the key too.
    megatron_only: the backend hf has no use for the key, and refuses it.
    limits: of pydantic's Field, such as gt=0.
    """
    extra: JsonDict = {"flag": flag, "megatron_only": megatron_only}
    return Field(default, description=help, json_schema_extra=extra, **limits)


def flags_of(kind: type[Section]) -> dict[str, str]:
    """Upstream flag -> our key, for the keys of a section that have one. Flags are written with underscores."""
    named = {name: said_of(kind, name, "flag") for name in kind.model_fields}
    return {str(flag).replace("-", "_"): name for name, flag in named.items() if flag}


def said_of(kind: type[Section], name: str, fact: str) -> Any:
    """What the declaration of a key says: its `flag`, or whether it is `megatron_only`."""
    extra = kind.model_fields[name].json_schema_extra
    return extra.get(fact) if isinstance(extra, dict) else None
