// Tensors from numbers: zeros, ones, full, eye, arange, linspace, logspace.
#pragma GCC optimize("fp-contract=off")
#include <cmath>

#include "loops.h"
#include "vec_functions.h"

namespace msa {
namespace {

DType dtype_or(Call &c, int i, DType otherwise) { return c.has(i) ? c.dtype(i) : otherwise; }

void fill(const Tensor &o, const Scalar &value) {
  const bool zero =
      value.kind <= Scalar::kInt ? value.i == 0 : value.d == 0 && !std::signbit(value.d) && value.imag == 0;
  if (zero) return fill_zero(o);
  MSA_SWITCH_STORED(o.dtype, "fill", ({
                      const T v = value.to<T>();
                      if (o.contiguous())
                        parallel_for(o.numel, 1 << 18,
                                     [&](int64_t b, int64_t e) { std::fill(o.ptr<T>() + b, o.ptr<T>() + e, v); });
                      else
                        map1<T, T>(o, o, [=](T) { return v; });
                    }));
}
Scalar one() {
  Scalar s;
  s.kind = Scalar::kInt;
  s.i = 1;
  s.d = 1;
  return s;
}
// PyTorch computes ranges in groups of one vector register (two at a time). The first value of a group is rounded to
// the element type, and the others are steps from it. The rest is computed one by one.
constexpr int kVectorBytes = 32;

template <class T>
void arange_values(const Tensor &o, const Scalar &start, const Scalar &step) {
  T *p = o.ptr<T>();
  const int64_t n = o.numel;
  if constexpr (std::is_integral_v<T>) {
    const int64_t a = start.to<int64_t>(), d = step.to<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      p[i] = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(d) * static_cast<uint64_t>(i));
  } else {
    using Acc = std::conditional_t<is_reduced_v<T>, float, double>;
    constexpr int64_t lanes = kVectorBytes / sizeof(T);
    const Acc a = start.to<Acc>(), d = step.to<Acc>();
    const int64_t vectors = n / (2 * lanes) * 2 * lanes;
    for (int64_t i = 0; i < vectors; i += lanes) {
      const Acc base = static_cast<Acc>(T(std::fma(d, static_cast<Acc>(i), a)));
      for (int64_t k = 0; k < lanes; ++k) p[i + k] = T(std::fma(d, static_cast<Acc>(k), base));
    }
    for (int64_t i = vectors; i < n; ++i) p[i] = T(std::fma(d, static_cast<Acc>(i), a));
  }
}

// The first half is counted from the start and the second half from the end, so that both ends are exact.
template <class T>
void linspace_values(const Tensor &o, const Scalar &start, const Scalar &end) {
  T *p = o.ptr<T>();
  const int64_t n = o.numel, half = n / 2;
  if constexpr (std::is_integral_v<T>) {
    const int64_t a = static_cast<int64_t>(start.to<T>()), b = static_cast<int64_t>(end.to<T>());
    const double d = n > 1 ? (static_cast<double>(b) - static_cast<double>(a)) / static_cast<double>(n - 1) : 0;
    for (int64_t i = 0; i < n; ++i)
      p[i] = static_cast<T>(i < half ? std::fma(d, static_cast<double>(i), static_cast<double>(a))
                                     : std::fma(-d, static_cast<double>(n - i - 1), static_cast<double>(b)));
  } else if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    const T a = start.to<T>(), b = end.to<T>(), d = n > 1 ? (b - a) / static_cast<R>(n - 1) : T(0);
    for (int64_t i = 0; i < n; ++i) p[i] = i < half ? a + d * static_cast<R>(i) : b - d * static_cast<R>(n - i - 1);
  } else {
    // 16-bit types round after every operation
    using C = compute_t<T>;
    auto r = [](C v) { return static_cast<C>(T(v)); };
    auto step_from = [&](C d, int64_t i, C from) {
      if constexpr (is_reduced_v<T>)
        return from + r(d * r(static_cast<C>(i)));
      else
        return std::fma(d, static_cast<C>(i), from);
    };
    const C a = static_cast<C>(start.to<T>()), b = static_cast<C>(end.to<T>()),
            d = n > 1 ? r(r(b - a) / r(static_cast<C>(n - 1))) : C(0);
    for (int64_t i = 0; i < n; ++i) p[i] = T(i < half ? step_from(d, i, a) : step_from(-d, n - i - 1, b));
  }
}

template <class T>
void logspace_values(const Tensor &o, const Scalar &start, const Scalar &end, double base) {
  T *p = o.ptr<T>();
  const int64_t n = o.numel, half = n / 2;
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    const T a = start.to<T>(), b = end.to<T>(), d = n > 1 ? (b - a) / static_cast<R>(n - 1) : T(0);
    for (int64_t i = 0; i < n; ++i)
      p[i] = std::pow(T(static_cast<R>(base)),
                      i < half || n == 1 ? a + d * static_cast<R>(i) : b - d * static_cast<R>(n - i - 1));
  } else {
    const double a = convert<double>(start.to<T>()), b = convert<double>(end.to<T>());
    const double d = n > 1 ? (b - a) / static_cast<double>(n - 1) : 0;
    auto exponent = [=](int64_t i) {
      return i < half || n == 1 ? a + d * static_cast<double>(i) : b - d * static_cast<double>(n - i - 1);
    };
    if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, double>)
      if (base > 0 && base != 1 && base < std::numeric_limits<double>::infinity()) {
        const double bits = std::log2(base);
        return parallel_for(n, 1 << 14, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) p[i] = convert<T>(vec::short_exp2(exponent(i) * bits));
        });
      }
    for (int64_t i = 0; i < n; ++i) p[i] = convert<T>(std::pow(base, exponent(i)));
  }
}

// The sum of clamp(i + shift, 0, columns) over all rows i: rows without a position, then each has one more, then whole
// rows.
unsigned __int128 positions_below(int64_t rows, int64_t columns, int64_t shift) {
  using Wide = __int128;
  const Wide first = std::clamp<Wide>(-Wide(shift), 0, rows),
             whole = std::clamp<Wide>(columns - Wide(shift), first, rows);
  const Wide both_ends = first + whole - 1 + 2 * Wide(shift);  // of the rows between
  const unsigned __int128 between =
      whole > first ? static_cast<unsigned __int128>(both_ends) * static_cast<unsigned __int128>(whole - first) / 2 : 0;
  return between + static_cast<unsigned __int128>(rows - whole) * static_cast<unsigned __int128>(columns);
}

}  // namespace

MSA_KERNEL(Eye) {  // n, m, dtype
  const int64_t n = c.integer(0), m = c.integer(1);
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m >= 0, "m must be greater or equal to 0, got ", m);
  const Tensor o = c.out(0, dtype_or(c, 2, DType::F32), Dims{n, m});
  fill_zero(o);
  fill(make_view(o, Dims{std::min(n, m)}, Dims{(Size(m) + 1).value("a step")}), one());
}

// rows, columns, offset, lower: the positions of a triangle of a matrix, as a row of row numbers and one of column
// numbers
MSA_KERNEL(TriangleIndices) {
  const int64_t rows = c.integer(0), columns = c.integer(1), offset = c.integer(2);
  const bool lower = c.flag(3);
  check(rows >= 0 && columns >= 0, "the sizes of a matrix must be non-negative, got ", rows, " and ", columns);
  auto begin = [=](int64_t i) { return lower ? 0 : std::clamp<int64_t>(saturated_sum(i, offset), 0, columns); };
  auto end = [=](int64_t i) {
    return lower ? std::clamp<int64_t>(saturated_sum(saturated_sum(i, 1), offset), 0, columns) : columns;
  };
  const unsigned __int128 below = positions_below(rows, columns, lower ? saturated_sum(offset, 1) : offset);
  const unsigned __int128 all = static_cast<unsigned __int128>(rows) * static_cast<unsigned __int128>(columns);
  const unsigned __int128 count = lower ? below : all - below;
  // PyTorch computes the upper triangle from the whole matrix, whose positions must then be countable too.
  check((lower ? count : all) <= INT64_MAX, "the triangle of a matrix of ", rows, " rows and ", columns,
        " columns has too many positions");
  const Tensor o = c.out(0, DType::I64, Dims{2, static_cast<int64_t>(count)});
  if (shape_only() || count == 0) return;
  // Rows without a position are left out: there may be far more of them than positions.
  const int64_t back = offset == INT64_MIN ? INT64_MAX : -offset;
  const int64_t start = lower ? std::clamp<int64_t>(back, 0, rows) : 0;
  const int64_t stop = lower ? rows : std::clamp<int64_t>(saturated_sum(columns, back), 0, rows);
  int64_t *row = o.ptr<int64_t>(), *column = row + o.size(1);
  for (int64_t i = start; i < stop; ++i) {
    const int64_t first = begin(i), n = end(i) - first;
    row = std::fill_n(row, n, i);
    for (int64_t j = 0; j < n; ++j) column[j] = first + j;
    column += n;
  }
}

MSA_KERNEL(Arange) {  // start, end, step, dtype?
  const Scalar &start = c.scalar(0), &end = c.scalar(1), &step = c.scalar(2);
  const bool integers = start.kind <= Scalar::kInt && end.kind <= Scalar::kInt && step.kind <= Scalar::kInt;
  const DType dtype = dtype_or(c, 3, integers ? DType::I64 : DType::F32);
  const double a = start.to<double>(), b = end.to<double>(), d = step.to<double>();
  check(d != 0, "step must be nonzero");
  check(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
  check((d > 0 && b >= a) || (d < 0 && b <= a), "upper bound and lower bound inconsistent with step sign");
  if (dtype == DType::I64 && step.to<int64_t>() == 0) throw ValueError("step must be nonzero");
  double n;
  if (dtype == DType::I64)
    n = std::ceil(static_cast<double>((Size(end.to<int64_t>()) - start.to<int64_t>()).value("the range")) /
                  static_cast<double>(step.to<int64_t>()));
  else
    n = std::ceil((b - a) / d);
  check(n >= 0 && n < 9.2e18, "invalid size, possible overflow?");
  const Tensor o = c.out(0, dtype, Dims{static_cast<int64_t>(n)});
  if (shape_only()) return;
  MSA_SWITCH_(dtype, "arange_cpu",
              MSA_CASES_INT_(arange_values<T>(o, start, step)) MSA_CASES_UINT_(arange_values<T>(o, start, step))
                  MSA_CASES_FLOAT_(arange_values<T>(o, start, step)));
}

MSA_KERNEL(LinSpaceExt) {  // start, end, steps, dtype?
  check(c.integer(2) >= 0, "number of steps must be non-negative");
  const Tensor o = c.out(0, dtype_or(c, 3, DType::F32), Dims{c.integer(2)});
  if (shape_only()) return;
  if (o.numel == 1) return fill(o, c.scalar(0));
  MSA_SWITCH_NUMBER(o.dtype, "linspace_cpu", linspace_values<T>(o, c.scalar(0), c.scalar(1)));
}

MSA_KERNEL(LogSpaceExt) {  // start, end, steps, base, dtype?
  check(c.integer(2) >= 0, "number of steps must be non-negative");
  const Tensor o = c.out(0, dtype_or(c, 4, DType::F32), Dims{c.integer(2)});
  if (shape_only()) return;
  MSA_SWITCH_NUMBER(o.dtype, "logspace_cpu", logspace_values<T>(o, c.scalar(0), c.scalar(1), c.number(3)));
}

}  // namespace msa
