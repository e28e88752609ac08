"""The converters: which one a model needs, in the release that is there. MindSpeed-LLM's, or our own where it has none."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..upstream.trees import Trees
from . import names_program
from .forms import FORMS

_OLDER, _NEWER = "convert_ckpt.py", "convert_ckpt_v2.py"
_OWN = names_program.__file__
_KIND = "--model-type-hf"
# The only layers of MindSpeed-LLM whose attention has a bias in its output. Without experts they are dense.
_DENSE_BIAS = ("--spec", "mindspeed_llm.tasks.models.spec.phi35_moe_spec", "layer_spec")


@dataclass(frozen=True)
class Tool:
    """A converter: its program, its name of the kind of model, further flags, and what config.json must say for it.

    arguments: what the arguments in a checkpoint must say for the converter, where those of a training say otherwise.
    """

    program: str
    name: str
    flags: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def builds_models(self) -> bool:
        """The older program builds the models of both sides; the others work on tensors alone."""
        return self.program == _OLDER

    @property
    def own(self) -> bool:
        """True for the program of this project, which works with every upstream, and by the tables of `names`."""
        return self.program == _OWN

    def path(self, trees: Trees) -> Path:
        """The program.

        Raises:
            UserError: the trees do not have it.
        """
        return Path(self.program) if self.own else trees.program(self.program)


# The field model_type of config.json -> its tools. The first counts that the release has: the newer program is quicker, and
# the older one of release 26.1.0 refuses the transformers of that release. A conversion that a tool does wrongly is refused
# when it is made, so a row is only an attempt; docs/toolkit_conversion.md says which are proven.
TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "llama": (
        Tool(_NEWER, "llama2", facts={"attention_bias": False}),
        Tool(_OLDER, "llama2", facts={"attention_bias": False}),
        Tool(
            _OLDER, "llama2", ("--add-qkv-bias", "--add-dense-bias", *_DENSE_BIAS), {"attention_bias": True}
        ),
    ),
    "mistral": (Tool(_NEWER, "llama2"), Tool(_OLDER, "llama2")),
    "qwen2": (Tool(_NEWER, "qwen25"), Tool(_OLDER, "llama2", ("--add-qkv-bias",))),
    "mixtral": (Tool(_OLDER, "mixtral"),),
    # The program takes a layer for a gated one only if the training has had --swiglu, and not --gelu-tanh.
    "gemma": (Tool(_OLDER, "gemma", arguments={"swiglu": True}),),
    "gemma2": (Tool(_NEWER, "gemma2"), Tool(_OLDER, "gemma2", ("--post-norm",))),
    "qwen3": (Tool(_NEWER, "qwen3"),),
    "qwen3_moe": (Tool(_NEWER, "qwen3-moe"),),
    "deepseek_v3": (Tool(_NEWER, "deepseek3"),),
    "bloom": (Tool(_OWN, "bloom"),),
    "gpt_oss": (Tool(_OWN, "gpt_oss"),),
    "glm": (Tool(_OWN, "glm"),),
    "gpt2": (Tool(_OWN, "gpt2"),),
    "glm4_moe": (
        Tool(_NEWER, "glm45", facts={"use_qk_norm": True}),
        Tool(_NEWER, "glm45-air", facts={"use_qk_norm": False}),
        Tool(_NEWER, "glm45-moe"),
    ),
}


def tool_for(trees: Trees, facts: Mapping[str, Any], config: Path) -> Tool:
    """The converter for a model. facts: what its config.json says.

    Raises:
        UserError: there is none.
    """
    kind = str(facts.get("model_type"))
    if kind not in TOOLS:
        listed = ", ".join(sorted({*TOOLS, *FORMS}))
        raise UserError(f"{config}: model_type is {kind}; there are converters for {listed}")
    fitting = [
        tool for tool in TOOLS[kind] if all(facts.get(key, False) == want for key, want in tool.facts.items())
    ]
    for tool in fitting:
        if tool.own:
            return tool
        program = trees.programs / tool.program
        known = kinds(program) if program.is_file() else ()
        if known is None or tool.name in known:
            return tool
    names = " or ".join(f"{tool.name} in {tool.program}" for tool in fitting)
    raise UserError(
        f"{config}: model_type is {kind}, which needs {names}; {trees.programs} has none: try another release"
    )


def kinds(program: Path) -> tuple[str, ...] | None:
    """The kinds of model that a converter declares; None if it declares none. The program is read, not run."""
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and any(
            isinstance(one, ast.Constant) and one.value == _KIND for one in node.args
        ):
            for keyword in node.keywords:
                if keyword.arg == "choices":
                    return tuple(ast.literal_eval(keyword.value))
    return None
