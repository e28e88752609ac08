"""Makes the checks of TransformerEngine's version work if TransformerEngine is not installed."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
        import transformer_engine as te

        if hasattr"""
_AFTER = """\
        try:
            import transformer_engine as te
        except ImportError:
            return "0.0.0"  # none: older than every version that is asked for

        if hasattr"""
_HEAD = "def get_te_version():\n    def get_te_version_str():\n"
_TAIL = "(te, '__version__'):\n            return str(te.__version__)\n"

PATCH = Patch(
    id="version-of-transformer-engine",
    target="megatron/core/utils.py",
    symbol="get_te_version",
    reason="every parallel run calls is_te_min_version(), which imports TransformerEngine, a library that exists for CUDA only",
    reason_class="environment",
    since="0.12.0",
    before="0.13.0",
    fingerprints=("3fe102c134a5a137ba9ffa034f341ba21625198727c17fb102ac356bd0d6416a",),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE + _TAIL, _HEAD + _AFTER + _TAIL),
    untouched="def get_te_version():\n    return None\n",
)
