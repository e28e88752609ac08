// Decompositions of matrices.
#include <cmath>

#include "values.h"

using namespace sim;

namespace {
// a (rows x columns, row-major) becomes its triangle. q (rows x rows) becomes the product of the reflections that lead
// to it. The signs are those of Householder's reflections as LAPACK and Eigen make them.
void Decompose(std::vector<double> *a, std::vector<double> *q, int64_t rows, int64_t columns) {
  auto at = [&](int64_t i, int64_t j) -> double & { return (*a)[i * columns + j]; };
  q->assign(static_cast<size_t>(rows * rows), 0);
  for (int64_t i = 0; i < rows; ++i) (*q)[i * rows + i] = 1;
  for (int64_t k = 0; k < std::min(rows - 1, columns); ++k) {
    double tail = 0;
    for (int64_t i = k + 1; i < rows; ++i) tail += at(i, k) * at(i, k);
    if (tail == 0) continue;
    const double head = at(k, k), length = std::sqrt(head * head + tail), beta = head >= 0 ? -length : length;
    std::vector<double> v(static_cast<size_t>(rows - k));
    double norm = 0;
    for (int64_t i = k; i < rows; ++i) {
      v[i - k] = i == k ? head - beta : at(i, k);
      norm += v[i - k] * v[i - k];
    }
    for (int64_t j = k; j < columns; ++j) {
      double dot = 0;
      for (int64_t i = k; i < rows; ++i) dot += v[i - k] * at(i, j);
      for (int64_t i = k; i < rows; ++i) at(i, j) -= 2 * dot / norm * v[i - k];
    }
    for (int64_t i = k + 1; i < rows; ++i) at(i, k) = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double dot = 0;
      for (int64_t j = k; j < rows; ++j) dot += (*q)[i * rows + j] * v[j - k];
      for (int64_t j = k; j < rows; ++j) (*q)[i * rows + j] -= 2 * dot / norm * v[j - k];
    }
  }
}
}  // namespace

ACLNN_OP(LinalgQr, (Tensor self, int64_t mode, Out Q, Out R), "ops-math/math/qr") {
  enum { kReduced = 0, kComplete = 1, kTriangle = 2 };
  Takes(self, F32 | F16 | F64);
  HasRank(self, 2, 8);
  SameType(self, Q);
  SameType(self, R);
  Require(mode >= kReduced && mode <= kTriangle, "mode is 0, 1 or 2");
  const int64_t m = self.shape[self.rank() - 2], n = self.shape.back(), kept = mode == kComplete ? m : std::min(m, n);
  const int64_t batches = Count({self.shape.begin(), self.shape.end() - 2});
  Shape q_shape = self.shape, r_shape = self.shape;
  q_shape.back() = kept;
  r_shape[self.rank() - 2] = kept;
  HasShape(R, r_shape);
  if (mode == kTriangle) {
    Require(Q.numel() == 0, "Q is empty in mode 2");
  } else {
    HasShape(Q, q_shape);
  }
  return [=] {
    const auto x = Reals(self);
    std::vector<double> all_q, all_r;
    for (int64_t batch = 0; batch < batches; ++batch) {
      std::vector<double> a(x.begin() + batch * m * n, x.begin() + (batch + 1) * m * n), q;
      Decompose(&a, &q, m, n);
      for (int64_t i = 0; i < m; ++i) all_q.insert(all_q.end(), q.begin() + i * m, q.begin() + i * m + kept);
      all_r.insert(all_r.end(), a.begin(), a.begin() + kept * n);
    }
    if (mode != kTriangle) Write(Q, all_q);
    Write(R, all_r);
  };
}
