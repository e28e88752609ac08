"""The section `evaluate` of a configuration. The model is that of the section `generate`."""

from __future__ import annotations

from pydantic import field_validator

from ..config import Place, Section, key


class Evaluate(Section):
    """The section `evaluate`."""

    benchmarks: dict[str, Place] = key(
        help="the name of each benchmark and the folder or file of its data, in its own layout (`--list`)",
        min_length=1,
    )
    output: Place = key(help="a new folder for results.json, samples.jsonl and results.png")
    shots: int | None = key(None, "examples before each question; by default those of the benchmark", ge=0)
    limit: int | None = key(None, "only so many questions of each subject", ge=1)
    haystack: list[int] = key([4000, 8000], "needlebench: characters of the documents", min_length=1)
    batch_size: int = key(8, "answers that are scored together", ge=1)

    @field_validator("benchmarks")
    @classmethod
    def _known(cls, value: dict[str, str]) -> dict[str, str]:
        from .benchmarks import BENCHMARKS

        for name in value:
            if name not in BENCHMARKS:
                raise ValueError(f"there is no benchmark {name}; there are {', '.join(sorted(BENCHMARKS))}")
        return value
