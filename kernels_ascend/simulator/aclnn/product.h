// Products of matrices. They are accumulated in float32, as the matrix unit does.
#pragma once
#include "values.h"

namespace sim {
// The last two axes are matrices, the axes before are broadcast; a tensor of one axis is a row or a column.
struct ProductShape {
  Shape batch, result;
  int64_t rows, inner, columns;
  ProductShape(const Tensor &a, const Tensor &b);
};
std::vector<float> Multiply(const Tensor &a, const Tensor &b);
// c[rows, columns] += a[rows, inner] b[inner, columns], all dense.
void Accumulate(const float *a, const float *b, float *c, int64_t rows, int64_t inner, int64_t columns);
Tensor Transposed(Tensor tensor);  // swaps the last two axes

// cubeMathType says whether float32 may be computed with less precision: 0 to 4, as the pages of products name them.
void CheckPrecision(int cube_math_type);
}  // namespace sim
