"""The page of Megatron-LM's unit tests: what is counted, why it failed, and which files were not measured."""

from __future__ import annotations

from pathlib import Path

from tests.megatron import unit_tests_report as report

RESULTS = {
    "a/test_one.py": {
        "1": {
            "tests/unit_tests/a/test_one.py::test_x": ["passed", ""],
            "tests/unit_tests/a/test_one.py::test_y[1]": [
                "failed",
                "RuntimeError: Grid shape [2, 2] is over sized with world size 1 and rank offset 0",
            ],
            "tests/unit_tests/a/test_one.py::test_z": ["failed", "TypeError: no"],
        }
    }
}


def test_the_page_counts_and_names_what_is_not_measured() -> None:
    page = report.markdown(
        RESULTS, "0.19.0", Path("docs/some.md"), ["a/test_one.py", "b/test_two.py"], "A run of one hour."
    )
    assert (
        page.startswith("# Megatron-LM's own unit tests, Megatron Core 0.19.0\n")
        and "--table docs/some.md`" in page
    )
    assert "A run of one hour.\n\nNot measured: b (1 file).\n" in page
    assert "| 1 | 1 | 2 | 0 | 1 needs more ranks, 1 open | 50.0% |" in page
    assert "| a/test_one.py | test_z | 1 x 1 | TypeError: no |" in page


def test_reasons_of_newer_releases() -> None:
    for reason, why in {
        "extensions in PyTorch's C++ API are not supported": "compiles C++ against PyTorch",
        "cannot import name 'check_nvfp4_support' from": "needs eight-bit floats of a GPU",
        "Unable to instantiate HuggingFace AutoTokenizer for /opt/data/tokenizers": "needs a download",
        "Failed: async def functions are not natively supported.": "needs a package that is not installed",
        "ImportError: omegaconf is required. Install via `pip install omegaconf`.": "needs a package that is not installed",
        "AssertionError: assert 1 == 2": "",
    }.items():
        assert report.excuse(reason) == why


def test_reasons_name_no_folder_of_the_machine() -> None:
    told = "ImportError: no 'x' from 'a.b' (/home/me/work/a/b.py), see https://pytorch.org/docs/stable/x.html or /x.py"
    assert (
        report.short(told)
        == "ImportError: no 'x' from 'a.b' (a/b.py), see https://pytorch.org/docs/stable/x.html or /x.py"
    )
    assert (
        report.short("in 'msc://default/tmp/one/two/three.yaml'")
        == "in 'msc://default/tmp/one/two/three.yaml'"
    )


def test_groups_that_an_earlier_test_has_destroyed() -> None:
    lost = "AssertionError: expert model parallel group is not initialized (megatron/core/parallel_state.py:2240)"
    few = "RuntimeError: world_size (1) is not divisible by 2 (megatron/core/parallel_state.py:823)"
    for others, row in (
        (
            {"b": ["failed", few]},
            "| 1 | 0 | 2 | 0 | 1 follows a test that needs more ranks, 1 needs more ranks |",
        ),
        ({"b": ["passed", ""]}, "| 1 | 1 | 1 | 0 | 1 open |"),
    ):
        results = {"a/test_one.py": {"1": {"a": ["failed", lost], **others}}}
        page = report.markdown(results, "0.19.0", Path("docs/some.md"), ["a/test_one.py"], "")
        assert row in page, page
