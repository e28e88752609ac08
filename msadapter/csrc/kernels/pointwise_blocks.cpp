// The loop of all element-wise kernels: see pointwise.h.
#include "category.h"
#include "from_bool.h"
#include "half_blocks.h"
#include "loop_rows.h"
#include "pointwise.h"

namespace msa {
namespace {

constexpr int kMaxOperands = 6;
constexpr int64_t kBlock = 512;
constexpr int kMaxItem = 16;
constexpr int64_t kShortRow = 64;  // rows with fewer elements than this are computed several at a time

// ---- moving one block between an operand and a buffer of the compute type
template <class TO, class TI>
void gather(char *dst, const char *src, int64_t step, int64_t n) {
  TO *o = reinterpret_cast<TO *>(dst);
  if (step == static_cast<int64_t>(sizeof(TI))) {
    const TI *p = reinterpret_cast<const TI *>(src);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = copied<TO>(element<TI>(p + i));
  } else if (step == 0) {
    const TO v = copied<TO>(element<TI>(src));
    for (int64_t i = 0; i < n; ++i) o[i] = v;
  } else {
    for (int64_t i = 0; i < n; ++i) o[i] = copied<TO>(element<TI>(src + i * step));
  }
}
template <class TO, class TI>
void scatter(char *dst, const char *src, int64_t step, int64_t n) {
  const TI *p = reinterpret_cast<const TI *>(src);
  if (step == static_cast<int64_t>(sizeof(TO))) {
    TO *o = reinterpret_cast<TO *>(dst);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = convert<TO>(p[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<TO *>(dst + i * step) = convert<TO>(p[i]);
  }
}

// The conversions between element types and compute types: all types from and to int64, float and double, and complex
// types from and to each other.
template <class C>
void load_as(char *dst, const char *src, int64_t step, int64_t n, DType from) {
  if constexpr (is_complex_v<C>) {
    MSA_SWITCH_STORED(from, "load", (gather<C, T>(dst, src, step, n)));
  } else {
    MSA_SWITCH_(from, "load",
                MSA_CASES_INT_((gather<C, T>(dst, src, step, n))) MSA_CASES_UINT_((gather<C, T>(dst, src, step, n)))
                    MSA_CASES_FLOAT_((gather<C, T>(dst, src, step, n)))
                        MSA_CASE(Bool, bool, (gather<C, T>(dst, src, step, n))));
  }
}
template <class C>
void store_as(char *dst, const char *src, int64_t step, int64_t n, DType to) {
  if constexpr (is_complex_v<C>) {
    MSA_SWITCH_(to, "store", MSA_CASES_COMPLEX_((scatter<T, C>(dst, src, step, n))));
  } else {
    MSA_SWITCH_ALL(to, "store", (scatter<T, C>(dst, src, step, n)));
  }
}

void load(char *dst, DType compute, const char *src, DType from, int64_t step, int64_t n) {
  if (compute == from) {
    MSA_SWITCH_BYTES(from, (gather<T, T>(dst, src, step, n)));
    return;
  }
  if (compute == DType::F32 && from == DType::F16 && step == sizeof(Half))
    return widen_half(reinterpret_cast<float *>(dst), reinterpret_cast<const Half *>(src), n);
  switch (compute) {
    case DType::F32: return load_as<float>(dst, src, step, n, from);
    case DType::F64: return load_as<double>(dst, src, step, n, from);
    case DType::I64: return load_as<int64_t>(dst, src, step, n, from);
    case DType::C64: return load_as<c64>(dst, src, step, n, from);
    case DType::C128: return load_as<c128>(dst, src, step, n, from);
    case DType::Bool: MSA_SWITCH_STORED(from, "load", (gather<bool, T>(dst, src, step, n))); return;
    default: fail("internal: no conversion from ", from, " to ", compute);
  }
}
void store(char *dst, DType to, const char *src, DType compute, int64_t step, int64_t n) {
  if (compute == to) {
    MSA_SWITCH_BYTES(to, (scatter<T, T>(dst, src, step, n)));
    return;
  }
  if (compute == DType::F32 && to == DType::F16 && step == sizeof(Half))
    return narrow_half(reinterpret_cast<Half *>(dst), reinterpret_cast<const float *>(src), n);
  switch (compute) {
    case DType::F32: return store_as<float>(dst, src, step, n, to);
    case DType::F64: return store_as<double>(dst, src, step, n, to);
    case DType::I64: return store_as<int64_t>(dst, src, step, n, to);
    case DType::C64: return store_as<c64>(dst, src, step, n, to);
    case DType::C128: return store_as<c128>(dst, src, step, n, to);
    case DType::Bool: return store_as<bool>(dst, src, step, n, to);
    default: fail("internal: no conversion from ", compute, " to ", to);
  }
}

// Strides and sizes in bytes and elements of a tile: `rows` rows of `n` elements.
struct Tile {
  int64_t n, rows, step, row_step;
};

// Fills dst with each of the `rows` values of src, n times.
template <class T>
void repeat_each(char *dst, const char *src, int64_t n, int64_t rows) {
  T *o = reinterpret_cast<T *>(dst);
  const T *p = reinterpret_cast<const T *>(src);
  for (int64_t r = 0; r < rows; ++r, o += n)
    for (int64_t i = 0; i < n; ++i) o[i] = p[r];
}

// Moves a tile of an operand to a buffer of the compute type, in which its rows follow each other.
void load_tile(char *dst, DType compute, const char *src, DType from, const Tile &t) {
  const int64_t row_bytes = t.n * item_size(compute);
  if (t.step == 0) {
    alignas(64) char column[kBlock * kMaxItem];
    load(column, compute, src, from, t.row_step, t.rows);
    MSA_SWITCH_BYTES(compute, (repeat_each<T>(dst, column, t.n, t.rows)));
  } else if (t.row_step == t.n * t.step) {
    load(dst, compute, src, from, t.step, t.n * t.rows);
  } else {
    const int64_t different = t.row_step ? t.rows : 1;
    for (int64_t r = 0; r < different; ++r) load(dst + r * row_bytes, compute, src + r * t.row_step, from, t.step, t.n);
    for (int64_t r = different; r < t.rows; ++r) std::memcpy(dst + r * row_bytes, dst, row_bytes);
  }
}

struct Job {
  int count, nout;
  DType have[kMaxOperands], compute[kMaxOperands];
  Block f;
  const void *context;

  // One run of n elements with a byte step for each operand.
  void run(char *const *p, const int64_t *step, int64_t n) const {
    bool direct[kMaxOperands], all = true;
    for (int k = 0; k < count; ++k) {
      direct[k] = have[k] == compute[k] && (step[k] == item_size(have[k]) || n == 1);
      all = all && direct[k];
    }
    if (all) return f(p, n, context);
    buffered(p, step, n, direct);
  }

  // `rows` short rows of n elements. One call of f computes as many of them as a buffer holds.
  void run_rows(char *const *p, const int64_t *step, const int64_t *row_step, int64_t n, int64_t rows) const {
    alignas(64) char buffer[kMaxOperands][kBlock * kMaxItem];
    char *q[kMaxOperands];
    const int64_t most = kBlock / n;
    for (int64_t r = 0; r < rows; r += most) {
      const int64_t m = std::min(most, rows - r);
      for (int k = 0; k < count; ++k) {
        const int64_t item = item_size(have[k]);
        char *const here = p[k] + r * row_step[k];
        const bool direct = have[k] == compute[k] && step[k] == item && row_step[k] == n * item;
        q[k] = direct ? here : buffer[k];
        // a row that is the same for all rows stays in its buffer
        if (!direct && k >= nout && !(r > 0 && row_step[k] == 0))
          load_tile(buffer[k], compute[k], here, have[k], {n, m, step[k], row_step[k]});
      }
      f(q, m * n, context);
      for (int k = 0; k < nout; ++k)
        for (int64_t i = 0; q[k] == buffer[k] && i < m; ++i)
          store(p[k] + (r + i) * row_step[k], have[k], buffer[k] + i * n * item_size(compute[k]), compute[k], step[k],
                n);
    }
  }

 private:
  void buffered(char *const *p, const int64_t *step, int64_t n, const bool *direct) const {
    alignas(64) char buffer[kMaxOperands][kBlock * kMaxItem];
    char *q[kMaxOperands];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = std::min(kBlock, n - i);
      for (int k = 0; k < count; ++k) {
        if (direct[k]) {
          q[k] = p[k] + i * step[k];
          continue;
        }
        q[k] = buffer[k];
        // if one element is repeated (step 0), the buffer is filled once
        if (k >= nout && !(i > 0 && step[k] == 0)) load(buffer[k], compute[k], p[k] + i * step[k], have[k], step[k], m);
      }
      f(q, m, context);
      for (int k = 0; k < nout; ++k)
        if (!direct[k]) store(p[k] + i * step[k], have[k], buffer[k], compute[k], step[k], m);
    }
  }
};

// Whether all results and operands are contiguous with one shape, or single elements. Then no strided loop is needed.
bool flat_steps(int count, int nout, const Tensor *const *t, int64_t *step) {
  const Tensor &o = *t[0];
  for (int k = 0; k < count; ++k) {
    if (k >= nout && t[k]->numel == 1 && o.numel != 1)
      step[k] = 0;
    else if (o.numel == 1 || (t[k]->contiguous() && t[k]->same_shape(o)))
      step[k] = item_size(t[k]->dtype);
    else
      return false;
  }
  return true;
}

// Runs a job whose innermost dim is short. The loop is over rows in place of elements.
template <int N>
void run_short_rows(const Job &job, const Loop<N> &loop, int64_t grain) {
  const int64_t n = loop.sizes[0];
  int64_t step[N];
  for (int k = 0; k < N; ++k) step[k] = loop.strides[k][0];
  over_rows(loop).run(
      [&](char **p, const int64_t *row_step, int64_t count) { job.run_rows(p, step, row_step, n, count); },
      std::max<int64_t>(2, grain / n));
}

template <int N>
void strided(const Job &job, const Tensor *const *t, int64_t grain) {
  const Dims shape = t[0]->shape();
  std::array<Tensor, N> operands;
  for (int k = 0; k < N; ++k) operands[k] = expand(*t[k], shape);
  const Loop<N> loop(shape, operands);
  if (loop.ndim > 1 && loop.sizes[0] < kShortRow) return run_short_rows<N>(job, loop, grain);
  loop.run([&](char **p, const int64_t *s, int64_t n) { job.run(p, s, n); }, grain);
}

}  // namespace

void run_blocks(int count, int nout, const Tensor *const *t, const DType *compute, Block f, const void *context,
                int64_t grain) {
  const int64_t n = t[0]->numel;
  if (n == 0 || shape_only()) return;
  Job job;
  job.count = count;
  job.nout = nout;
  job.f = f;
  job.context = context;
  for (int k = 0; k < count; ++k) {
    job.have[k] = t[k]->dtype;
    job.compute[k] = compute[k];
  }
  int64_t step[kMaxOperands];
  if (flat_steps(count, nout, t, step)) {
    auto piece = [&](int64_t begin, int64_t end) {
      char *p[kMaxOperands];
      for (int k = 0; k < count; ++k) p[k] = static_cast<char *>(t[k]->data) + begin * step[k];
      job.run(p, step, end - begin);
    };
    if (n < grain || num_threads() == 1)
      piece(0, n);
    else
      parallel_for(n, grain / 2, piece);
    return;
  }
  switch (count) {
    case 1: return strided<1>(job, t, grain);
    case 2: return strided<2>(job, t, grain);
    case 3: return strided<3>(job, t, grain);
    case 4: return strided<4>(job, t, grain);
    case 5: return strided<5>(job, t, grain);
    default: return strided<6>(job, t, grain);
  }
}

// ---------------------------------------------------------------- operands
namespace {
bool is_number(Call &c, int i) { return c.args[i].kind == Arg::kScalar; }
DType wider(DType a, DType b) {
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if ((a == DType::F16 && b == DType::BF16) || (a == DType::BF16 && b == DType::F16)) return DType::F32;
  return item_size(a) >= item_size(b) ? a : b;
}
DType of_number(const Scalar &s) {
  return s.kind == Scalar::kBool    ? DType::Bool
         : s.kind == Scalar::kInt   ? DType::I64
         : s.kind == Scalar::kFloat ? DType::F32
                                    : DType::C64;
}
}  // namespace

DType common_dtype(Call &c, int i, int j) {
  const bool ni = is_number(c, i), nj = is_number(c, j);
  if (ni && nj) return wider(of_number(c.scalar(i)), of_number(c.scalar(j)));
  if (ni || nj) {
    const DType d = c.in(ni ? j : i).dtype, number = of_number(c.scalar(ni ? i : j));
    if (category(number) <= category(d)) return d;
    return is_complex(number) ? complex_of(d) : number;
  }
  const Tensor &a = c.in(i), &b = c.in(j);
  if (a.dtype == b.dtype) return a.dtype;
  if (category(a.dtype) == category(b.dtype) && (a.ndim == 0) != (b.ndim == 0)) return a.ndim ? a.dtype : b.dtype;
  return wider(a.dtype, b.dtype);
}

Tensor operand(Call &c, int i, DType beside, bool exact) {
  if (!is_number(c, i)) return c.in(i);
  Tensor r;
  r.numel = 1;
  r.data = c.scratch(16);
  r.dtype = exact && (beside == DType::F16 || beside == DType::BF16) ? DType::F32 : beside;
  MSA_SWITCH_STORED(r.dtype, "fill_cpu", (*r.ptr<T>() = c.scalar(i).wrapped<T>()));
  return r;
}

}  // namespace msa
