#include "product.h"

#include <algorithm>

using namespace sim;

namespace sim {
void Accumulate(const float *a, const float *b, float *c, int64_t rows, int64_t inner, int64_t columns) {
  constexpr int64_t kBlock = 128;  // rows of b that stay in the cache
  for (int64_t from = 0; from < inner; from += kBlock) {
    const int64_t to = std::min(inner, from + kBlock);
    for (int64_t m = 0; m < rows; ++m) {
      float *out = c + m * columns;
      for (int64_t k = from; k < to; ++k) {
        const float factor = a[m * inner + k];
        const float *row = b + k * columns;
        for (int64_t n = 0; n < columns; ++n) out[n] += factor * row[n];
      }
    }
  }
}

Tensor Transposed(Tensor tensor) {
  const size_t rank = tensor.shape.size();
  std::swap(tensor.shape.at(rank - 1), tensor.shape.at(rank - 2));
  std::swap(tensor.stride.at(rank - 1), tensor.stride.at(rank - 2));
  return tensor;
}

void CheckPrecision(int cube_math_type) {
  if (cube_math_type < 0 || cube_math_type > 4) Refuse("cubeMathType is %d; it is 0 to 4", cube_math_type);
}

namespace {
// A row or a column as a matrix.
Tensor AsMatrix(Tensor tensor, bool row) {
  if (tensor.rank() != 1) return tensor;
  const auto at = row ? 0 : 1;
  tensor.shape.insert(tensor.shape.begin() + at, 1);
  tensor.stride.insert(tensor.stride.begin() + at, 0);
  return tensor;
}
}  // namespace

ProductShape::ProductShape(const Tensor &first, const Tensor &second) {
  Require(first.rank() > 0 && second.rank() > 0, "a product takes no tensors without axes");
  const Tensor a = AsMatrix(first, true), b = AsMatrix(second, false);
  rows = a.shape[a.rank() - 2];
  inner = a.shape[a.rank() - 1];
  columns = b.shape[b.rank() - 1];
  if (b.shape[b.rank() - 2] != inner) {
    Refuse("the shapes %s and %s do not multiply", Print(first.shape).c_str(), Print(second.shape).c_str());
  }
  batch = BroadcastShape(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2));
  result = batch;
  if (first.rank() > 1) result.push_back(rows);
  if (second.rank() > 1) result.push_back(columns);
}

std::vector<float> Multiply(const Tensor &first, const Tensor &second) {
  const ProductShape shape(first, second);
  Shape left = shape.batch, right = shape.batch;
  left.insert(left.end(), {shape.rows, shape.inner});
  right.insert(right.end(), {shape.inner, shape.columns});
  const auto a = Read<float>(AsMatrix(first, true), left), b = Read<float>(AsMatrix(second, false), right);
  const int64_t many = Count(shape.batch);
  std::vector<float> c(static_cast<size_t>(many * shape.rows * shape.columns));
  for (int64_t i = 0; i < many; ++i) {
    Accumulate(&a[i * shape.rows * shape.inner], &b[i * shape.inner * shape.columns],
               &c[i * shape.rows * shape.columns], shape.rows, shape.inner, shape.columns);
  }
  return c;
}
}  // namespace sim

namespace {
Task ProductInto(const Tensor &a, const Tensor &b, const Tensor &out, int precision) {
  CheckPrecision(precision);
  for (const Tensor &one : {a, b, out}) Takes(one, kHalves);
  HasShape(out, ProductShape(a, b).result);
  return [=] { Write(out, Multiply(a, b)); };
}
// beta * self + alpha * product. With beta = 0 the old numbers do not matter, not even not-a-number.
Task SumWithProduct(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &beta, const Scalar &alpha,
                    const Tensor &out, int precision, bool sum_of_batch = false) {
  CheckPrecision(precision);
  for (const Tensor &one : {self, a, b, out}) Takes(one, kHalves);
  Shape shape = ProductShape(a, b).result;
  if (sum_of_batch) shape.erase(shape.begin());
  HasShape(out, shape);
  HasShape(out, BroadcastShape(self.shape, shape));
  return [=] {
    const auto product = Multiply(a, b);
    auto x = Reals(self, out.shape);
    for (auto &v : x) v = beta.real == 0 ? 0 : beta.real * v;
    for (size_t i = 0; i < product.size(); ++i) x[i % x.size()] += alpha.real * product[i];
    Write(out, x);
  };
}
constexpr const char *kMatmul = "ops-nn/matmul/mat_mul_v3", *kBatch = "ops-nn/matmul/batch_mat_mul_v3";
}  // namespace

ACLNN_OP(Matmul, (Tensor self, Tensor mat2, Out out, int8_t cubeMathType), kMatmul) {
  return ProductInto(self, mat2, out, cubeMathType);
}
ACLNN_OP(Mm, (Tensor self, Tensor mat2, Out out, int8_t cubeMathType), kMatmul) {
  HasRank(self, 2, 2);
  HasRank(mat2, 2, 2);
  return ProductInto(self, mat2, out, cubeMathType);
}
ACLNN_OP(BatchMatMul, (Tensor self, Tensor mat2, Out out, int8_t cubeMathType), kBatch) {
  HasRank(self, 3, 3);
  HasRank(mat2, 3, 3);
  return ProductInto(self, mat2, out, cubeMathType);
}
ACLNN_OP(Mv, (Tensor self, Tensor vec, Out out, int8_t cubeMathType), "ops-nn/matmul/mv") {
  HasRank(self, 2, 2);
  HasRank(vec, 1, 1);
  return ProductInto(self, vec, out, cubeMathType);
}
ACLNN_OP(Dot, (Tensor self, Tensor tensor, Out out), "ops-math/math/dot") {
  HasRank(self, 1, 1);
  SameShape(self, tensor);
  SameType(self, tensor);
  Takes(self, kHalves | I32 | I8 | U8);
  HasShape(out, {});
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      const auto x = Read<C>(self), y = Read<C>(tensor);
      C sum = 0;
      for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
      Write(out, std::vector<C>{sum});
    });
  };
}
ACLNN_OP(Addmm, (Tensor self, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, Out out, int8_t cubeMathType),
         kMatmul) {
  HasRank(mat1, 2, 2);
  HasRank(mat2, 2, 2);
  return SumWithProduct(self, mat1, mat2, beta, alpha, out, cubeMathType);
}
ACLNN_OP(InplaceAddmm, (Out selfRef, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, int8_t cubeMathType),
         kMatmul) {
  return SumWithProduct(selfRef, mat1, mat2, beta, alpha, selfRef, cubeMathType);
}
ACLNN_OP(Baddbmm, (Tensor self, Tensor batch1, Tensor batch2, Scalar beta, Scalar alpha, Out out, int8_t cubeMathType),
         kBatch) {
  HasRank(batch1, 3, 3);
  HasRank(batch2, 3, 3);
  return SumWithProduct(self, batch1, batch2, beta, alpha, out, cubeMathType);
}
ACLNN_OP(Addbmm, (Tensor self, Tensor batch1, Tensor batch2, Scalar beta, Scalar alpha, Out out, int8_t cubeMathType),
         kBatch) {
  HasRank(batch1, 3, 3);
  HasRank(batch2, 3, 3);
  return SumWithProduct(self, batch1, batch2, beta, alpha, out, cubeMathType, true);
}
ACLNN_OP(Addmv, (Tensor self, Tensor mat, Tensor vec, Scalar alpha, Scalar beta, Out out, int8_t cubeMathType),
         "ops-nn/matmul/addmv") {
  HasRank(mat, 2, 2);
  HasRank(vec, 1, 1);
  return SumWithProduct(self, mat, vec, beta, alpha, out, cubeMathType);
}
ACLNN_OP(LinalgCross, (Tensor self, Tensor other, int64_t dim, Out out), "ops-math/math/cross") {
  Takes(self, kReals);
  SameType(self, other);
  FitsBroadcast({self, other}, out);
  const int64_t axis = Axis(dim, out.rank());
  Require(out.rank() > 0 && out.shape[axis] == 3, "the size along dim is 3");
  return [=] {
    const auto a = Reals(self, out.shape), b = Reals(other, out.shape);
    const Around around(out.shape, axis);
    std::vector<double> c(a.size());
    for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i) {
      const int64_t k = i / around.inner % 3, base = i - k * around.inner;
      const int64_t p = base + (k + 1) % 3 * around.inner, q = base + (k + 2) % 3 * around.inner;
      c[i] = a[p] * b[q] - a[q] * b[p];
    }
    Write(out, c);
  };
}
ACLNN_OP(TriangularSolve, (Tensor self, Tensor A, bool upper, bool transpose, bool unitriangular, Out xOut, Out mOut),
         "ops-math/math/triangular_solve") {
  Takes(self, F32 | F64);
  SameType(self, A);
  HasRank(self, 2, 8);
  HasRank(A, 2, 8);
  return [=] {
    const int64_t n = A.shape[A.rank() - 1], columns = self.shape[self.rank() - 1];
    Shape batch(xOut.shape.begin(), xOut.shape.end() - 2), square = batch;
    square.insert(square.end(), {n, n});
    auto x = Reals(self, xOut.shape);
    const auto a = Reals(transpose ? Transposed(A) : A, square);
    const bool from_the_end = upper != transpose;  // the transposed matrix is triangular the other way
    for (int64_t b = 0; b < Count(batch); ++b) {
      const double *m = &a[b * n * n];
      double *y = &x[b * n * columns];
      for (int64_t step = 0; step < n; ++step) {
        const int64_t row = from_the_end ? n - 1 - step : step;
        for (int64_t c = 0; c < columns; ++c) {
          double sum = y[row * columns + c];
          const int64_t begin = from_the_end ? row + 1 : 0, end = from_the_end ? n : row;
          for (int64_t k = begin; k < end; ++k) sum -= m[row * n + k] * y[k * columns + c];
          y[row * columns + c] = unitriangular ? sum : sum / m[row * n + row];
        }
      }
    }
    Write(xOut, x);
    Convert(A, mOut);
  };
}
