// The product operators: shapes, broadcasting of batches, and bias. gemm.cpp computes the products.
#include "gemm.h"
#include "loops.h"
#include "type_names.h"

namespace msa {
namespace {

const Scalar &one() {
  static const Scalar s = make_scalar(1);
  return s;
}
const Scalar &zero() {
  static const Scalar s = make_scalar(0);
  return s;
}

void check_same_dtype(const Tensor &a, const Tensor &b) {
  check(a.dtype == b.dtype, "expected m1 and m2 to have the same dtype, but got: ", cpp_type_name(a.dtype),
        " != ", cpp_type_name(b.dtype));
}

// The tensor that is added to a product, and the right-hand factor. Elements of another dtype would be converted.
void check_added(const Tensor &input, const Tensor &b) {
  check(input.dtype == b.dtype, "self and mat2 must have the same dtype, but got ", input.dtype, " and ", b.dtype);
}

// The last two dims of a tensor as a matrix.
Matrix matrix_of(const Tensor &t, bool transposed = false) {
  Matrix m{t.data, t.stride(-2), t.stride(-1)};
  if (transposed) std::swap(m.rs, m.cs);
  return m;
}

Tensor with_dims(const Tensor &t, const Dims &sizes, const Dims &strides) { return make_view(t, sizes, strides); }

// Merges the leading dims: [..., k] -> [rows, k]. It copies only if the strides require it.
Tensor fold_rows(Call &c, const Tensor &t) {
  Tensor s = t;
  int64_t rows = 1;
  for (int d = 0; d + 1 < s.ndim; ++d) rows *= s.sizes[d];
  const int64_t k = s.size(-1);
  int64_t step = 0, have = 1;
  bool regular = true;
  for (int d = s.ndim - 2; d >= 0 && regular; --d) {
    if (s.sizes[d] == 1) continue;
    if (have == 1)
      step = s.strides[d];
    else
      regular = s.strides[d] == step * have;
    have *= s.sizes[d];
  }
  if (!regular) {
    s = c.contiguous(s);
    step = k;
  }
  return with_dims(s, {rows, k}, {have == 1 ? std::max<int64_t>(k, 1) : step, s.stride(-1)});
}

// Offsets of every matrix of a batch (dims before the last two), broadcast to `shape`.
std::vector<int64_t> batch_offsets(const Tensor &t, const Dims &shape) {
  int64_t count = 1;
  for (int64_t s : shape) count *= s;
  std::vector<int64_t> r(count, 0);
  const int nb = static_cast<int>(shape.size()), own = t.ndim - 2;
  for (int d = nb - 1, inner = 1; d >= 0; inner *= static_cast<int>(shape[d]), --d) {
    const int td = d - (nb - own);
    const int64_t stride = td < 0 || t.sizes[td] == 1 ? 0 : t.strides[td];
    if (stride == 0) continue;
    for (int64_t i = 0; i < count; ++i) r[i] += (i / inner) % shape[d] * stride;
  }
  return r;
}

Dims batch_shape(const Tensor &a, const Tensor &b) {
  Tensor x = a, y = b;
  x.ndim -= 2;
  y.ndim -= 2;
  return broadcast_shapes({&x, &y});
}

// out[..., m, n] = beta * out + alpha * a @ b, batches broadcast.
void batched_into(const Tensor &out, const Dims &batch, const Tensor &a, bool ta, const Tensor &b, bool tb,
                  const Scalar &alpha, const Scalar &beta) {
  const int64_t m = a.size(ta ? -1 : -2), k = a.size(ta ? -2 : -1), n = b.size(tb ? -2 : -1);
  int64_t count = 1;
  for (int64_t s : batch) count *= s;
  if (count == 1) return gemm(a.dtype, m, n, k, alpha, matrix_of(a, ta), matrix_of(b, tb), beta, out.data, n);
  const auto oa = batch_offsets(a, batch), ob = batch_offsets(b, batch);
  gemm_batched(a.dtype, {count, oa.data(), ob.data(), m * n}, m, n, k, alpha, matrix_of(a, ta), matrix_of(b, tb), beta,
               out.data, n);
}

void check_inner(int64_t m, int64_t k, int64_t k2, int64_t n) {
  check(k == k2, "mat1 and mat2 shapes cannot be multiplied (", m, "x", k, " and ", k2, "x", n, ")");
}

// a [..., k] times a matrix [k, n] (strides of any kind). bias may be null.
void fold_product(Call &c, const Tensor &a, const Matrix &b, int64_t k2, int64_t n, const Tensor *bias,
                  bool drop_columns) {
  const Tensor flat = fold_rows(c, a);
  const int64_t m = flat.size(0), k = flat.size(1);
  check_inner(m, k, k2, n);
  Dims shape = a.shape();
  if (drop_columns)
    shape.pop_back();
  else
    shape.back() = n;
  Tensor o = c.out(0, a.dtype, shape);
  if (bias) copy_into(contiguous_tensor(o.data, o.dtype, {m, n}), expand(*bias, {m, n}));
  gemm(a.dtype, m, n, k, one(), matrix_of(flat), b, bias ? one() : zero(), o.data, n);
}

void check_dot(const Tensor &a, const Tensor &b, const char *name) {
  check(a.ndim == 1 && b.ndim == 1, "1D tensors expected, but got ", a.ndim, "D and ", b.ndim, "D tensors");
  check(a.dtype == b.dtype, name, " : expected both vectors to have same dtype, but found ", a.dtype, " and ", b.dtype);
  check(a.numel == b.numel, "inconsistent tensor size, expected tensor ", a.shape(), " and src ", b.shape(),
        " to have the same number of elements, but got ", a.numel, " and ", b.numel, " elements respectively");
}

void dot(Call &c, const Tensor &a, const Tensor &b) {
  Tensor o = c.out(0, a.dtype, Dims{});
  const int64_t k = a.numel;
  if (a.dtype == DType::Bool) unsupported("dot", a.dtype);
  gemm(a.dtype, 1, 1, k, one(), {a.data, 1, a.stride(0)}, {b.data, b.stride(0), 1}, zero(), o.data, 1);
}

Tensor conjugate(Call &c, const Tensor &t) {
  if (!is_complex(t.dtype)) return t;
  Tensor r = contiguous_tensor(c.scratch(std::max<int64_t>(t.numel, 1) * item_size(t.dtype)), t.dtype, t.shape());
  if (t.dtype == DType::C64)
    map1<c64, c64>(r, t, [](c64 v) { return std::conj(v); });
  else
    map1<c128, c128>(r, t, [](c128 v) { return std::conj(v); });
  return r;
}

void mv(Call &c, const Tensor &a, const Tensor &x) {
  check(a.ndim == 2 && x.ndim == 1, "vector + matrix @ vector expected, got 1, ", a.ndim, ", ", x.ndim);
  check(a.size(1) == x.size(0), "size mismatch, got input (", a.size(0), "), mat (", a.size(0), "x", a.size(1),
        "), vec (", x.size(0), ")");
  check(a.dtype == x.dtype, "addmv input tensors must have the same dtype, but got ", x.dtype, ", ", a.dtype, ", and ",
        x.dtype);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0)});
  gemm(a.dtype, a.size(0), 1, a.size(1), one(), matrix_of(a), {x.data, x.stride(0), 1}, zero(), o.data, 1);
}

void check_batch(const Tensor &a, const Tensor &b, int64_t k, int64_t k2) {
  check(a.ndim == 3, "batch1 must be a 3D tensor");
  check(b.ndim == 3, "batch2 must be a 3D tensor");
  check(a.size(0) == b.size(0) && k == k2,
        "Expected size for first two dimensions of batch2 tensor to be: ", Dims{a.size(0), k},
        " but got: ", Dims{b.size(0), k2}, ".");
  check(a.dtype == b.dtype, "expected scalar type ", a.dtype, " but found ", b.dtype);
}

// Matmul with its rules for ranks: vectors lose their dim, and a matrix on the right is multiplied by all rows of the
// left operand at once.
void matmul(Call &c, const Tensor &a, bool ta, const Tensor &b, bool tb) {
  check(a.ndim > 0 && b.ndim > 0, "both arguments to matmul need to be at least 1D, but they are ", a.ndim, "D and ",
        b.ndim, "D");
  if (a.ndim == 1 && b.ndim == 1) {
    check_dot(a, b, "dot");
    return dot(c, a, b);
  }
  if (a.ndim == 2 && b.ndim == 1 && !ta) return mv(c, a, b);
  check_same_dtype(a, b);
  if (b.ndim == 1) {
    check(a.size(-1) == b.size(0), "size mismatch, got input (", a.numel / std::max<int64_t>(1, a.size(-1)), "), mat (",
          a.numel / std::max<int64_t>(1, a.size(-1)), "x", a.size(-1), "), vec (", b.size(0), ")");
    return fold_product(c, a, {b.data, b.stride(0), 1}, b.size(0), 1, nullptr, true);
  }
  if (b.ndim == 2 && !ta && a.ndim >= 2)
    return fold_product(c, a, matrix_of(b, tb), b.size(tb ? 1 : 0), b.size(tb ? 0 : 1), nullptr, false);
  Tensor left = a;
  if (a.ndim == 1) left = make_view(a, {1, a.size(0)}, {a.size(0), a.stride(0)});
  const int64_t m = left.size(ta ? -1 : -2), k = left.size(ta ? -2 : -1), k2 = b.size(tb ? -1 : -2),
                n = b.size(tb ? -2 : -1);
  if (left.ndim == 2 && b.ndim == 2) check_inner(m, k, k2, n);
  Dims batch = batch_shape(left, b);
  if (k != k2) {
    int64_t count = 1;
    for (int64_t s : batch) count *= s;
    fail("Expected size for first two dimensions of batch2 tensor to be: ", Dims{count, k},
         " but got: ", Dims{count, k2}, ".");
  }
  Dims shape = batch;
  if (a.ndim > 1) shape.push_back(m);
  shape.push_back(n);
  Tensor o = c.out(0, a.dtype, shape);
  batched_into(o, batch, left, ta, b, tb, one(), zero());
}

// Broadcasts `input` into `out`. If beta is zero, it is not read, because it may hold NaN.
void begin_with(const Tensor &out, const Tensor &input, const Scalar &beta) {
  if (is_zero(beta)) return;
  const Dims target = out.shape();
  check(input.ndim <= out.ndim, "expand(torch.", input.dtype, "Tensor{", input.shape(), "}, size=", target,
        "): the number of sizes provided (", out.ndim,
        ") must be greater or equal to the number of dimensions in the tensor (", input.ndim, ")");
  for (int d = 1; d <= input.ndim; ++d)
    check(input.size(-d) == 1 || input.size(-d) == out.size(-d), "The expanded size of the tensor (", out.size(-d),
          ") must match the existing size (", input.size(-d), ") at non-singleton dimension ", out.ndim - d,
          ".  Target sizes: ", target, ".  Tensor sizes: ", input.shape());
  copy_into(out, expand(input, target));
}

void addbmm(Call &c, const Tensor &input, const Tensor &a, const Tensor &b, const Scalar &beta, const Scalar &alpha) {
  check_batch(a, b, a.size(-1), b.size(-2));
  check_added(input, b);
  const int64_t m = a.size(1), n = b.size(2), k = a.size(2), size = item_size(a.dtype);
  Tensor o = c.out(0, a.dtype, Dims{m, n});
  begin_with(o, input, beta);
  if (a.size(0) == 0) return gemm(a.dtype, m, n, 0, alpha, matrix_of(a), matrix_of(b), beta, o.data, n);
  for (int64_t i = 0; i < a.size(0); ++i) {
    Matrix x = matrix_of(a), y = matrix_of(b);
    x.data = static_cast<const char *>(a.data) + i * a.stride(0) * size;
    y.data = static_cast<const char *>(b.data) + i * b.stride(0) * size;
    gemm(a.dtype, m, n, k, alpha, x, y, i == 0 ? beta : one(), o.data, n);
  }
}

}  // namespace

MSA_KERNEL(MatMulExt) { matmul(c, c.in(0), false, c.in(1), false); }
MSA_KERNEL(MatMul) { matmul(c, c.in(0), c.flag(2), c.in(1), c.flag(3)); }  // input, mat2, transpose_a, transpose_b
MSA_KERNEL(BatchMatMul) { matmul(c, c.in(0), c.flag(2), c.in(1), c.flag(3)); }

MSA_KERNEL(Mm) {  // input, mat2
  const Tensor &a = c.in(0), &b = c.in(1);
  check(a.ndim == 2, "self must be a matrix");
  check(b.ndim == 2, "mat2 must be a matrix");
  check_inner(a.size(0), a.size(1), b.size(0), b.size(1));
  check_same_dtype(a, b);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0), b.size(1)});
  gemm(a.dtype, a.size(0), b.size(1), a.size(1), one(), matrix_of(a), matrix_of(b), zero(), o.data, b.size(1));
}

MSA_KERNEL(BatchMatMulExt) {  // input, mat2
  const Tensor &a = c.in(0), &b = c.in(1);
  check_batch(a, b, a.size(-1), b.ndim == 3 ? b.size(1) : 0);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0), a.size(1), b.size(2)});
  batched_into(o, {a.size(0)}, a, false, b, false, one(), zero());
}

MSA_KERNEL(Addmm) {  // input, mat1, mat2, beta, alpha
  const Tensor &a = c.in(1), &b = c.in(2);
  check(a.ndim == 2, "mat1 must be a matrix, got ", a.ndim, "-D tensor");
  check(b.ndim == 2, "mat2 must be a matrix, got ", b.ndim, "-D tensor");
  check_inner(a.size(0), a.size(1), b.size(0), b.size(1));
  check_added(c.in(0), b);
  check(a.dtype == b.dtype, "mat1 and mat2 must have the same dtype, but got ", a.dtype, " and ", b.dtype);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0), b.size(1)});
  begin_with(o, c.in(0), c.scalar(3));
  gemm(a.dtype, a.size(0), b.size(1), a.size(1), c.scalar(4), matrix_of(a), matrix_of(b), c.scalar(3), o.data,
       b.size(1));
}

MSA_KERNEL(Addmv) {  // input, mat, vec, beta, alpha
  const Tensor &a = c.in(1), &x = c.in(2), &input = c.in(0);
  check(a.ndim == 2 && x.ndim == 1 && input.ndim <= 1, "vector + matrix @ vector expected, got ", input.ndim, ", ",
        a.ndim, ", ", x.ndim);
  check(a.size(1) == x.size(0) && (input.numel == a.size(0) || input.numel == 1), "size mismatch, got input (",
        input.numel, "), mat (", a.size(0), "x", a.size(1), "), vec (", x.size(0), ")");
  check(input.dtype == a.dtype && a.dtype == x.dtype, "addmv input tensors must have the same dtype, but got ",
        input.dtype, ", ", a.dtype, ", and ", x.dtype);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0)});
  begin_with(o, input, c.scalar(3));
  gemm(a.dtype, a.size(0), 1, a.size(1), c.scalar(4), matrix_of(a), {x.data, x.stride(0), 1}, c.scalar(3), o.data, 1);
}

MSA_KERNEL(Baddbmm) {  // input, batch1, batch2, beta, alpha
  const Tensor &a = c.in(1), &b = c.in(2);
  const DType d = c.in(0).dtype;
  check(a.ndim != 3 || b.ndim != 3 || a.dtype != b.dtype || d == a.dtype, "Input dtypes must be the same, got: input ",
        cpp_type_name(d), ", batch1: ", cpp_type_name(a.dtype), ", batch2: ", cpp_type_name(b.dtype));
  check_batch(a, b, a.size(-1), b.ndim == 3 ? b.size(1) : 0);
  Tensor o = c.out(0, a.dtype, Dims{a.size(0), a.size(1), b.size(2)});
  begin_with(o, c.in(0), c.scalar(3));
  batched_into(o, {a.size(0)}, a, false, b, false, c.scalar(4), c.scalar(3));
}

MSA_KERNEL(Addbmm) { addbmm(c, c.in(0), c.in(1), c.in(2), c.scalar(3), c.scalar(4)); }
MSA_KERNEL(Mv) { mv(c, c.in(0), c.in(1)); }
MSA_KERNEL(Dot) {
  check_dot(c.in(0), c.in(1), "dot");
  dot(c, c.in(0), c.in(1));
}
MSA_KERNEL(Vdot) {  // conj(input) . other
  check_dot(c.in(0), c.in(1), "vdot");
  dot(c, conjugate(c, c.in(0)), c.in(1));
}

MSA_KERNEL(Dense) {  // input, weight [n, k] or [k], bias?
  const Tensor &x = c.in(0), &w = c.in(1);
  check_same_dtype(x, w);
  // In other cases PyTorch adds the bias to the product in place, which converts it.
  if (c.has(2) && (x.ndim < 3 || x.contiguous())) check_added(c.in(2), w);
  if (w.ndim == 1) {
    check(x.size(-1) == w.size(0), "size mismatch, got input (", x.numel / std::max<int64_t>(1, x.size(-1)), "), mat (",
          x.numel / std::max<int64_t>(1, x.size(-1)), "x", x.size(-1), "), vec (", w.size(0), ")");
    return fold_product(c, x, {w.data, w.stride(0), 1}, w.size(0), 1, c.has(2) ? &c.in(2) : nullptr, true);
  }
  check(w.ndim == 2, "t() expects a tensor with <= 2 dimensions, but self is ", w.ndim, "D");
  if (c.has(2)) {
    const int64_t rows = x.numel / std::max<int64_t>(1, x.size(-1));
    check_inner(rows, x.size(-1), w.size(1), w.size(0));
    const Tensor &bias = c.in(2);
    check(bias.ndim == 0 || bias.size(-1) == w.size(0) || bias.size(-1) == 1, "The expanded size of the tensor (",
          w.size(0), ") must match the existing size (", bias.ndim ? bias.size(-1) : 1,
          ") at non-singleton dimension 1.  Target sizes: ", Dims{rows, w.size(0)}, ".  Tensor sizes: ", bias.shape());
  }
  fold_product(c, x, matrix_of(w, true), w.size(1), w.size(0), c.has(2) ? &c.in(2) : nullptr, false);
}

}  // namespace msa
