"""Averages gradients over processes in buckets, while backward is still running."""

from ... import ops
from ...autograd import Variable, no_grad
from ...distributed import GradBucket, collectives
from ...distributed.reduce_op import ReduceOp

_FIRST_BUCKET = 1 << 20  # bytes; the first bucket is small, so that communication starts early


class Bucket:
    """Some parameters and one flat tensor that holds their gradients."""

    def __init__(self, index: int, parameters):
        self.index, self.parameters = index, parameters
        first = parameters[0]
        self.flat = ops.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        self.views, place = {}, 0
        for parameter in parameters:
            self.views[parameter] = self.flat[place : place + parameter.numel()].view(parameter.shape)
            place += parameter.numel()
        self.missing, self.future, self.work = set(parameters), None, None
        self.message = None

    def start_pass(self) -> None:
        """Mark the gradients of all parameters as missing, before a backward pass."""
        self.missing, self.future, self.work = set(self.parameters), None, None


def make_buckets(parameters, cap: int) -> list:
    """Group the parameters into buckets of one dtype and about `cap` bytes.

    The last parameters come first, because backward usually computes their gradients first.
    """
    groups, sizes, done = {}, {}, []
    limit = min(cap, _FIRST_BUCKET)
    for parameter in reversed(parameters):
        kind = parameter.dtype, parameter.device
        groups.setdefault(kind, []).append(parameter)
        sizes[kind] = sizes.get(kind, 0) + parameter.nbytes
        if sizes[kind] >= limit:
            done.append(groups.pop(kind))
            sizes.pop(kind)
            limit = cap
    return [Bucket(i, members) for i, members in enumerate([*done, *groups.values()])]


class Reducer:
    """Collects gradients as backward computes them, and sends each bucket when it is complete.

    A bucket waits for the buckets before it. All processes therefore send in the same order, as collectives
    require.
    """

    def __init__(self, parameters, group, cap: int, keep_views: bool):
        self.parameters, self.group, self.keep_views = parameters, group, keep_views
        self.buckets = make_buckets(parameters, cap)
        self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
        self.hook = None
        # dtype is that of the messages. None keeps the dtype of the gradients.
        self.divisor, self.dtype = group.size(), None
        self.begun = False
        self.expecting, self.used = False, None
        self.next = 0

    def start(self, unused=None) -> None:
        """Prepare for the backward pass of the current forward. unused: the parameters that it will not
        reach.
        """
        if self.expecting and self.begun:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                "indicates that your module has parameters that were not used in producing loss. You can enable unused "
                "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
                "participate in calculating loss. Parameters that did not receive a gradient: "
                f"{sum(len(bucket.missing) for bucket in self.buckets)}"
            )
        self.expecting, self.begun, self.next = True, False, 0
        self.unused, self.used = list(unused or ()), None if unused is None else set()
        for bucket in self.buckets:
            bucket.start_pass()

    def _begin(self):
        """Handle the first gradient of a backward pass."""
        self.begun = True
        Variable._execution_engine.queue_callback(self.finish)
        for parameter in self.unused:
            self._take(parameter)

    def ready(self, parameter) -> None:
        """Accept the complete gradient of a parameter."""
        # this is a second backward after one forward, which no call of start() prepared
        if not self.expecting:
            self.start()
        if not self.begun:
            self._begin()
        if self.used is not None:
            self.used.add(parameter)
        self._take(parameter)

    def _take(self, parameter):
        bucket = self.bucket_of[parameter]
        if parameter not in bucket.missing:
            return
        bucket.missing.discard(parameter)
        view = bucket.views[parameter]
        with no_grad():
            if parameter.grad is None:
                view.zero_()
            elif parameter.grad.data_ptr() != view.data_ptr():
                view.copy_(parameter.grad)
            if self.hook is None:
                view.div_(self.divisor)
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self._send(self.buckets[self.next])
            self.next += 1

    def _send(self, bucket):
        if self.hook is None:
            with no_grad():
                bucket.message = bucket.flat if self.dtype is None else bucket.flat.to(self.dtype)
                bucket.work = collectives.all_reduce(bucket.message, ReduceOp.SUM, self.group, async_op=True)
            return
        state, hook = self.hook
        last = bucket.index == len(self.buckets) - 1
        gradients = [bucket.views[p] for p in bucket.parameters]
        with no_grad():
            bucket.future = hook(
                state, GradBucket(bucket.index, bucket.flat, gradients, bucket.parameters, last)
            )

    def finish(self) -> None:
        """Wait for all messages after backward and write the reduced gradients to the parameters."""
        if self.next < len(self.buckets):
            return  # some parameters were not used; the next forward raises the error
        with no_grad():
            used_somewhere = self._used_somewhere()
            for bucket in self.buckets:
                self._collect(bucket)
                for parameter in bucket.parameters:
                    if used_somewhere is None or parameter in used_somewhere:
                        self._give(parameter, bucket.views[parameter])
        self.expecting = self.begun = False

    def follow(self, finds_unused: bool) -> None:
        """Take part in the reduction of the other processes' backward pass, with gradients of zero."""
        for bucket in self.buckets:
            bucket.start_pass()
            bucket.flat.zero_()
            self._send(bucket)
        self.used = set() if finds_unused else None
        self._used_somewhere()
        for bucket in self.buckets:
            self._collect(bucket)
        self.used = None

    def _used_somewhere(self):
        if self.used is None:
            return None
        flags = ops.tensor([int(p in self.used) for p in self.parameters])
        collectives.all_reduce(flags, ReduceOp.MAX, self.group)
        return {p for p, flag in zip(self.parameters, flags.tolist(), strict=True) if flag}

    def _collect(self, bucket):
        if bucket.work is not None:
            bucket.work.wait()
            if bucket.message is not bucket.flat:
                bucket.flat.copy_(bucket.message)
        if bucket.future is not None:
            result = bucket.future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if result.data_ptr() != bucket.flat.data_ptr():
                bucket.flat.copy_(result.reshape(-1))

    def _give(self, parameter, view):
        if self.keep_views:
            if parameter.grad is None or parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)


def unreached(outputs, parameters) -> list:
    """Return the parameters that the autograd graph of `outputs` does not reach."""
    reached, seen, stack = set(), set(), [t.grad_fn for t in outputs if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            reached.add(id(variable))
        stack += [following for following, _ in node.next_functions if following is not None]
    return [p for p in parameters if id(p) not in reached]
