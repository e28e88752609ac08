// Activation functions and their gradients. The operands are in the order of MindSpore's operators.
#include "pointwise_math.h"
#include "vec_functions.h"

// The result is an expression of g, the gradient of the output (operand 0), and x (operand 1).
#define MSA_GRAD_KERNEL(Name, Op, ...)                                                                         \
  MSA_POINTWISE_KERNEL(Name) {                                                                                 \
    const Tensor &a_ = c.in(0), &b_ = c.in(1);                                                                 \
    Tensor o_ = c.out_pointwise(0, a_.dtype, {&a_, &b_});                                                      \
    MSA_COMPUTE_FLOAT(a_.dtype, Op, (binary<T, T, T>(o_, a_, b_, [](T g, T x) -> T { return __VA_ARGS__; }))); \
  }

namespace msa {
namespace {

// Kernels with real parameters after the operands: f(x, p...) for float types.
template <class F>
void unary_float(Call &c, const char *op, F f) {
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  MSA_COMPUTE_FLOAT(a.dtype, op, (unary<T, T>(o, a, f)));
}
template <class F>
void binary_float(Call &c, const char *op, F f) {
  const Tensor &a = c.in(0), &b = c.in(1);
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &b});
  MSA_COMPUTE_FLOAT(a.dtype, op, (binary<T, T, T>(o, a, b, f)));
}

}  // namespace

// ---- the most frequent ones
MSA_UNARY_KERNEL(ReLU, REAL, "clamp_min_scalar_cpu", x < T(0) ? T(0) : x)
MSA_KERNEL_ALIAS(InplaceReLU, ReLU)
MSA_POINTWISE_KERNEL(ReluGrad) {  // dy, y (or x)
  const Tensor &g = c.in(0), &y = c.in(1);
  Tensor o = c.out_pointwise(0, g.dtype, {&y, &g});  // has the layout of the input
  MSA_COMPUTE_REAL(g.dtype, "threshold_cpu", (binary<T, T, T>(o, g, y, [](T d, T x) { return x <= T(0) ? T(0) : d; })));
}
MSA_POINTWISE_KERNEL(GeluExt) {  // input, approximate (0 none, 1 tanh)
  if (c.has(1) && c.integer(1) == 1)
    unary_float(c, "GeluKernelImpl", [](auto x) { return vec::gelu_tanh(x); });
  else
    unary_float(c, "GeluKernelImpl", [](auto x) { return vec::gelu(x); });
}
MSA_POINTWISE_KERNEL(GeluGradExt) {  // dy, input, approximate
  if (c.has(2) && c.integer(2) == 1)
    binary_float(c, "GeluBackwardKernelImpl", [](auto g, auto x) { return vec::gelu_tanh_grad(g, x); });
  else
    binary_float(c, "GeluBackwardKernelImpl", [](auto g, auto x) { return vec::gelu_grad(g, x); });
}
MSA_UNARY_KERNEL(GeLU, FLOAT, "GeluKernelImpl", vec::gelu_tanh(x))
MSA_GRAD_KERNEL(GeLUGrad, "GeluBackwardKernelImpl", vec::gelu_tanh_grad(g, x))
MSA_POINTWISE_KERNEL(SiLU) {
  if (is_complex(c.in(0).dtype)) {
    MSA_UNARY_BODY(FLOAT_COMPLEX, "silu_cpu", x / (T(1) + std::exp(-x)));
    return;
  }
  MSA_UNARY_BODY(FLOAT, "silu_cpu", vec::silu(x));
}
MSA_KERNEL_ALIAS(InplaceSiLU, SiLU)
MSA_GRAD_KERNEL(SiLUGrad, "silu_backward_cpu", vec::silu_grad(g, x))
MSA_POINTWISE_KERNEL(Sigmoid) {
  if (is_complex(c.in(0).dtype)) {
    MSA_UNARY_BODY(FLOAT_COMPLEX, "sigmoid_cpu", T(1) / (T(1) + std::exp(-x)));
    return;
  }
  MSA_UNARY_BODY(FLOAT, "sigmoid_cpu", vec::sigmoid(x));
}
MSA_KERNEL_ALIAS(InplaceSigmoid, Sigmoid)
MSA_POINTWISE_KERNEL(SigmoidGrad) {  // y, dy
  const Tensor &y = c.in(0), &g = c.in(1);
  Tensor o = c.out_pointwise(0, y.dtype, {&y, &g});
  MSA_COMPUTE_FLOAT_COMPLEX(y.dtype, "sigmoid_backward_cpu",
                            (binary<T, T, T>(o, y, g, [](T s, T d) { return mul(d, conjugate(mul(T(1) - s, s))); })));
}
MSA_POINTWISE_KERNEL(Tanh) {
  if (is_complex(c.in(0).dtype)) {
    MSA_UNARY_BODY(FLOAT_COMPLEX, "tanh_cpu", std::tanh(x));
    return;
  }
  MSA_UNARY_BODY(FLOAT, "tanh_cpu", vec::tanh(x));
}
MSA_KERNEL_ALIAS(InplaceTanh, Tanh)
MSA_POINTWISE_KERNEL(TanhGrad) {  // y, dy
  const Tensor &y = c.in(0), &g = c.in(1);
  Tensor o = c.out_pointwise(0, y.dtype, {&y, &g});
  MSA_COMPUTE_FLOAT_COMPLEX(y.dtype, "tanh_backward_cpu",
                            (binary<T, T, T>(o, y, g, [](T s, T d) { return mul(d, conjugate(T(1) - mul(s, s))); })));
}

// ---- gated linear units: a sigmoid(b), for the halves a and b of x along a dim of even size
static Tensor half_of(const Tensor &t, int64_t dim, int64_t which) {
  Dims sizes = t.shape();
  sizes[dim] /= 2;
  return make_view(t, sizes, Dims(t.strides, t.strides + t.ndim), which * sizes[dim] * t.strides[dim]);
}
MSA_KERNEL(GLU) {  // x, dim
  const Tensor &x = c.in(0);
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  const Tensor a = half_of(x, dim, 0), b = half_of(x, dim, 1), o = c.out_pointwise(0, x.dtype, {&a, &b});
  MSA_COMPUTE_FLOAT(x.dtype, "glu_cpu", (binary<T, T, T>(o, a, b, [](T v, T gate) { return v * vec::sigmoid(gate); })));
}
MSA_KERNEL(GluGrad) {  // dy, x, dim
  const Tensor &g = c.in(0), &x = c.in(1), o = c.out_like(0, x);
  const int64_t dim = wrap_dim(c.integer(2), x.ndim);
  const Tensor a = half_of(x, dim, 0), b = half_of(x, dim, 1);
  MSA_COMPUTE_FLOAT(x.dtype, "glu_backward_cpu", {
    binary<T, T, T>(half_of(o, dim, 0), g, b, [](T d, T gate) { return d * vec::sigmoid(gate); });
    ternary<T, T, T, T>(half_of(o, dim, 1), g, a, b, [](T d, T v, T gate) {
      const T s = vec::sigmoid(gate);
      return (T(1) - s) * s * d * v;
    });
  });
}

// ---- piecewise linear
MSA_POINTWISE_KERNEL(Hardtanh) {  // input, min, max
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  MSA_COMPUTE_REAL(a.dtype, "hardtanh_cpu", {
    const T lo = c.scalar(1).to<T>();
    const T hi = c.scalar(2).to<T>();
    unary<T, T>(o, a, [lo, hi](T x) {
      const T y = x < lo ? lo : x;
      return y > hi ? hi : y;
    });
  });
}
MSA_KERNEL_ALIAS(InplaceHardtanh, Hardtanh)
MSA_POINTWISE_KERNEL(HardtanhGrad) {  // dy, input, min, max
  const double lo = c.number(2), hi = c.number(3);
  binary_float(c, "hardtanh_backward_cpu", [=](auto g, auto x) { return x > lo && x < hi ? g : decltype(g)(0); });
}
MSA_POINTWISE_KERNEL(LeakyReLUExt) {  // input, slope
  const double slope = c.number(1);
  unary_float(c, "leaky_relu_cpu", [=](auto x) {
    using T = decltype(x);
    return x > 0 ? x : T(x * T(slope));
  });
}
MSA_POINTWISE_KERNEL(LeakyReLUGradExt) {  // dy, input, slope, is_result
  const double slope = c.number(2);
  binary_float(c, "leaky_relu_backward_cpu", [=](auto g, auto x) {
    using T = decltype(g);
    return x > 0 ? g : T(g * T(slope));
  });
}
// RuntimeError if the element type does not hold the number.
void check_fits(const Scalar &s, DType d) { MSA_SWITCH_STORED(d, "number", (static_cast<void>(s.to<T>()))); }

MSA_POINTWISE_KERNEL(Threshold) {  // input, threshold, value
  const Tensor &a = c.in(0);
  check_fits(c.scalar(2), a.dtype);
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  MSA_COMPUTE_REAL(a.dtype, "threshold_cpu", {
    const T t = c.scalar(1).to<T>();
    const T v = c.scalar(2).to<T>();
    unary<T, T>(o, a, [t, v](T x) { return x <= t ? v : x; });
  });
}
MSA_KERNEL_ALIAS(InplaceThreshold, Threshold)
MSA_POINTWISE_KERNEL(ThresholdGrad) {  // dy, input, threshold
  const Tensor &g = c.in(0), &a = c.in(1);
  Tensor o = c.out_pointwise(0, g.dtype, {&g, &a});
  MSA_COMPUTE_REAL(g.dtype, "threshold_cpu", {
    const T t = c.scalar(2).to<T>();
    binary<T, T, T>(o, g, a, [t](T d, T x) { return x <= t ? T(0) : d; });
  });
}
MSA_POINTWISE_KERNEL(HShrink) {  // input, lambd
  const double l = c.number(1);
  unary_float(c, "hardshrink_cpu", [=](auto x) {
    using T = decltype(x);
    return x >= T(-l) && x <= T(l) ? T(0) : x;
  });
}
MSA_POINTWISE_KERNEL(HShrinkGrad) {  // dy, input, lambd
  const double l = c.number(2);
  binary_float(c, "hardshrink_backward_cpu", [=](auto g, auto x) {
    using T = decltype(g);
    return x >= T(-l) && x <= T(l) ? T(0) : g;
  });
}
MSA_POINTWISE_KERNEL(SoftShrink) {  // input, lambd
  const double l = c.number(1);
  unary_float(c, "softshrink_cpu", [=](auto x) {
    using T = decltype(x);
    return x > T(l) ? T(x - T(l)) : x < T(-l) ? T(x + T(l)) : T(x * T(0));
  });
}
MSA_POINTWISE_KERNEL(SoftShrinkGrad) {  // dy, input, lambd
  const double l = c.number(2);
  binary_float(c, "shrink_backward_cpu", [=](auto g, auto x) {
    using T = decltype(g);
    return x >= T(-l) && x <= T(l) ? T(0) : g;
  });
}
MSA_UNARY_KERNEL(HSigmoid, FLOAT, "hardsigmoid_cpu", std::min(std::max(x + T(3), T(0)), T(6)) / T(6))
MSA_GRAD_KERNEL(HSigmoidGrad, "hardsigmoid_backward", x > T(-3) && x < T(3) ? g * T(1. / 6) : T(0))
MSA_UNARY_KERNEL(HSwish, FLOAT, "hardswish_cpu", x *std::min(std::max(x + T(3), T(0)), T(6)) / T(6))
MSA_GRAD_KERNEL(HSwishGrad, "hardswish_backward_cpu", x <= T(-3) ? T(0) : x < T(3) ? g * (x / T(3) + T(0.5)) : g)
MSA_POINTWISE_KERNEL(PReLU) {  // input, weight (broadcastable)
  const Tensor &a = c.in(0), &w = c.in(1);
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &w});
  MSA_COMPUTE_FLOAT(a.dtype, "prelu_cpu", (binary<T, T, T>(o, a, w, [](T x, T p) { return x > 0 ? x : p * x; })));
}

// ---- exponential
namespace {
// max(0, scale x) + min(0, alpha scale (exp(input_scale x) - 1))
void elu(Call &c, double alpha, double scale, double input_scale) {
  unary_float(c, "elu_cpu", [=](auto x) {
    using T = decltype(x);
    return x < 0 ? T(vec::expm1(x * T(input_scale)) * T(alpha * scale)) : T(x * T(scale));
  });
}
void elu_grad(Call &c, double alpha, double scale, double input_scale, bool is_result) {
  if (is_result) {
    binary_float(c, "elu_backward_cpu", [=](auto g, auto y) {
      using T = decltype(g);
      return y <= 0 ? T(g * T(input_scale) * (y + T(alpha * scale))) : T(g * T(scale));
    });
  } else {
    binary_float(c, "elu_backward_cpu", [=](auto g, auto x) {
      using T = decltype(g);
      return x <= 0 ? T(g * T(input_scale * alpha * scale) * vec::exp(x * T(input_scale))) : T(g * T(scale));
    });
  }
}
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;
}  // namespace
MSA_POINTWISE_KERNEL(EluExt) { elu(c, c.number(1), 1, 1); }  // input, alpha
MSA_KERNEL_ALIAS(Elu, EluExt)
MSA_KERNEL_ALIAS(InplaceElu, EluExt)
MSA_POINTWISE_KERNEL(EluGradExt) { elu_grad(c, c.number(2), 1, 1, c.flag(3)); }  // dy, x or result, alpha, is_result
// A kernel without an operator of MindSpore. Operands: input, alpha, scale, input_scale
MSA_POINTWISE_KERNEL(ScaledElu) { elu(c, c.number(1), c.number(2), c.number(3)); }
// A kernel without an operator of MindSpore. Operands: dy, x or result, alpha, is_result, scale, input_scale
MSA_POINTWISE_KERNEL(ScaledEluGrad) { elu_grad(c, c.number(2), c.number(4), c.number(5), c.flag(3)); }
MSA_POINTWISE_KERNEL(SeLUExt) { elu(c, kSeluAlpha, kSeluScale, 1); }
MSA_POINTWISE_KERNEL(SeluGrad) { elu_grad(c, kSeluAlpha, kSeluScale, 1, true); }  // dy, result

MSA_POINTWISE_KERNEL(SoftplusExt) {  // input, beta, threshold
  const double beta = c.number(1), threshold = c.number(2);
  unary_float(c, "softplus_cpu", [=](auto x) {
    using T = decltype(x);
    return vec::softplus(x, T(beta), T(threshold));
  });
}
MSA_POINTWISE_KERNEL(SoftplusGradExt) {  // dy, input, beta, threshold
  const double beta = c.number(2), threshold = c.number(3);
  binary_float(c, "softplus_backward_cpu", [=](auto g, auto x) {
    using T = decltype(g);
    const T z = vec::exp(x * T(beta));
    return x * T(beta) > T(threshold) ? g : T(g * z / (z + T(1)));
  });
}
MSA_UNARY_KERNEL(MishExt, FLOAT, "mish_cpu", vec::mish(x))
MSA_GRAD_KERNEL(MishGradExt, "mish_backward_cpu", vec::mish_grad(g, x))
MSA_POINTWISE_KERNEL(LogSigmoid) {  // input -> result, buffer exp(-|x|)
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype, {&a}), buffer = c.out_pointwise(1, a.dtype, {&a});
  MSA_COMPUTE_FLOAT(a.dtype, "log_sigmoid_cpu",
                    (unary_pair<T, T, T>(o, buffer, a, [](T x, T *z) { return vec::log_sigmoid(x, z); })));
}
MSA_GRAD_KERNEL(LogSigmoidGrad, "log_sigmoid_backward_cpu", vec::log_sigmoid_grad(g, x))  // dy, input, buffer

}  // namespace msa
