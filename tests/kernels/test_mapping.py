"""The Ascend side without the device: our operand names against the headers of MindSpore's operators."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import msadapter as torch
from kernels_ascend import _mapping
from kernels_ascend.__main__ import COMPOSITE, PAGE, page, rows, table
from msadapter._host import native as _native

HEADERS = Path(find_spec("mindspore").submodule_search_locations[0]) / "include"
PYBOOST = HEADERS / "mindspore/ccsrc/include/pynative/utils/pyboost/auto_generate"


def _operands(name: str) -> list[str]:
    for path in PYBOOST.glob("*.h"):
        text = path.read_text()
        if f"class PYBOOST_API {name} : public" in text:
            call = re.search(r"virtual [^;]*?\bCall\(([^;]*)\) = 0;", text)
            names = re.findall(r"&(\w+)", call.group(1))
            return [re.sub("_tensor_list$|_tensor$", "", one) for one in names]
    pytest.fail(f"MindSpore has no operator {name}")


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
@pytest.mark.parametrize("name", sorted(_mapping.OPERATORS))
def test_operands_are_those_of_mindspore(name):
    assert list(_mapping.OPERATORS[name]) == _operands(name)


def test_the_native_build_binds_all_of_them():
    assert _native.fused_names() == set(_mapping.OPERATORS)


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
def test_layout_numbers_are_those_of_mindspore():
    text = (HEADERS / "mindspore/ops/include/op_enum.h").read_text()
    body = re.search(r"enum FASInputLayoutMode : int64_t \{(.*?)\}", text, re.DOTALL).group(1)
    numbers = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", body)}
    assert numbers.items() >= _mapping.LAYOUTS.items()


def test_an_operand_too_few_is_an_error():
    with pytest.raises(TypeError, match="takes the operands x, gamma, epsilon"):
        _mapping.ascend("RmsNorm", x=1, gamma=2)


def test_the_table_names_proofs_that_exist():
    """Every operator has a drawn test or a test between ranks, except for the few that are listed here."""
    found = {name: tests for name, _, operators, tests in rows() if operators != "refused by name"}
    assert {name for name, tests in found.items() if not tests} == set()
    assert {name for name, tests in found.items() if tests[0].kind == "fixed"} == {"reuse_data_ptr"}
    root = Path(__file__).resolve().parents[1]
    sources = {path.stem: path.read_text() for path in root.rglob("*.py")}
    for tests in found.values():
        for one in tests:
            file, function = one.test.split("::")
            assert f"\ndef {function}(" in sources[file]
    assert "| npu_rms_norm | yes | RmsNorm, RmsNormGrad | test_fused_cases::test_rms_norm_drawn" in table()


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m kernels_ascend"


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
def test_the_table_says_where_mindspore_has_more():
    """MindSpore has no operator with the name of a composite, or the table says that it is not called."""
    have = {
        name.lower()
        for path in PYBOOST.glob("*.h")
        for name in re.findall(r"class PYBOOST_API (\w+) :", path.read_text())
    }
    assert {name.lower() for name in _mapping.NOT_CALLED.values()} <= have
    for name, _, operators, _ in rows():
        if operators == COMPOSITE:
            assert name.strip("_").removeprefix("npu_").replace("_", "") not in have, name


def test_what_has_no_gradient_says_so():
    """The table's entry "raises" is true: the operators whose backward raises are listed by name."""
    kinds = {name: gradient for name, gradient, *_ in rows()}
    assert {
        kinds[name] for name in ("npu_fusion_attention_grad", "npu_alltoallv_gmm", "npu_moe_init_routing")
    } == {"raises"}
    assert kinds["npu_moe_compute_expert_tokens"] == "integers" and kinds["npu_matmul_add_fp32"] == "in place"


def test_results_without_a_derivative_are_marked_only_where_something_is_recorded():
    """Marked results raise in backward and name the operator. Others are what the function returned, itself."""
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    made = []

    @_mapping.without_derivative
    def npu_made_up(tensors, more=None, kind=tuple):
        made[:] = [x * 2, torch.arange(2), "text", x * 3]
        return kind(made) if kind in (tuple, list) else made[0]

    try:
        for recorded, arguments in ((False, ([x], x)), (True, ([x], y)), (True, ([x, (y,)], None))):
            for enabled in (True, False):
                for kind in (tuple, list, "one"):
                    with torch.set_grad_enabled(enabled):
                        found = npu_made_up(arguments[0], more=arguments[1], kind=kind)
                    assert kind == "one" or type(found) is kind
                    results = [found] if kind == "one" else found
                    same = [a is b for a, b in zip(results, made, strict=False)]
                    if not (recorded and enabled):
                        assert all(same)
                        continue
                    assert same == [False, True, True, False][: len(same)]
                    assert (results[0] == made[0]).all()
                    with pytest.raises(NotImplementedError, match="derivative for npu_made_up"):
                        results[0].sum().backward()
    finally:
        _mapping.UNDERIVABLE.discard("npu_made_up")
    assert y.grad is None
