// Mixture of experts: choosing experts, moving tokens into the order of their experts and back.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "values.h"

using namespace sim;

namespace {
constexpr const char *kPermute = "ops-transformer/moe/moe_token_permute";
constexpr const char *kUnpermute = "ops-transformer/moe/moe_token_unpermute";

void NoPadding(bool padded) { Require(!padded, "paddedMode must be false"); }

// How many copies of each token there are, from (T, K) or (T).
int64_t Copies(const Tensor &tensor) { return tensor.rank() == 2 ? tensor.shape[1] : 1; }

// Rows of h numbers.
std::vector<double> Row(const std::vector<double> &x, int64_t row, int64_t h) {
  return {x.begin() + row * h, x.begin() + (row + 1) * h};
}
int64_t Target(int64_t row) {
  if (row < 0) OutOfRange("sortedIndices", row, INT32_MAX);
  return row;
}
}  // namespace

ACLNN_OP(MoeTokenPermute,
         (Tensor tokens, Tensor indices, int64_t numOutTokens, bool paddedMode, Out permuteTokensOut,
          Out sortedIndicesOut),
         kPermute) {
  NoPadding(paddedMode);
  Takes(tokens, kHalves);
  Takes(indices, kIndices);
  Takes(sortedIndicesOut, I32);
  SameType(tokens, permuteTokensOut);
  HasRank(tokens, 2, 2);
  HasRank(indices, 1, 2);
  Require(indices.shape[0] == tokens.shape[0], "indices has a row for each token");
  Require(Copies(indices) <= 512, "not more than 512 experts for each token");
  const int64_t copies = indices.numel();
  const int64_t rows = numOutTokens > 0 ? std::min(numOutTokens, copies) : copies + numOutTokens;
  HasShape(permuteTokensOut, {rows, tokens.shape[1]});
  HasShape(sortedIndicesOut, {copies});
  return [=] {
    const auto expert = Wholes(indices);
    std::vector<int64_t> order(expert.size()), where(expert.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return expert[a] < expert[b]; });
    for (size_t i = 0; i < order.size(); ++i) where[order[i]] = static_cast<int64_t>(i);
    for (int64_t i = 0; i < rows; ++i) {
      Convert(Part(tokens, 0, order[i] / Copies(indices), 1), Part(permuteTokensOut, 0, i, 1));
    }
    Write(sortedIndicesOut, where);
  };
}
ACLNN_OP(MoeTokenPermuteGrad,
         (Tensor permutedOutputGrad, Tensor sortedIndices, int64_t numTopk, bool paddedMode, Out out),
         "ops-transformer/moe/moe_token_permute_grad") {
  NoPadding(paddedMode);
  Takes(permutedOutputGrad, kHalves);
  Takes(sortedIndices, I32);
  Require(numTopk > 0 && sortedIndices.numel() == out.shape[0] * numTopk, "numTopk copies of each token");
  return [=] {
    const auto g = Reals(permutedOutputGrad);
    const auto at = Wholes(sortedIndices);
    const int64_t h = out.shape[1], rows = permutedOutputGrad.shape[0];
    std::vector<double> r(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < at.size(); ++i) {
      if (Target(at[i]) >= rows) continue;  // a copy that was dropped
      for (int64_t d = 0; d < h; ++d) r[static_cast<int64_t>(i) / numTopk * h + d] += g[at[i] * h + d];
    }
    Write(out, r);
  };
}
ACLNN_OP(MoeTokenUnpermute,
         (Tensor permutedTokens, Tensor sortedIndices, Maybe probs, bool paddedMode, MaybeInts restoreShape, Out out),
         kUnpermute) {
  NoPadding(paddedMode);
  (void)restoreShape;  // of the padded mode
  Takes(permutedTokens, kHalves);
  Takes(sortedIndices, I32);
  Takes(probs, kHalves);
  HasRank(permutedTokens, 2, 2);
  HasRank(sortedIndices, 1, 1);
  const int64_t copies = probs ? Copies(probs) : 1;
  Require(sortedIndices.numel() % copies == 0 && (!probs || probs.numel() == sortedIndices.numel()),
          "one probability for each copy");
  HasShape(out, {sortedIndices.numel() / copies, permutedTokens.shape[1]});
  return [=] {
    const auto x = Reals(permutedTokens), p = probs ? Reals(probs) : std::vector<double>{};
    const auto at = Wholes(sortedIndices);
    const int64_t h = permutedTokens.shape[1], rows = permutedTokens.shape[0];
    std::vector<double> r(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < at.size(); ++i) {
      if (Target(at[i]) >= rows) continue;
      const double weight = probs ? p[i] : 1;
      for (int64_t d = 0; d < h; ++d) r[static_cast<int64_t>(i) / copies * h + d] += weight * x[at[i] * h + d];
    }
    Write(out, r);
  };
}
ACLNN_OP(MoeTokenUnpermuteGrad,
         (Tensor permuteTokens, Tensor unpermutedTokensGrad, Tensor sortedIndices, Maybe probs, bool paddedMode,
          MaybeInts restoreShape, Out permutedTokensGradOut, MaybeOut probsGradOut),
         "ops-transformer/moe/moe_token_unpermute_grad") {
  NoPadding(paddedMode);
  (void)restoreShape;
  Takes(permuteTokens, kHalves);
  Takes(sortedIndices, I32);
  SameShape(permuteTokens, permutedTokensGradOut);
  return [=] {
    const auto x = Reals(permuteTokens), g = Reals(unpermutedTokensGrad);
    const auto p = probs ? Reals(probs) : std::vector<double>{};
    const auto at = Wholes(sortedIndices);
    const int64_t h = permuteTokens.shape[1], rows = permuteTokens.shape[0], copies = probs ? Copies(probs) : 1;
    std::vector<double> gx(x.size()), gp(p.size());
    for (size_t i = 0; i < at.size(); ++i) {
      if (Target(at[i]) >= rows) continue;
      const double *up = &g[static_cast<int64_t>(i) / copies * h];
      for (int64_t d = 0; d < h; ++d) {
        gx[at[i] * h + d] += (probs ? p[i] : 1) * up[d];
        if (probs) gp[i] += up[d] * x[at[i] * h + d];
      }
    }
    Write(permutedTokensGradOut, gx);
    if (probs) Write(probsGradOut, gp);
  };
}

// ---- routing of inference
ACLNN_OP(MoeGatingTopKSoftmax, (Tensor x, Maybe finished, int64_t k, Out yOut, Out expertIdxOut, Out rowIdxOut),
         "ops-transformer/moe/moe_gating_top_k_softmax") {
  Takes(x, kHalves);
  Takes(finished, B);
  Takes(expertIdxOut, I32);
  Takes(rowIdxOut, I32);
  HasRank(x, 2, 3);
  const int64_t experts = x.shape.back(), rows = x.numel() / std::max<int64_t>(1, experts);
  Require(k > 0 && k <= std::min<int64_t>(experts, 1024), "k lies between 1 and the number of experts");
  return [=] {
    const auto scores = Reals(x);
    const auto done = finished ? Wholes(finished) : std::vector<int64_t>(static_cast<size_t>(rows));
    std::vector<double> y;
    std::vector<int64_t> chosen, number, order(static_cast<size_t>(experts));
    for (int64_t i = 0; i < rows; ++i) {
      auto p = Row(scores, i, experts);
      const double top = *std::max_element(p.begin(), p.end());
      double sum = 0;
      for (auto &v : p) sum += v = std::exp(v - top);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
      for (int64_t j = 0; j < k; ++j) {
        y.push_back(p[order[j]] / sum);
        chosen.push_back(done[i] != 0 ? experts : order[j]);  // a finished row goes to no expert
        number.push_back(j * rows + i);
      }
    }
    Write(yOut, y);
    Write(expertIdxOut, chosen);
    Write(rowIdxOut, number);
  };
}
ACLNN_OP(MoeInitRouting,
         (Tensor x, Tensor rowIdx, Tensor expertIdx, int64_t activeNum, Out expandedXOut, Out expandedRowIdxOut,
          Out expandedExpertIdxOut),
         "ops-transformer/moe/moe_init_routing") {
  Takes(x, kHalves);
  Takes(rowIdx, I32);
  Takes(expertIdx, I32);
  HasRank(x, 2, 2);
  HasRank(rowIdx, 2, 2);
  SameShape(rowIdx, expertIdx);
  Require(rowIdx.shape[0] == x.shape[0], "rowIdx has a row for each row of x");
  Require(activeNum >= 0, "activeNum is not negative");
  return [=] {
    const auto number = Wholes(rowIdx), expert = Wholes(expertIdx);
    const int64_t rows = x.shape[0], k = rowIdx.shape[1], active = std::min(activeNum, rows) * k;
    std::vector<int64_t> order(expert.size()), where(expert.size()), sorted;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return expert[a] < expert[b]; });
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t from = number[order[i]];
      if (from < 0 || from >= rows * k) OutOfRange("rowIdx", from, rows * k);
      where[from] = static_cast<int64_t>(i);
      sorted.push_back(expert[order[i]]);
      if (static_cast<int64_t>(i) < active) {
        Convert(Part(x, 0, from % rows, 1), Part(expandedXOut, 0, static_cast<int64_t>(i), 1));
      }
    }
    Write(expandedRowIdxOut, where);
    Write(expandedExpertIdxOut, sorted);
  };
}
ACLNN_OP(MoeComputeExpertTokens, (Tensor sortedExperts, int64_t numExperts, Out out),
         "ops-transformer/moe/moe_compute_expert_tokens") {
  Takes(sortedExperts, I32);
  Takes(out, I32);
  HasRank(sortedExperts, 1, 1);
  HasShape(out, {numExperts});
  return [=] {
    std::vector<int64_t> ends(static_cast<size_t>(numExperts));
    for (const int64_t expert : Wholes(sortedExperts)) {
      for (int64_t e = std::max<int64_t>(0, expert); e < numExperts; ++e) ++ends[e];
    }
    Write(out, ends);
  };
}
ACLNN_OP(MoeFinalizeRouting,
         (Tensor expandedX, Tensor x1, Maybe x2, Tensor bias, Tensor scales, Tensor expandedRowIdx,
          Tensor expandedExpertIdx, Out out),
         "ops-transformer/moe/moe_finalize_routing") {
  Takes(expandedX, kHalves);
  for (const Tensor &one : {x1, Tensor(x2), bias, scales}) SameType(expandedX, one);
  Takes(expandedRowIdx, I32);
  Takes(expandedExpertIdx, I32);
  SameShape(x1, out);
  SameShape(x1, x2);
  HasRank(scales, 2, 2);
  return [=] {
    const auto x = Reals(expandedX), b = Reals(bias), s = Reals(scales);
    const auto row = Wholes(expandedRowIdx), expert = Wholes(expandedExpertIdx);
    auto y = Reals(x1);
    if (x2) {
      const auto other = Reals(x2);
      for (size_t i = 0; i < y.size(); ++i) y[i] += other[i];
    }
    const int64_t rows = out.shape[0], h = out.shape[1], k = scales.shape[1];
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        const int64_t from = row.at(i + j * rows), e = expert.at(i * k + j);
        if (from < 0 || from >= expandedX.shape[0]) OutOfRange("expandedRowIdx", from, expandedX.shape[0]);
        if (e < 0 || e >= bias.shape[0]) OutOfRange("the expert", e, bias.shape[0]);
        for (int64_t d = 0; d < h; ++d) y[i * h + d] += s[i * k + j] * (x[from * h + d] + b[e * h + d]);
      }
    }
    Write(out, y);
  };
}
