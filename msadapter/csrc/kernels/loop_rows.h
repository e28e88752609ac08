// Loops over the rows of the innermost dim of a strided loop, for rows that are too short for a call each.
#pragma once
#include "loops.h"

namespace msa {

// The same loop without its innermost dim. The loop has at least two dims.
template <int N>
Loop<N> over_rows(const Loop<N> &loop) {
  Loop<N> rows = loop;
  rows.numel /= loop.sizes[0];
  --rows.ndim;
  std::copy(loop.sizes + 1, loop.sizes + loop.ndim, rows.sizes);
  for (int k = 0; k < N; ++k) std::copy(loop.strides[k] + 1, loop.strides[k] + loop.ndim, rows.strides[k]);
  return rows;
}

}  // namespace msa
