// Complex numbers: parts, conjugate, angle and construction.
#include "pointwise_math.h"

namespace msa {

MSA_POINTWISE_KERNEL(Conj) { MSA_UNARY_BODY(ALL, "conj_cpu", conjugate(x)); }

MSA_KERNEL(Real) {  // a copy of the real parts
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, real_of(a.dtype), {&a});
  if (!is_complex(a.dtype)) return copy_into(o, a);
  MSA_COMPUTE_COMPLEX(a.dtype, "real", (unary<T::value_type, T>(o, a, [](T x) { return x.real(); })));
}
MSA_KERNEL(Imag) {  // a copy of the imaginary parts
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, real_of(a.dtype), {&a});
  MSA_COMPUTE_COMPLEX(a.dtype, "imag", (unary<T::value_type, T>(o, a, [](T x) { return x.imag(); })));
}

MSA_KERNEL(Angle) {  // the angle of a real number is 0 or pi, and that of NaN is NaN
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : real_of(a.dtype), {&a});
  if (is_complex(a.dtype)) {
    MSA_COMPUTE_COMPLEX(a.dtype, "angle", (unary<T::value_type, T>(o, a, [](T x) { return std::arg(x); })));
    return;
  }
  MSA_COMPUTE_FLOAT(o.dtype, "angle", (unary<T, T>(o, a, [](T x) { return x != x ? x : x < 0 ? kPi<T> : T(0); })));
}

namespace {
void check_parts(const Tensor &a, const Tensor &b) {
  check(a.dtype == DType::F32 || a.dtype == DType::F64 || a.dtype == DType::F16,
        "Expected both inputs to be Half, Float or Double tensors but got ", a.dtype, " and ", b.dtype);
  check(a.dtype == b.dtype, "Expected object of scalar type ", a.dtype, " but got scalar type ", b.dtype,
        " for second argument");
}
}  // namespace

// The real parts (0) or the imaginary parts (1) of a complex tensor, in its memory.
static Tensor part_of(const Tensor &t, int part) {
  Tensor r = t;
  r.dtype = real_of(t.dtype);
  for (int d = 0; d < r.ndim; ++d) r.strides[d] *= 2;
  r.data = static_cast<char *>(t.data) + part * item_size(r.dtype);
  return r;
}

MSA_KERNEL(Complex) {  // real, imag
  const Tensor &a = c.in(0), &b = c.in(1);
  check_parts(a, b);
  Tensor o = c.out_pointwise(0, complex_of(a.dtype), {&a, &b});
  if (o.dtype == DType::C32) {
    copy_into(part_of(o, 0), a);
    return copy_into(part_of(o, 1), b);
  }
  MSA_COMPUTE_COMPLEX(o.dtype, "complex", {
    using R = T::value_type;
    binary<T, R, R>(o, a, b, [](R x, R y) { return T(x, y); });
  });
}
MSA_KERNEL(Polar) {  // abs, angle
  const Tensor &a = c.in(0), &b = c.in(1);
  check_parts(a, b);
  if (a.dtype == DType::F16) unsupported("polar_cpu", a.dtype);
  Tensor o = c.out_pointwise(0, complex_of(a.dtype), {&a, &b});
  MSA_COMPUTE_COMPLEX(o.dtype, "polar", {
    using R = T::value_type;
    binary<T, R, R>(o, a, b, [](R r, R t) { return T(r * std::cos(t), r * std::sin(t)); });
  });
}

}  // namespace msa
