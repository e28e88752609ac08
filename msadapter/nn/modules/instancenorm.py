"""Instance normalisation for 1, 2 and 3 spatial dimensions, with lazy variants."""

import warnings

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Normalises with the statistics of each channel of each sample."""

    _spatial: int

    def __init__(self, num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False,
            device=None, dtype=None, *, bias=True):  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype, bias=bias
        )

    def _get_no_batch_dim(self):
        return self._spatial + 1

    def _check_input_dim(self, input):
        low = self._spatial + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            # Old files contain running statistics, which this module does not keep by default.
            found = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if found:
                error_msgs.append(
                    "Unexpected running stats buffer(s) {} for {} with track_running_stats=False. If "
                    "state_dict is a checkpoint saved before 0.4.0, this may be expected because {} does not "
                    "track running stats by default since 0.4.0.".format(
                        " and ".join(f'"{k}"' for k in found), type(self).__name__, type(self).__name__
                    )
                )
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _normalize(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input):
        self._check_input_dim(input)
        no_batch = self._get_no_batch_dim()
        feature_dim = input.dim() - no_batch
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == no_batch:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (C, L) or (N, C, L)."""

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (C, H, W) or (N, C, H, W)."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (C, D, H, W) or (N, C, D, H, W)."""

    _spatial = 3


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    def initialize_parameters(self, input):
        """Set the number of channels to that of ``input``."""
        super().initialize_parameters(
            input.unsqueeze(0) if input.dim() == self._get_no_batch_dim() else input
        )


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """InstanceNorm1d that reads ``num_features`` from its first input."""

    _spatial = 1
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """InstanceNorm2d that reads ``num_features`` from its first input."""

    _spatial = 2
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """InstanceNorm3d that reads ``num_features`` from its first input."""

    _spatial = 3
    cls_to_become = InstanceNorm3d
