"""torch.utils.model_zoo: the older names of functions of torch.hub."""

from ..hub import (
    _get_torch_home,  # noqa: F401  programs take it from here
    tqdm,  # noqa: F401  programs take it from here
)
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
