"""Softmax over many classes, which are grouped into clusters by frequency."""

from collections import namedtuple

from ... import ops
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of target classes. Rare classes form clusters with smaller projections.

    ``cutoffs`` are the first classes of the clusters. Cluster i projects its input to ``in_features /
    div_value ** (i + 1)`` features. Classes must be sorted by decreasing frequency.
    """

    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **place),
                    Linear(hidden, size, bias=False, **place),
                )
            )

    def reset_parameters(self):
        """Initialise the head and both projections of every cluster."""
        self.head.reset_parameters()
        for down, out in self.tail:
            down.reset_parameters()
            out.reset_parameters()

    def forward(self, input_, target_):
        batched = target_.dim() > 0
        if batched:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif input_.dim() != 1:
            raise RuntimeError(
                f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
            )
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        in_range = (target >= 0) & (target < self.n_classes)
        if not bool(in_range.all()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(x), dim=1)
        output = head.gather(1, target.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(-1)
            if rows.numel() == 0:
                continue
            cluster = F.log_softmax(self.tail[i](x.index_select(0, rows)), dim=1)
            local = cluster.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, local + head[rows, self.shortlist_size + i])
        if not batched:
            output = output.squeeze(0)
        return _ASMoutput(output, (-output).mean())

    def _get_full_log_prob(self, input, head_output):
        """Return the log probabilities (N, n_classes), given the output of the head."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return ops.cat(parts, dim=1)

    def log_prob(self, input):
        """Return the log probabilities (N, n_classes) of every class."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """Return the most probable class of each row, (N,)."""
        head_output = self.head(input)
        output = head_output.argmax(dim=1)
        if bool((output < self.shortlist_size).all()):
            return output
        return self._get_full_log_prob(input, head_output).argmax(dim=1)
