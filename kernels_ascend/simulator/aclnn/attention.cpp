// FlashAttentionScore and its gradient: dense (BSH, SBH, BSND, BNSD) and packed (TND) layouts, all sparse modes, masks,
// position biases and dropout. One head of one sequence is computed at a time, in float64.
#include <algorithm>
#include <cmath>

#include "product.h"

using namespace sim;

namespace {
constexpr const char *kForward = "ops-transformer/attention/flash_attention_score";
constexpr const char *kBackward = "ops-transformer/attention/flash_attention_score_grad";
constexpr double kLowest = -3.4028234663852886e38;  // softmaxMax of a query that sees no key
constexpr int64_t kLanes = 8;                       // softmaxMax and softmaxSum repeat each number eight times
constexpr int64_t kCompressedSide = 2048, kCompressedPrefixRows = 3072;
enum Mode { kFull, kAllMask, kLeftUp, kRightDown, kBand, kPrefix, kPrefixCompressed, kLastBand, kFirstBand };
enum Bias { kAfterScale, kBeforeScale, kAlibi, kAlibiRoot };

// What all four operators are given.
struct Call {
  Tensor query, key, value, pse, drop_mask, mask;
  std::vector<int64_t> prefix, q_ends, kv_ends;  // the ends of packed sequences
  int64_t q_start = 0, kv_start = 0;
  double scale, keep;
  int64_t before, after, heads, mode, bias;
  std::string layout;
};

// A sequence of a batch: where its rows begin, and how many queries and keys it has.
struct Sequence {
  int64_t batch, q_from, queries, k_from, keys;
};

struct Sizes {
  int64_t heads, kv_heads, width, value_width;
  bool packed;
  std::vector<Sequence> sequences;
  int64_t batch, queries, keys;  // of a dense layout
};

int64_t Dimension(const Tensor &tensor, const std::string &layout, char axis) {
  return tensor.shape[layout.find(axis)];
}

Sizes SizesOf(const Call &call) {
  Sizes sizes;
  const std::string &layout = call.layout;
  sizes.packed = layout == "TND";
  sizes.heads = call.heads;
  const bool merged = layout == "BSH" || layout == "SBH";  // heads and width share an axis
  if (merged) {
    sizes.width = Dimension(call.query, layout, 'H') / call.heads;
    sizes.kv_heads = Dimension(call.key, layout, 'H') / std::max<int64_t>(1, sizes.width);
    sizes.value_width = Dimension(call.value, layout, 'H') / std::max<int64_t>(1, sizes.kv_heads);
  } else {
    sizes.width = Dimension(call.query, layout, 'D');
    sizes.kv_heads = Dimension(call.key, layout, 'N');
    sizes.value_width = Dimension(call.value, layout, 'D');
  }
  if (sizes.packed) {
    int64_t q = 0, k = 0;
    for (size_t i = 0; i < call.q_ends.size(); ++i) {
      sizes.sequences.push_back({static_cast<int64_t>(i), q, call.q_ends[i] - q, k, call.kv_ends[i] - k});
      q = call.q_ends[i];
      k = call.kv_ends[i];
    }
    sizes.batch = static_cast<int64_t>(call.q_ends.size());
    sizes.queries = sizes.keys = 0;
    return sizes;
  }
  sizes.batch = Dimension(call.query, layout, 'B');
  sizes.queries = Dimension(call.query, layout, 'S');
  sizes.keys = Dimension(call.key, layout, 'S');
  for (int64_t b = 0; b < sizes.batch; ++b) sizes.sequences.push_back({b, 0, sizes.queries, 0, sizes.keys});
  return sizes;
}

// Where row i of a head begins in a row-major tensor of a layout.
int64_t Place(const std::string &layout, int64_t batch, int64_t b, int64_t rows, int64_t i, int64_t heads, int64_t n,
              int64_t width) {
  if (layout == "TND") return (i * heads + n) * width;
  if (layout == "SBH") return ((i * batch + b) * heads + n) * width;
  if (layout == "BNSD") return ((b * heads + n) * rows + i) * width;
  return ((b * rows + i) * heads + n) * width;  // BSH, BSND
}

void Check(const Call &call) {
  static const std::string kLayouts[] = {"BSH", "SBH", "BSND", "BNSD", "TND"};
  if (std::find(std::begin(kLayouts), std::end(kLayouts), call.layout) == std::end(kLayouts)) {
    Refuse("inputLayout is '%s'; it is BSH, SBH, BSND, BNSD or TND", call.layout.c_str());
  }
  const int64_t rank = static_cast<int64_t>(call.layout.size());
  for (const Tensor &one : {call.query, call.key, call.value}) {
    Takes(one, kHalves);
    SameType(call.query, one);
    HasRank(one, rank, rank);
  }
  Require(call.heads >= 1 && call.heads <= 256, "headNum lies between 1 and 256");
  const Sizes sizes = SizesOf(call);
  Require(sizes.width >= 1 && sizes.width <= 512, "the width of a head lies between 1 and 512");
  Require(sizes.kv_heads >= 1 && call.heads % sizes.kv_heads == 0, "the heads of query are a multiple of those of key");
  if (call.layout == "BSND" || call.layout == "BNSD" || sizes.packed) {
    Require(Dimension(call.query, call.layout, 'N') == call.heads, "headNum is the number of heads of query");
    Require(Dimension(call.key, call.layout, 'D') == sizes.width, "query and key are of one width");
  }
  Require(call.keep > 0 && call.keep <= 1, "keepProb lies in (0, 1]");
  Require(call.mode >= 0 && call.mode <= 8, "sparseMode lies between 0 and 8");
  Require(call.bias >= 0 && call.bias <= 3, "pseType lies between 0 and 3");
  Takes(call.mask, B | U8);
  Takes(call.drop_mask, U8);
  const bool has_prefix = call.mode == kPrefix || call.mode == kPrefixCompressed;
  Require(!has_prefix || static_cast<int64_t>(call.prefix.size()) == sizes.batch, "one prefix for each sequence");
  Require(!sizes.packed || call.mode != kPrefix, "sparseMode 5 is not for TND");
  Require(sizes.packed || (call.mode != kLastBand && call.mode != kFirstBand), "sparseMode 7 and 8 are for TND");
  if (sizes.packed) {
    Require(call.q_ends.size() == call.kv_ends.size() && !call.q_ends.empty(), "as many ends of queries as of keys");
    for (const Sequence &one : sizes.sequences) Require(one.queries >= 0 && one.keys >= 0, "the ends do not fall");
    Require(call.q_ends.back() <= call.query.shape[0] && call.kv_ends.back() <= call.key.shape[0],
            "the ends lie within the packed tensors");
  }
  for (size_t i = 0; has_prefix && i < call.prefix.size(); ++i) {
    const Sequence &one = sizes.sequences[i];
    if (call.prefix[i] < std::max<int64_t>(0, one.keys - one.queries) || call.prefix[i] > one.keys) {
      Refuse("the prefix %lld is outside of [max(0, Skv - Sq), Skv]", (long long)call.prefix[i]);
    }
  }
  const bool compressed = call.mode != kFull && call.mode != kAllMask && call.mode != kPrefix;
  if (compressed && call.mask) {
    const int64_t rows = call.mode == kPrefixCompressed ? kCompressedPrefixRows : kCompressedSide;
    const int64_t rank_of_mask = call.mask.rank();
    Require(rank_of_mask >= 2 && call.mask.shape[rank_of_mask - 1] == kCompressedSide &&
                call.mask.shape[rank_of_mask - 2] == rows && call.mask.numel() == rows * kCompressedSide,
            "this sparseMode takes the compressed attenMask of 2048 (mode 6: 3072) rows and 2048 columns");
  }
  if (call.pse) {
    const bool slopes = call.bias == kAlibi || call.bias == kAlibiRoot;
    Require(slopes ? call.pse.numel() % call.heads == 0 : call.pse.rank() == 4 && !sizes.packed,
            "pse is slopes, or (B or 1, N, Sq or 1, Skv); the compressed form of 1024 rows is not simulated");
    if (!slopes) {
      Require(call.pse.shape[2] == sizes.queries || call.pse.shape[2] == 1,
              "pse has Sq rows or one; the compressed form of 1024 rows is not simulated");
    }
  }
}

// Which keys a query sees, apart from an explicit mask: i - left <= j <= i + right, or j < prefix.
struct Visible {
  double left = INFINITY, right = INFINITY;
  int64_t prefix = 0;
  bool Sees(int64_t i, int64_t j) const {
    const double distance = static_cast<double>(j - i);
    return (distance >= -left && distance <= right) || j < prefix;
  }
};
Visible VisibleTo(const Call &call, const Sizes &sizes, const Sequence &one) {
  if (!call.mask || call.mode == kAllMask) return {};
  const double offset = static_cast<double>(one.keys - one.queries);  // of the diagonal that ends in the corner
  const double before = static_cast<double>(call.before), after = static_cast<double>(call.after);
  int64_t mode = call.mode;
  if (mode == kLastBand || mode == kFirstBand) {  // one sequence has a band, the others are causal
    int64_t special = -1;
    for (const Sequence &other : sizes.sequences) {
      if (other.queries > 0 && (mode == kLastBand || special < 0)) special = other.batch;
    }
    mode = one.batch == special ? kBand : mode == kLastBand ? kRightDown : kLeftUp;
  }
  switch (mode) {
    case kFull: return {before, after, 0};
    case kLeftUp: return {INFINITY, 0, 0};
    case kBand: return {before - offset, after + offset, 0};
    case kPrefix:
    case kPrefixCompressed: return {INFINITY, offset, call.prefix[static_cast<size_t>(one.batch)]};
    default: return {INFINITY, offset, 0};
  }
}

// Reads the operands once, and computes the rows of one head.
class Attention {
 public:
  explicit Attention(const Call &call)
      : call_(call), sizes_(SizesOf(call)), q_(Reals(call.query)), k_(Reals(call.key)), v_(Reals(call.value)) {
    if (call.pse) pse_ = Reals(call.pse);
    if (call.drop_mask) bits_ = Wholes(call.drop_mask);
    const bool explicit_mask = call.mode == kFull || call.mode == kAllMask || call.mode == kPrefix;
    if (call.mask && explicit_mask) mask_ = Wholes(call.mask);
  }
  const Sizes &sizes() const { return sizes_; }
  const double *Query(const Sequence &s, int64_t n, int64_t i) const { return &q_[QueryAt(s, n, i)]; }
  const double *Key(const Sequence &s, int64_t n, int64_t j) const { return &k_[KeyAt(s, n, j)]; }
  const double *Value(const Sequence &s, int64_t n, int64_t j) const { return &v_[ValueAt(s, n, j)]; }
  int64_t Group() const { return sizes_.heads / sizes_.kv_heads; }
  int64_t QueryAt(const Sequence &s, int64_t n, int64_t i) const {
    return Place(call_.layout, sizes_.batch, s.batch, sizes_.queries, s.q_from + i, sizes_.heads, n, sizes_.width);
  }
  int64_t KeyAt(const Sequence &s, int64_t n, int64_t j) const {
    return Place(call_.layout, sizes_.batch, s.batch, sizes_.keys, s.k_from + j, sizes_.kv_heads, n / Group(),
                 sizes_.width);
  }
  int64_t ValueAt(const Sequence &s, int64_t n, int64_t j) const {
    return Place(call_.layout, sizes_.batch, s.batch, sizes_.keys, s.k_from + j, sizes_.kv_heads, n / Group(),
                 sizes_.value_width);
  }
  int64_t ResultAt(const Sequence &s, int64_t n, int64_t i) const {
    return Place(call_.layout, sizes_.batch, s.batch, sizes_.queries, s.q_from + i, sizes_.heads, n,
                 sizes_.value_width);
  }
  // softmaxMax and softmaxSum: (B, N, Sq, 8). Packed (T, N, 8), where each sequence is stored as its own (N, Sq, 8).
  int64_t StatisticAt(const Sequence &s, int64_t n, int64_t i) const {
    const int64_t row =
        sizes_.packed ? s.q_from * sizes_.heads + n * s.queries + i : (s.batch * sizes_.heads + n) * sizes_.queries + i;
    return row * kLanes;
  }
  // The place of a score in pse; -1 for slopes.
  int64_t BiasAt(const Sequence &s, int64_t n, int64_t i, int64_t j) const {
    if (call_.bias == kAlibi || call_.bias == kAlibiRoot) return -1;
    const Shape &shape = call_.pse.shape;
    const int64_t b = shape[0] == 1 ? 0 : s.batch, h = shape[1] == 1 ? 0 : n, row = shape[2] == 1 ? 0 : i;
    return ((b * shape[1] + h) * shape[2] + row) * shape[3] + j;
  }
  // The scores of a query, minus infinity for hidden keys.
  std::vector<double> Scores(const Sequence &s, const Visible &visible, int64_t n, int64_t i) const {
    std::vector<double> scores(static_cast<size_t>(s.keys), -INFINITY);
    const double *q = Query(s, n, i);
    for (int64_t j = 0; j < s.keys; ++j) {
      if (!visible.Sees(i, j) || IsMasked(s, n, i, j)) continue;
      const double *k = Key(s, n, j);
      double sum = 0;
      for (int64_t d = 0; d < sizes_.width; ++d) sum += q[d] * k[d];
      scores[j] = Biased(sum, s, n, i, j);
    }
    return scores;
  }
  // Dropout's factor of a score: 0, or 1 / keepProb. The bits of all scores lie one after the other.
  double Kept(int64_t bit) const {
    if (bits_.empty()) return 1;
    if (bit / 8 >= static_cast<int64_t>(bits_.size())) OutOfRange("the bit of the dropout mask", bit, 8 * bits_.size());
    return (bits_[bit / 8] >> (bit % 8) & 1) != 0 ? 1 / call_.keep : 0;
  }
  // f(sequence, what it sees, head, query, the number of its first bit of the dropout mask)
  template <class F>
  void EachRow(F f) const {
    int64_t bit = 0;
    for (const Sequence &s : sizes_.sequences) {
      const Visible visible = VisibleTo(call_, sizes_, s);
      for (int64_t n = 0; n < sizes_.heads; ++n) {
        for (int64_t i = 0; i < s.queries; ++i, bit += s.keys) f(s, visible, n, i, bit);
      }
    }
  }

 private:
  bool IsMasked(const Sequence &s, int64_t n, int64_t i, int64_t j) const {
    if (mask_.empty()) return false;
    const Shape &shape = call_.mask.shape;
    const size_t rank = shape.size();
    int64_t at = i * shape[rank - 1] + j;
    if (rank == 4) { at += ((shape[0] == 1 ? 0 : s.batch) * shape[1] + (shape[1] == 1 ? 0 : n)) * shape[2] * shape[3]; }
    return mask_[at] != 0;
  }
  double Biased(double product, const Sequence &s, int64_t n, int64_t i, int64_t j) const {
    if (pse_.empty()) return product * call_.scale;
    if (call_.bias == kAfterScale) return product * call_.scale + pse_[BiasAt(s, n, i, j)];
    if (call_.bias == kBeforeScale) return (product + pse_[BiasAt(s, n, i, j)]) * call_.scale;
    double distance = std::fabs(static_cast<double>(i - j + call_.q_start - call_.kv_start));
    if (call_.bias == kAlibiRoot) distance = std::sqrt(distance);
    const bool shared = static_cast<int64_t>(pse_.size()) == sizes_.heads;
    return product * call_.scale - pse_[(shared ? 0 : s.batch) * sizes_.heads + n] * distance;
  }
  const Call call_;
  const Sizes sizes_;
  const std::vector<double> q_, k_, v_;
  std::vector<double> pse_;
  std::vector<int64_t> mask_, bits_;
};

Task Forward(const Call &call, const Tensor &max_out, const Tensor &sum_out, const Tensor &out) {
  Check(call);
  Takes(max_out, F32);
  Takes(sum_out, F32);
  SameType(call.query, out);
  return [=] {
    const Attention attention(call);
    const Sizes &sizes = attention.sizes();
    std::vector<double> result(static_cast<size_t>(out.numel())), top_out(static_cast<size_t>(max_out.numel())),
        total_out(static_cast<size_t>(sum_out.numel()));
    attention.EachRow([&](const Sequence &s, const Visible &visible, int64_t n, int64_t i, int64_t bit) {
      auto p = attention.Scores(s, visible, n, i);
      double top = -INFINITY, total = 0;
      for (const double v : p) top = std::max(top, v);
      const bool blind = top == -INFINITY;
      for (double &v : p) total += v = blind ? 0 : std::exp(v - top);
      if (blind) {
        top = kLowest;
        total = 1;
      }
      double *to = &result[attention.ResultAt(s, n, i)];
      for (int64_t j = 0; j < s.keys; ++j) {
        const double weight = p[j] == 0 ? 0 : p[j] / total * attention.Kept(bit + j);
        if (weight == 0) continue;
        const double *v = attention.Value(s, n, j);
        for (int64_t d = 0; d < sizes.value_width; ++d) to[d] += weight * v[d];
      }
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        top_out.at(attention.StatisticAt(s, n, i) + lane) = top;
        total_out.at(attention.StatisticAt(s, n, i) + lane) = total;
      }
    });
    Write(out, result);
    Write(max_out, top_out);
    Write(sum_out, total_out);
  };
}

Task Backward(const Call &call, const Tensor &dy, const Tensor &max_in, const Tensor &sum_in, const Tensor &dq,
              const Tensor &dk, const Tensor &dv, const Tensor &dpse) {
  Check(call);
  SameType(call.query, dy);
  SameShape(call.query, dq);
  SameShape(call.key, dk);
  SameShape(call.value, dv);
  Require(max_in && sum_in, "softmaxMax and softmaxSum of the forward pass are needed");
  return [=] {
    const Attention attention(call);
    const Sizes &sizes = attention.sizes();
    const auto g = Reals(dy), top = Reals(max_in), total = Reals(sum_in);
    std::vector<double> gq(static_cast<size_t>(dq.numel())), gk(static_cast<size_t>(dk.numel())),
        gv(static_cast<size_t>(dv.numel())), gp(call.pse && dpse ? static_cast<size_t>(call.pse.numel()) : 0);
    attention.EachRow([&](const Sequence &s, const Visible &visible, int64_t n, int64_t i, int64_t bit) {
      auto p = attention.Scores(s, visible, n, i);
      const int64_t row = attention.StatisticAt(s, n, i);
      const double *up = &g[attention.ResultAt(s, n, i)], *q = attention.Query(s, n, i);
      double *to_q = &gq[attention.QueryAt(s, n, i)];
      std::vector<double> slope(p.size());
      double mean = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        p[j] = p[j] == -INFINITY ? 0 : std::exp(p[j] - top[row]) / total[row];
        if (p[j] == 0) continue;
        const double kept = attention.Kept(bit + j), *v = attention.Value(s, n, j);
        double *to_v = &gv[attention.ValueAt(s, n, j)], sum = 0;
        for (int64_t d = 0; d < sizes.value_width; ++d) {
          sum += up[d] * v[d];
          to_v[d] += p[j] * kept * up[d];
        }
        slope[j] = sum * kept;
        mean += p[j] * slope[j];
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        const double d_score = p[j] * (slope[j] - mean);
        if (d_score == 0) continue;
        if (!gp.empty() && attention.BiasAt(s, n, i, j) >= 0) {
          gp[attention.BiasAt(s, n, i, j)] += call.bias == kBeforeScale ? d_score * call.scale : d_score;
        }
        const double *k = attention.Key(s, n, j);
        double *to_k = &gk[attention.KeyAt(s, n, j)];
        for (int64_t d = 0; d < sizes.width; ++d) {
          to_q[d] += d_score * call.scale * k[d];
          to_k[d] += d_score * call.scale * q[d];
        }
      }
    });
    Write(dq, gq);
    Write(dk, gk);
    Write(dv, gv);
    if (!gp.empty() && dpse.numel() == static_cast<int64_t>(gp.size())) Write(dpse, gp);
  };
}
Call Common(const Tensor &query, const Tensor &key, const Tensor &value, const Tensor &pse, const Tensor &drop_mask,
            const Tensor &padding_mask, const Tensor &mask, const std::vector<int64_t> &prefix, double scale,
            double keep, int64_t before, int64_t after, int64_t heads, const std::string &layout, int64_t mode,
            int64_t bias) {
  Require(!padding_mask, "paddingMask is reserved and must be missing");
  Call call{query, key,   value, pse,    drop_mask, mask,  prefix, {},   {},    0,
            0,     scale, keep,  before, after,     heads, mode,   bias, layout};
  Require((layout == "TND") == (std::string(Current()->name).find("VarLen") != std::string::npos ||
                                std::string(Current()->name).find("Unpadding") != std::string::npos),
          "TND is for the operators of packed sequences, other layouts for the dense ones");
  return call;
}
Call Packed(Call call, const std::vector<int64_t> &q_ends, const std::vector<int64_t> &kv_ends) {
  call.q_ends = q_ends;
  call.kv_ends = kv_ends;
  return call;
}
Call From(Call call, const std::vector<int64_t> &q_start, const std::vector<int64_t> &kv_start) {
  call.q_start = q_start.empty() ? 0 : q_start[0];
  call.kv_start = kv_start.empty() ? 0 : kv_start[0];
  return call;
}
}  // namespace

#define OPERANDS                                                                                         \
  Tensor query, Tensor key, Tensor value, Maybe pse, Maybe dropMask, Maybe paddingMask, Maybe attenMask, \
      MaybeInts prefix
#define OPERANDS_OF_GRADIENT                                                                                        \
  Tensor query, Tensor key, Tensor value, Tensor dy, Maybe pse, Maybe dropMask, Maybe paddingMask, Maybe attenMask, \
      Maybe softmaxMax, Maybe softmaxSum, Maybe softmaxIn, Maybe attentionIn, MaybeInts prefix
#define NUMBERS                                                                                                 \
  double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, Text inputLayout, \
      int64_t innerPrecise, int64_t sparseMode
#define COMMON(BIAS)                                                                                        \
  Common(query, key, value, pse, dropMask, paddingMask, attenMask, prefix, scaleValue, keepProb, preTokens, \
         nextTokens, headNum, inputLayout, sparseMode, BIAS)

// innerPrecise chooses how a device accumulates, and the results softmaxOut and the inputs softmaxIn and attentionIn
// are not needed here.
#define UNUSED (void)innerPrecise
#define UNUSED_OF_GRADIENT \
  UNUSED;                  \
  (void)softmaxIn;         \
  (void)attentionIn

ACLNN_OP(FlashAttentionScore,
         (OPERANDS, NUMBERS, Out softmaxMaxOut, Out softmaxSumOut, MaybeOut softmaxOut, Out attentionOut), kForward) {
  UNUSED;
  (void)softmaxOut;
  return Forward(COMMON(kBeforeScale), softmaxMaxOut, softmaxSumOut, attentionOut);
}
ACLNN_OP(FlashAttentionScoreV2,
         (OPERANDS, MaybeInts qStartIdx, MaybeInts kvStartIdx, NUMBERS, int64_t pseType, Out softmaxMaxOut,
          Out softmaxSumOut, MaybeOut softmaxOut, Out attentionOut),
         kForward) {
  UNUSED;
  (void)softmaxOut;
  return Forward(From(COMMON(pseType), qStartIdx, kvStartIdx), softmaxMaxOut, softmaxSumOut, attentionOut);
}
ACLNN_OP(FlashAttentionVarLenScore,
         (OPERANDS, MaybeInts actualSeqQLen, MaybeInts actualSeqKvLen, NUMBERS, Out softmaxMaxOut, Out softmaxSumOut,
          MaybeOut softmaxOut, Out attentionOut),
         kForward) {
  UNUSED;
  (void)softmaxOut;
  return Forward(Packed(COMMON(kBeforeScale), actualSeqQLen, actualSeqKvLen), softmaxMaxOut, softmaxSumOut,
                 attentionOut);
}
ACLNN_OP(FlashAttentionVarLenScoreV2,
         (OPERANDS, MaybeInts actualSeqQLen, MaybeInts actualSeqKvLen, MaybeInts qStartIdx, MaybeInts kvStartIdx,
          NUMBERS, int64_t pseType, Out softmaxMaxOut, Out softmaxSumOut, MaybeOut softmaxOut, Out attentionOut),
         kForward) {
  UNUSED;
  (void)softmaxOut;
  return Forward(From(Packed(COMMON(pseType), actualSeqQLen, actualSeqKvLen), qStartIdx, kvStartIdx), softmaxMaxOut,
                 softmaxSumOut, attentionOut);
}
ACLNN_OP(FlashAttentionScoreGrad, (OPERANDS_OF_GRADIENT, NUMBERS, Out dqOut, Out dkOut, Out dvOut, MaybeOut dpseOut),
         kBackward) {
  UNUSED_OF_GRADIENT;
  return Backward(COMMON(kBeforeScale), dy, softmaxMax, softmaxSum, dqOut, dkOut, dvOut, dpseOut);
}
ACLNN_OP(FlashAttentionScoreGradV2,
         (OPERANDS_OF_GRADIENT, MaybeInts qStartIdx, MaybeInts kvStartIdx, NUMBERS, int64_t pseType, Out dqOut,
          Out dkOut, Out dvOut, MaybeOut dpseOut),
         kBackward) {
  UNUSED_OF_GRADIENT;
  return Backward(From(COMMON(pseType), qStartIdx, kvStartIdx), dy, softmaxMax, softmaxSum, dqOut, dkOut, dvOut,
                  dpseOut);
}
ACLNN_OP(FlashAttentionUnpaddingScoreGrad,
         (OPERANDS_OF_GRADIENT, MaybeInts actualSeqQLen, MaybeInts actualSeqKvLen, NUMBERS, Out dqOut, Out dkOut,
          Out dvOut, MaybeOut dpseOut),
         kBackward) {
  UNUSED_OF_GRADIENT;
  return Backward(Packed(COMMON(kBeforeScale), actualSeqQLen, actualSeqKvLen), dy, softmaxMax, softmaxSum, dqOut, dkOut,
                  dvOut, dpseOut);
}
ACLNN_OP(FlashAttentionUnpaddingScoreGradV2,
         (OPERANDS_OF_GRADIENT, MaybeInts actualSeqQLen, MaybeInts actualSeqKvLen, MaybeInts qStartIdx,
          MaybeInts kvStartIdx, NUMBERS, int64_t pseType, Out dqOut, Out dkOut, Out dvOut, MaybeOut dpseOut),
         kBackward) {
  UNUSED_OF_GRADIENT;
  return Backward(From(Packed(COMMON(pseType), actualSeqQLen, actualSeqKvLen), qStartIdx, kvStartIdx), dy, softmaxMax,
                  softmaxSum, dqOut, dkOut, dvOut, dpseOut);
}

// ---- merging the results of two parts of the keys, as ring attention does
ACLNN_OP(RingAttentionUpdate,
         (Tensor prevAttnOut, Tensor prevSoftmaxMax, Tensor prevSoftmaxSum, Tensor curAttnOut, Tensor curSoftmaxMax,
          Tensor curSoftmaxSum, Maybe actualSeqQlen, Text inputLayout, Out attnOut, Out softmaxMaxOut,
          Out softmaxSumOut),
         "ops-transformer/attention/ring_attention_update") {
  Takes(prevAttnOut, kHalves);
  SameShape(prevAttnOut, curAttnOut);
  SameShape(prevSoftmaxMax, curSoftmaxMax);
  Require(inputLayout == "SBH" || inputLayout == "TND", "inputLayout is SBH or TND");
  Require(inputLayout != "TND" || actualSeqQlen, "TND needs actualSeqQlen");
  HasRank(prevAttnOut, 3, 3);
  return [=] {
    auto a = Reals(prevAttnOut);
    const auto b = Reals(curAttnOut), ma = Reals(prevSoftmaxMax), mb = Reals(curSoftmaxMax);
    const auto sa = Reals(prevSoftmaxSum), sb = Reals(curSoftmaxSum);
    std::vector<double> top(ma.size()), sum(ma.size());
    for (size_t i = 0; i < top.size(); ++i) {
      top[i] = std::max(ma[i], mb[i]);
      sum[i] = sa[i] * std::exp(ma[i] - top[i]) + sb[i] * std::exp(mb[i] - top[i]);
    }
    // The statistics are (B, N, S, 8) for SBH and, sequence by sequence, (N, S_i, 8) for TND.
    const bool packed = inputLayout == "TND";
    const int64_t heads = packed ? prevAttnOut.shape[1] : prevSoftmaxMax.shape[1];
    const int64_t rows = packed ? prevAttnOut.shape[0] : prevAttnOut.shape[0] * prevAttnOut.shape[1];
    const int64_t width = prevAttnOut.numel() / std::max<int64_t>(1, rows * heads), batch = prevAttnOut.shape[1];
    const auto ends = packed ? Wholes(actualSeqQlen) : std::vector<int64_t>{};
    size_t next = 1;
    for (int64_t row = 0; row < rows; ++row) {
      while (packed && next + 1 < ends.size() && row >= ends[next]) ++next;
      for (int64_t n = 0; n < heads; ++n) {
        int64_t at;
        if (packed) {
          const int64_t begin = ends[next - 1], length = ends[next] - begin;
          at = (begin * heads + n * length + row - begin) * kLanes;
        } else {
          at = ((row % batch * heads + n) * prevAttnOut.shape[0] + row / batch) * kLanes;
        }
        const double wa = std::exp(ma[at] - top[at]) * sa[at] / sum[at],
                     wb = std::exp(mb[at] - top[at]) * sb[at] / sum[at];
        for (int64_t d = 0; d < width; ++d) {
          double &v = a[(row * heads + n) * width + d];
          v = v * wa + b[(row * heads + n) * width + d] * wb;
        }
      }
    }
    Write(attnOut, a);
    Write(softmaxMaxOut, top);
    Write(softmaxSumOut, sum);
  };
}
