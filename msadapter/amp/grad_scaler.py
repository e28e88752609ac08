"""GradScaler: scales losses, so that gradients in half precision do not become zero."""

import inspect
import warnings
from collections import abc, defaultdict
from enum import Enum

from .. import ops
from .._host import accelerator as _accelerator
from .._values.dtype import float32, int32
from ..autograd import no_grad
from ..tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """The state of an optimizer between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _MultiDeviceReplicator:
    """Copies of one tensor on several devices."""

    def __init__(self, master_tensor: Tensor):
        self.master = master_tensor
        self._per_device_tensors: dict = {}

    def get(self, device) -> Tensor:
        """Return the copy on ``device``. It is made at the first call."""
        if device not in self._per_device_tensors:
            self._per_device_tensors[device] = self.master.to(device=device, copy=True)
        return self._per_device_tensors[device]


class GradScaler:
    """Scales losses and unscales gradients.

    Use `scaler.scale(loss).backward(); scaler.step(opt); scaler.update()`. A step whose gradients contain inf
    or nan is skipped, and multiplies the scale by backoff_factor. After growth_interval steps without inf and
    nan the scale is multiplied by growth_factor. With enabled=False the methods have no effect.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device = device
        self._enabled = enabled and self._available(device)
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    @staticmethod
    def _available(device) -> bool:
        if device == "cpu" or _accelerator.is_available():
            return True
        warnings.warn(
            "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=3
        )
        return False

    def _lazy_init_scale_growth_tracker(self, device):
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        single = float32
        self._scale = ops.full((), self._init_scale, dtype=single, device=device)
        self._growth_tracker = ops.full((), self._init_growth_tracker, dtype=int32, device=device)

    def _check_scale_growth_tracker(self, name):
        fix = (
            "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
            "iteration."
        )
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  " + fix)
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _growth_tracker is None.  " + fix)
        return self._scale, self._growth_tracker

    def scale(self, outputs):
        """Return `outputs` (a tensor or a structure of tensors) multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(device=outputs.device, non_blocking=True)
        if isinstance(outputs, abc.Iterable):
            scaled = [self.scale(item) for item in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        found = {}
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if not allow_fp16 and str(grad.dtype) == "torch.float16":
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    if grad.is_sparse:
                        if str(grad.dtype) == "torch.float16":  # sums of values at one place may overflow
                            param.grad = grad.coalesce()
                            grad = param.grad
                        grad = grad._values()
                    flag = found.setdefault(grad.device, found_inf.to(grad.device, copy=True))
                    ops._amp_foreach_non_finite_check_and_unscale_([grad], flag, inv_scale)
        return found

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, and check them for inf and nan."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        found_inf = ops.full((), 0.0, dtype=float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """Call optimizer.step(...) unless the gradients contain inf or nan.

        They are unscaled first if needed.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_scale(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if len(state["found_inf_per_device"]) == 0:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        if not sum(flag.item() for flag in optimizer_state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def _step_with_scale(self, optimizer, state, args, kwargs):
        """Call an optimizer that unscales and skips by itself. It gets grad_scale and found_inf."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer "
                "use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **{**kwargs, "grad_scaler": self})
        unscaled = state["stage"] is OptState.UNSCALED
        if not unscaled:
            self._check_inf_per_device(optimizer)
        flags = list(state["found_inf_per_device"].values())
        optimizer.grad_scale = None if unscaled else self._scale
        optimizer.found_inf = sum(flags[1:], flags[0]) if flags else None
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = ops.full((), 1.0, dtype=float32, device=scale.device)
        zero = ops.full((), 0.0, dtype=float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, zero, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def update(self, new_scale=None) -> None:
        """Change the scale after the steps of all optimizers, or set it to `new_scale`."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            flags = [
                flag.to(device=scale.device)
                for state in self._per_optimizer_states.values()
                for flag in state["found_inf_per_device"].values()
            ]
            if not flags:
                raise AssertionError("No inf checks were recorded prior to update.")
            with no_grad():
                found = sum(flags[1:], flags[0])
                ops._amp_update_scale_(
                    scale, tracker, found, self._growth_factor, self._backoff_factor, self._growth_interval
                )
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set_scale(self, new_scale):
        if isinstance(new_scale, float):
            self._scale.fill_(new_scale)
            return
        reason = (
            "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
            "requires_grad=False."
        )
        if not isinstance(new_scale, Tensor) or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(reason)
        self._scale.copy_(new_scale)

    def _get_scale_async(self):
        return self._scale

    def get_scale(self) -> float:
        """Return the scale (1.0 if disabled)."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale is multiplied after inf or nan."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is multiplied after inf or nan."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps without inf and nan after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without inf and nan after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict:
        """Return the scale, the factors and the counters ({} if disabled)."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore the state that state_dict() returned."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states) != 0:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an "
                    "iteration, or "
                    "at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
