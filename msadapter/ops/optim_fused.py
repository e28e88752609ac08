"""Optimizer steps and norms over lists of tensors, one kernel call each. They change their operands in place."""
from __future__ import annotations

from ._declare import _C, composite, raw, t

_ADAM = ("(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, "
         "any lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
         "Tensor? found_inf=None) -> any")


def _changed(*lists):
    for tensors in lists:
        for x in tensors:
            _C.bump_version(x)


def _adam(decoupled, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
          maximize, grad_scale, found_inf):
    raw.FusedAdam(list(self), list(grads), list(exp_avgs), list(exp_avg_sqs), list(max_exp_avg_sqs) if amsgrad else None,
                  list(state_steps), float(lr), beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled, grad_scale, found_inf)
    _changed(self, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else ())


@composite("_fused_adamw_" + _ADAM, forms="f")
def _fused_adamw_(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad,
                  maximize, grad_scale, found_inf):
    """One AdamW step of all parameters; `state_steps` have been advanced."""
    _adam(True, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
          grad_scale, found_inf)


@composite("_fused_adam_" + _ADAM, forms="f")
def _fused_adam_(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, beta1, beta2, weight_decay, eps, amsgrad,
                 maximize, grad_scale, found_inf):
    """One Adam step of all parameters; `state_steps` have been advanced."""
    _adam(False, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
          grad_scale, found_inf)


@composite("_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, any lr, "
           "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> any",
           forms="f")
def _fused_sgd_(self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale,
                found_inf):
    """One SGD step of all parameters."""
    raw.FusedSgd(list(self), list(grads), list(momentum_buffer_list), weight_decay, momentum, float(lr), dampening, nesterov, maximize,
                 is_first_step, grad_scale, found_inf)
    _changed(self, momentum_buffer_list)


@composite("_foreach_norm(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> any", forms="f")
def _foreach_norm(self, ord, dtype):
    """The norm of each tensor, as a list of 0-dim tensors."""
    norms = t._norms(list(self), float(ord))
    if dtype is not None:
        norms = norms.to(dtype)
    return list(norms.unbind(0))


@composite("_norms(Tensor[] tensors, float ord) -> Tensor", forms="f")
def _norms(tensors, ord):
    """The norm of each tensor, as one 1-d tensor (no gradient)."""
    return raw.ForeachNorm([x.detach() for x in tensors], ord)


@composite("_scale_all_(Tensor[] tensors, Tensor factor) -> any", forms="f")
def _scale_all_(tensors, factor):
    """Multiplies every tensor by a one-element tensor, in place (no gradient)."""
    raw.ForeachScale([x.detach() for x in tensors], factor.detach())
    _changed(tensors)
