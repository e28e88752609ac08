"""Blending: the order of sources is that of Megatron's C++ helper, and realised ratios are near the wanted ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy
import pytest

from megatron_ms.data import blending
from megatron_ms.data.reading import megatron_data_path
from megatron_ms.data.section import Data
from megatron_ms.errors import UserError
from tests.toolkit.data import toys

GOLDEN = Path(__file__).with_name("golden") / "blending.json"


def weights_of(seed: int) -> tuple[list[float], int]:
    """Weights and a number of samples: a few sources, some of them rare, or many that are equal."""
    random = numpy.random.default_rng(seed)
    count = int(random.integers(1, 12))
    weights = random.random(count) ** 3 + 1e-4 if seed % 3 else numpy.ones(count)
    return blending.normalised(list(map(float, weights))), int(random.integers(1, 5000))


def digest(sources: numpy.ndarray, numbers: numpy.ndarray) -> str:
    assert (sources.dtype, numbers.dtype) == (numpy.int16, numpy.int64)
    return hashlib.sha256(sources.tobytes() + numbers.tobytes()).hexdigest()


def test_the_index_is_that_of_megatrons_helper() -> None:
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [digest(*blending.blending_index(*weights_of(seed))) for seed in range(len(recorded))] == recorded


def record(library: Path, count: int) -> list[str]:
    """The hashes of what Megatron's compiled helper makes."""
    spec = importlib.util.spec_from_file_location("helpers_cpp", library)
    assert spec is not None and spec.loader is not None
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    found = []
    for seed in range(count):
        weights, size = weights_of(seed)
        sources, numbers = numpy.zeros(size, numpy.int16), numpy.zeros(size, numpy.int64)
        helper.build_blending_indices(sources, numbers, numpy.array(weights), len(weights), size, False)
        found.append(digest(sources, numbers))
    return found


def test_megatrons_helper_still_gives_what_is_recorded(converted: Path) -> None:
    library = next((converted / "megatron/core/datasets").glob("helpers_cpp*.so"))
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert record(library, len(recorded)) == recorded


@pytest.mark.parametrize("weights", [[0.5, -1.0], [0.0], [], [float("nan")], [float("inf"), 1.0]])
def test_weights_must_be_positive_numbers(weights: list[float]) -> None:
    with pytest.raises(UserError):
        blending.normalised(weights)


def test_a_ratio_that_was_missed_is_an_error() -> None:
    assert [one.share for one in blending.realised(["a", "b"], [3, 1], [75, 25])] == [0.75, 0.25]
    with pytest.raises(UserError, match=r"source a: 0\.5000 of 100 samples come from it, not 0\.7500"):
        blending.realised(["a", "b"], [3, 1], [50, 50])


def _sources(tmp_path: Path, **weights: float) -> list[dict]:
    found = []
    for name, weight in weights.items():
        rows = [{"text": name * (number + 1)} for number in range(6)]
        found.append({"path": str(toys.write_rows(tmp_path / f"{name}.jsonl", rows)), "weight": weight})
    return found


def _lines(made) -> list[str]:
    lines = [json.loads(line)["input_ids"] for line in made.files[0].read_text().splitlines()]
    return [bytes(ids[:-1]).decode() for ids in lines]


def test_rows_are_mixed_until_a_source_ends(make, tmp_path: Path) -> None:
    (made,) = make(sources=_sources(tmp_path, a=3, b=1), format="jsonl")
    assert _lines(made) == ["a", "b", "aa", "aaa", "aaaa", "bb", "aaaaa", "aaaaaa"]
    assert [(one.name, one.samples, one.share) for one in made.ratios] == [
        ("a.jsonl", 6, 0.75),
        ("b.jsonl", 2, 0.25),
    ]


def test_short_sources_begin_again(make, tmp_path: Path) -> None:
    (made,) = make(sources=_sources(tmp_path, a=3, b=1), format="jsonl", repeat=True)
    mixed = _lines(made)
    assert [one for one in mixed if one[0] == "b"] == ["b" * count for count in range(1, 7)]
    assert [one for one in mixed if one[0] == "a"][:8] == ["a" * (count % 6 + 1) for count in range(8)]


def test_the_data_path_names_files_and_weights() -> None:
    keys = {"tokenizer": "bytes", "output": "out/set"}
    weighted = [{"path": "a/x.jsonl", "weight": 3}, {"dataset": "b/y", "weight": 0.5, "name": "z"}]
    assert megatron_data_path(Data(sources=weighted, keys=["p", "q"], **keys)) == [
        *["3", "out/set_x_p_document", "0.5", "out/set_z_p_document"],
        *["3", "out/set_x_q_document", "0.5", "out/set_z_q_document"],
    ]
    assert megatron_data_path(Data(sources=["a", "b"], **keys)) == ["out/set_text_document"]
    assert megatron_data_path(Data(sources="a", task="pairs", template="qwen", **keys)) == ["out/set"]


def test_megatron_mixes_files_of_their_own(make, tmp_path: Path) -> None:
    one, two = make(sources=_sources(tmp_path, a=3, b=1))
    assert [made.files[0].name for made in (one, two)] == [
        "set_a_text_document.bin",
        "set_b_text_document.bin",
    ]
    assert one.stamp["counts"]["documents"] == two.stamp["counts"]["documents"] == 6
