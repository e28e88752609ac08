"""Bloom's norm after the embeddings, which MindSpeed-LLM has and switches off."""

from ..edits import chain, insert_after, replace
from ..rules import Patch

_REGISTERED = "MindSpeedFeaturesManager.register_features_args(parser)\n"
_FLAG = (
    "    parser.add_argument('--embed-layernorm', action='store_true', help='a norm after the embeddings')\n"
)
_BEFORE = "args.embed_layernorm = False"
_AFTER = "args.embed_layernorm = getattr(args, 'embed_layernorm', False)"
_HEAD = "def process_args_v2(parser):\n    "
_MIDDLE = "    return parser\n\n\ndef _add_dummy_args_v2(args):\n    "

PATCH = Patch(
    id="norm-after-the-embeddings",
    target="mindspeed_llm/training/arguments.py",
    symbol="_add_dummy_args_v2",
    reason="the embedding of MindSpeed-LLM has the norm that Bloom needs, and its converter gives the flag --embed-layernorm for "
    "Bloom, but the parser of the training does not take it, and sets the value to False afterwards",
    reason_class="upstream bug",
    link="https://gitcode.com/Ascend/MindSpeed-LLM",
    since="2.3.0",
    before="27.0.0",
    fingerprints=(
        "94b6981d8fe4bcfbf6471e55be033ef2f57b8d977df1a240d22479efef29b29f",  # 2.3.0
        "a4495be6b5e3593688f4675849a91950d31e9b5d61c5b9a299b8da8189550f15",  # 26.1.0
    ),
    edit=chain(insert_after(_REGISTERED, _FLAG), replace(_BEFORE, _AFTER)),
    example=(
        f"{_HEAD}{_REGISTERED}{_MIDDLE}{_BEFORE}\n",
        f"{_HEAD}{_REGISTERED}{_FLAG}{_MIDDLE}{_AFTER}\n",
    ),
    untouched="def process_args_v2(parser):\n    return parser\n",
)
