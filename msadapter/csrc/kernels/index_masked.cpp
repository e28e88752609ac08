// nonzero, masked_select, masked_scatter, take, put.
#include "indexing.h"

namespace msa {
namespace {

// Writes the places of the true elements among n ones, and returns their number. `places` has room for n. No branch
// depends on the elements, which the processor could not predict.
int64_t true_places(const uint8_t *p, int64_t n, int32_t *places) {
  int64_t k = 0;
  for (int64_t i = 0; i < n; ++i) {
    places[k] = static_cast<int32_t>(i);
    k += p[i] != 0;
  }
  return k;
}

// Calls f(positions in the outer dims, position in the last dim) for the true elements of a contiguous mask, in order.
template <class F>
void each_true(const Tensor &mask, F f) {
  constexpr int64_t kBlock = 1024;
  const uint8_t *p = mask.ptr<uint8_t>();  // any number other than 0 is true, see element()
  const int64_t width = mask.ndim ? mask.size(-1) : 1;
  int64_t outer[kMaxDims] = {0};
  int32_t places[kBlock];
  for (int64_t row = 0; row < mask.numel; row += width) {
    for (int64_t begin = 0; begin < width; begin += kBlock) {
      const int64_t found = true_places(p + row + begin, std::min(kBlock, width - begin), places);
      for (int64_t k = 0; k < found; ++k) f(outer, begin + places[k]);
    }
    for (int d = mask.ndim - 2; d >= 0; --d) {
      if (++outer[d] < mask.sizes[d]) break;
      outer[d] = 0;
    }
  }
}

MSA_KERNEL(NonZero) {
  needs_values("nonzero");  // input -> [count, dims]
  const Tensor m = c.cast(c.in(0), DType::Bool);
  const int last = m.ndim - 1;
  int64_t *to = c.out(0, DType::I64, Dims{true_positions(c, m, nullptr), m.ndim}).ptr<int64_t>();
  if (last < 0) return;
  each_true(m, [&](const int64_t *outer, int64_t inner) {
    for (int d = 0; d < last; ++d) *to++ = outer[d];
    *to++ = inner;
  });
}
MSA_KERNEL_ALIAS(InnerNonZero, NonZero)

MSA_KERNEL(NonZeroExt) {
  needs_values("nonzero");  // input -> one vector per dim
  const Tensor m = c.cast(at_least_1d(c.in(0)), DType::Bool);
  const int64_t n = true_positions(c, m, nullptr);
  const int last = m.ndim - 1;
  int64_t *to[kMaxDims], k = 0;
  for (int d = 0; d <= last; ++d) to[d] = c.out(d, DType::I64, Dims{n}).ptr<int64_t>();
  each_true(m, [&](const int64_t *outer, int64_t inner) {
    for (int d = 0; d < last; ++d) to[d][k] = outer[d];
    to[last][k++] = inner;
  });
}

Tensor broadcast_mask(Call &c, const Tensor &mask, const Dims &shape) { return c.contiguous(expand(mask, shape)); }
void check_select_mask(const Tensor &mask) {
  check(mask.dtype == DType::Bool, "masked_select: expected BoolTensor for mask");
}

MSA_KERNEL(MaskedSelect) {
  needs_values("masked_select");  // input, mask
  const Tensor &x = c.in(0);
  check_select_mask(c.in(1));
  const Dims shape = broadcast_shapes({&x, &c.in(1)});
  const Tensor m = broadcast_mask(c, c.in(1), shape);
  const Tensor v = c.contiguous(expand(x, shape));
  const uint8_t *p = m.ptr<uint8_t>();
  Tensor o = c.out(0, x.dtype, Dims{true_positions(c, m, nullptr)});
  MSA_SWITCH_BYTES(x.dtype, ({
                     const T *s = v.ptr<T>();
                     T *d = o.ptr<T>();
                     for (int64_t i = 0; i < v.numel; ++i)
                       if (p[i]) *d++ = s[i];
                   }));
}

// The gradient of the source: the elements of grad where the mask is true, followed by zeros.
MSA_KERNEL(MaskedSelectGrad) {  // input, mask, grad
  const Tensor &x = c.in(0);
  check_select_mask(c.in(1));
  const Dims shape = broadcast_shapes({&x, &c.in(1)});
  const Tensor m = broadcast_mask(c, c.in(1), shape);
  const Tensor g = c.contiguous(c.in(2));
  Tensor o = c.out(0, x.dtype, shape);
  const uint8_t *p = m.ptr<uint8_t>();
  MSA_SWITCH_BYTES(x.dtype, ({
                     const T *s = g.ptr<T>();
                     for (int64_t i = 0; i < o.numel; ++i) o.ptr<T>()[i] = p[i] ? *s++ : T(0);
                   }));
}

MSA_POINTWISE_KERNEL(MaskedScatter) {  // input, mask, source
  const Tensor &x = c.in(0);
  check(x.dtype == c.in(2).dtype, "masked_scatter_: expected self and source to have same dtypes but got ",
        dtype_name(x.dtype), " and ", dtype_name(c.in(2).dtype));
  check(c.in(1).dtype == DType::Bool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        dtype_name(c.in(1).dtype));
  const Tensor m = broadcast_mask(c, c.in(1), x.shape());
  const Tensor s = c.contiguous(c.in(2));
  check(true_positions(c, m, nullptr) <= s.numel, "Number of elements of source < number of ones in mask");
  const Tensor o = changed_copy(c, x);
  const uint8_t *p = m.ptr<uint8_t>();
  MSA_SWITCH_BYTES(x.dtype, ({
                     const T *v = s.ptr<T>();
                     int64_t strides[kMaxDims];
                     int64_t at[kMaxDims] = {0};
                     for (int d = 0; d < o.ndim; ++d) strides[d] = o.strides[d];
                     T *q = o.ptr<T>();
                     for (int64_t i = 0; i < o.numel; ++i) {
                       if (p[i]) *q = *v++;
                       for (int d = o.ndim - 1; d >= 0; --d) {
                         q += strides[d];
                         if (++at[d] < o.sizes[d]) break;
                         q -= strides[d] * o.sizes[d];
                         at[d] = 0;
                       }
                     }
                   }));
}
MSA_KERNEL_ALIAS(InplaceMaskedScatter, MaskedScatter)

// The offset, in elements, of position i in the row-major order of a strided operand.
int64_t element_offset(const Tensor &t, int64_t i) {
  int64_t r = 0;
  for (int d = t.ndim - 1; d >= 0; --d) {
    r += i % t.sizes[d] * t.strides[d];
    i /= t.sizes[d];
  }
  return r;
}
int64_t wrapped_flat(int64_t i, int64_t numel) {
  if (i < -numel || i >= numel)
    throw IndexError(text("out of range: tried to access index ", i, " on a tensor of ", numel, " elements."));
  return i < 0 ? i + numel : i;
}

MSA_KERNEL(Take) {  // input, index
  const Tensor &x = c.in(0);
  check(c.in(1).dtype == DType::I64, "take(): Expected a long tensor for index, but got ", dtype_name(c.in(1).dtype));
  if (x.numel == 0 && c.in(1).numel != 0) throw IndexError("take(): tried to take from an empty tensor");
  const Tensor index = c.contiguous(c.in(1));
  Tensor o = c.out(0, x.dtype, index.shape());
  const bool dense = x.contiguous();
  const int64_t *from = index.ptr<int64_t>();
  MSA_SWITCH_BYTES(x.dtype, ({
                     const T *in = x.ptr<T>();
                     T *out = o.ptr<T>();
                     // The positions of a run are checked first, so that the compiler vectorises both loops.
                     parallel_for(index.numel, 32768, [&](int64_t begin, int64_t end) {
                       for (int64_t at = begin; at < end; at += kCheckedRun) {
                         const int64_t stop = std::min(at + kCheckedRun, end);
                         if (dense && largest_position(from + at, stop - at) < static_cast<uint64_t>(x.numel)) {
                           for (int64_t i = at; i < stop; ++i) out[i] = in[from[i]];
                           continue;
                         }
                         for (int64_t i = at; i < stop; ++i) {
                           const int64_t k = wrapped_flat(from[i], x.numel);
                           out[i] = in[dense ? k : element_offset(x, k)];
                         }
                       }
                     });
                   }));
}

MSA_POINTWISE_KERNEL(Put) {  // input, index, source, accumulate
  const Tensor &x = c.in(0);
  check(c.in(1).dtype == DType::I64, "put_(): Expected a long tensor for index, but got ", dtype_name(c.in(1).dtype));
  check(c.in(2).dtype == x.dtype,
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", dtype_name(x.dtype),
        " and source.dtype = ", dtype_name(c.in(2).dtype));
  check(c.in(1).numel == c.in(2).numel,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
        c.in(2).numel, ", index.numel() = ", c.in(1).numel);
  const Tensor index = c.contiguous(c.in(1)), s = c.contiguous(c.in(2));
  const Tensor o = changed_copy(c, x);
  const bool accumulate = c.flag(3), dense = o.contiguous();
  MSA_SWITCH_ALL(x.dtype, "put_", ({
                   for (int64_t i = 0; i < index.numel; ++i) {
                     const int64_t k = wrapped_flat(index.ptr<int64_t>()[i], o.numel);
                     T &d = o.ptr<T>()[dense ? k : element_offset(o, k)];
                     const T v = s.ptr<T>()[i];
                     d = accumulate ? T(compute_t<T>(d) + compute_t<T>(v)) : v;
                   }
                 }));
}
MSA_KERNEL_ALIAS(InplacePut, Put)

}  // namespace
}  // namespace msa
