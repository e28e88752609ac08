// sum, mean, nansum, prod, count_nonzero, any, all.
#include "reduce.h"
#include "stepwise.h"

namespace msa {
namespace {

// The type in which integers and booleans are summed.
DType sum_dtype(const Call &c, int operand, DType in) {
  if (c.has(operand)) return c.dtype(operand);
  return is_integral(in) ? DType::I64 : in;
}

template <class A>
struct Truth {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return static_cast<A>(convert<bool>(v));
  }
};

// Reduces x, whose elements `load` converts to Acc, divides by `divide`, and writes the result in the type of o.
template <class Acc, class Step>
void fold_into(Call &c, const Tensor &x, const Tensor &o, const std::vector<bool> &mask, Load<Acc> load,
               double divide) {
  reduce_into<Acc, Step>(c, x, o, mask, Acc(Step::start), load, [&](auto *w) {
    using W = std::decay_t<decltype(*w)>;
    if (divide != 1)
      for (int64_t i = 0; i < o.numel; ++i) w[i] = static_cast<W>(w[i] / static_cast<W>(divide));
  });
}

template <class Step>
void add_up(Call &c, const Tensor &in, DType dt, const std::vector<bool> &mask, bool keepdim, double divide) {
  using D = DType;
  if (only_stored(dt) || only_stored(in.dtype)) unsupported("sum_cpu", only_stored(dt) ? dt : in.dtype);
  Tensor o = c.out(0, dt, reduced_shape(in, mask, keepdim));
  const bool widening =
      (dt == D::F32 && is_floating(in.dtype) && in.dtype != D::F64) || (dt == D::I64 && is_integral(in.dtype));
  const Tensor x = in.dtype == dt || widening ? in : c.cast(in, dt);
  if (x.dtype == D::C64) {
    if constexpr (std::is_same_v<Step, SumStep>)
      return fold_into<c64, Step>(c, x, o, mask, nullptr, divide);
    else
      return fold_into<c128, Step>(c, x, o, mask, load_run<c64, c128, ConvertTo<c128>>, divide);
  }
  if (is_complex(dt)) return fold_into<c128, Step>(c, x, o, mask, nullptr, divide);
  if (is_integral(dt)) {
    if (x.dtype == D::Bool)
      return fold_into<int64_t, Step>(c, x, o, mask, load_run<bool, int64_t, ConvertTo<int64_t>>, 1);
    if (x.dtype == D::I32)
      return fold_into<int64_t, Step>(c, x, o, mask, load_run<int32_t, int64_t, ConvertTo<int64_t>>, 1);
    return fold_into<int64_t, Step>(c, x.dtype == D::I64 ? x : c.cast(x, D::I64), o, mask, nullptr, 1);
  }
  if (x.dtype == D::F64) return fold_into<double, Step>(c, x, o, mask, nullptr, divide);
  if (x.dtype == D::F32) return fold_into<float, Step>(c, x, o, mask, nullptr, divide);
  fold_into<float, Step>(
      c, x, o, mask,
      x.dtype == D::BF16 ? load_run<BFloat16, float, ConvertTo<float>> : load_run<Half, float, ConvertTo<float>>,
      divide);
}

MSA_KERNEL(SumExt) {  // input, dim, keepdim, dtype
  const Tensor &x = c.in(0);
  add_up<SumStep>(c, x, sum_dtype(c, 3, x.dtype), reduce_mask(c, 1, x.ndim), c.flag(2), 1);
}

MSA_KERNEL(ReduceSum) {  // x, axis, keep_dims, skip_mode
  const Tensor &x = c.in(0);
  if (c.has(3) && c.flag(3) && c.ints(1).empty()) return copy_into(c.out_like(0, x), x);
  add_up<SumStep>(c, x, x.dtype, reduce_mask(c, 1, x.ndim), c.flag(2), 1);
}

MSA_KERNEL(Nansum) {  // input, dim, keepdim, dtype
  const Tensor &x = c.in(0);
  add_up<NumberSumStep>(c, x, sum_dtype(c, 3, x.dtype), reduce_mask(c, 1, x.ndim), c.flag(2), 1);
}

MSA_KERNEL(MeanExt) {  // input, dim, keepdim, dtype
  const Tensor &x = c.in(0);
  const DType dt = c.has(3) ? c.dtype(3) : x.dtype;
  if (is_integral(dt))
    fail("mean(): could not infer output dtype. ", c.has(3) ? "Optional" : "Input",
         " dtype must be either a floating point or complex dtype. Got: ", dtype_name(dt));
  const auto mask = reduce_mask(c, 1, x.ndim);
  add_up<SumStep>(c, x, dt, mask, c.flag(2), static_cast<double>(reduced_count(x, mask)));
}

// Products of 16-bit numbers are rounded after every factor, as in PyTorch.
template <class T>
void rounding_product(Call &c, const std::vector<bool> &mask) {
  const Tensor x = rows_of(c, c.in(0), mask, c.in(0).dtype),
               o = c.out(0, x.dtype, reduced_shape(c.in(0), mask, c.flag(2)));
  const int64_t n = reduced_count(c.in(0), mask);
  parallel_for(o.numel, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Stepwise<T> product(1);
      for (int64_t i = 0; i < n; ++i) product = product * Stepwise<T>(x.ptr<T>()[r * n + i]);
      o.ptr<T>()[r] = T(product.v);
    }
  });
}

MSA_KERNEL(ProdExt) {  // input, dim, keepdim, dtype
  const Tensor &x = c.in(0);
  const Dims dims = c.has(1) ? Dims{c.integer(1)} : Dims{};
  if (x.dtype == sum_dtype(c, 3, x.dtype)) {
    if (x.dtype == DType::F16) return rounding_product<Half>(c, dims_mask(dims, x.ndim));
    if (x.dtype == DType::BF16) return rounding_product<BFloat16>(c, dims_mask(dims, x.ndim));
  }
  add_up<ProdStep>(c, x, sum_dtype(c, 3, x.dtype), dims_mask(dims, x.ndim), c.flag(2), 1);
}

Load<int64_t> truth_load(DType d) {
  Load<int64_t> f = nullptr;
  MSA_SWITCH_ALL(d, "any_all_cpu", (f = load_run<T, int64_t, Truth<int64_t>>));
  return f;
}

template <class Step>
void truths(Call &c, DType dt, const std::vector<bool> &mask, bool keepdim, int64_t start) {
  const Tensor &x = c.in(0);
  Tensor o = c.out(0, dt, reduced_shape(x, mask, keepdim));
  int64_t *w = dt == DType::I64 ? o.ptr<int64_t>() : c.scratch_of<int64_t>(std::max<int64_t>(o.numel, 1));
  reduce_core<int64_t, Step>(x, mask, w, start, truth_load(x.dtype));
  if (dt != DType::I64) copy_into(o, contiguous_tensor(w, DType::I64, o.shape()));
}
// As in PyTorch, the result for uint8 is uint8.
DType truth_dtype(Call &c) { return c.in(0).dtype == DType::U8 ? DType::U8 : DType::Bool; }

MSA_KERNEL(CountNonZero) {  // input, dim
  truths<SumStep>(c, DType::I64, reduce_mask(c, 1, c.in(0).ndim), false, 0);
}
MSA_KERNEL_ALIAS(CountNonzero, CountNonZero)

// Forms with several dims. Operands: input, dims?, keepdim
MSA_KERNEL(ReduceAll) { truths<MinStep>(c, truth_dtype(c), reduce_mask(c, 1, c.in(0).ndim), c.flag(2), 1); }
MSA_KERNEL(ReduceAny) { truths<MaxStep>(c, truth_dtype(c), reduce_mask(c, 1, c.in(0).ndim), c.flag(2), 0); }
MSA_KERNEL(Any) { truths<MaxStep>(c, truth_dtype(c), dims_mask({}, c.in(0).ndim), false, 0); }
MSA_KERNEL(AnyExt) { truths<MaxStep>(c, truth_dtype(c), dims_mask({c.integer(1)}, c.in(0).ndim), c.flag(2), 0); }

}  // namespace
}  // namespace msa
