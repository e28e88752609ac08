// Fused operators of transformers: rotary position embedding, grouped products, products fused with collectives.
#include <cmath>

#include "product.h"
#include "../hccl/communicator.h"
#include "../runtime/counters.h"

using namespace sim;

// ---- rotary position embedding: y[d] = x[same[d]] * cos[d] + sign[d] * x[other[d]] * sin[d]
namespace {
enum RotaryMode { kHalf, kInterleaved, kQuarter, kInterleavedHalf };

struct Rotation {
  std::vector<int64_t> same, other;
  std::vector<double> sign;
  Rotation(int64_t width, int64_t mode) {
    const int64_t half = width / 2, quarter = width / 4;
    for (int64_t d = 0; d < width; ++d) {
      int64_t from = d, pair;
      bool first;
      if (mode == kInterleaved) {
        first = d % 2 == 0;
        pair = first ? d + 1 : d - 1;
      } else if (mode == kQuarter) {
        first = d / quarter % 2 == 0;
        pair = first ? d + quarter : d - quarter;
      } else {
        first = d < half;
        pair = first ? d + half : d - half;
      }
      if (mode == kInterleavedHalf) {  // the even places come first, then the odd ones
        auto moved = [half](int64_t at) { return at < half ? 2 * at : 2 * (at - half) + 1; };
        from = moved(d);
        pair = moved(pair);
      }
      same.push_back(from);
      other.push_back(pair);
      sign.push_back(first ? -1 : 1);
    }
  }
};
void CheckRotary(const Tensor &x, const Tensor &cos, const Tensor &sin, int64_t mode) {
  for (const Tensor &one : {x, cos, sin}) Takes(one, kHalves);
  SameType(x, cos);
  SameType(x, sin);
  SameShape(cos, sin);
  HasRank(x, 4, 4);
  HasRank(cos, 4, 4);
  Require(mode >= kHalf && mode <= kInterleavedHalf, "mode lies between 0 and 3");
  const int64_t width = x.shape[3];
  Require(width % (mode == kQuarter ? 4 : 2) == 0, "the last axis divides into pairs");
  Require(width <= 896, "the last axis is not longer than 896");
  Require(cos.shape[3] == width && BroadcastShape(x.shape, cos.shape) == x.shape, "cos and sin broadcast to x");
}
constexpr const char *kRotary = "ops-transformer/posembedding/rotary_position_embedding";
}  // namespace
ACLNN_OP(RotaryPositionEmbedding, (Tensor x, Tensor cos, Tensor sin, int64_t mode, Out out), kRotary) {
  CheckRotary(x, cos, sin, mode);
  SameShape(x, out);
  return [=] {
    const int64_t width = x.shape[3];
    const Rotation turn(width, mode);
    const auto v = Reals(x), c = Reals(cos, x.shape), s = Reals(sin, x.shape);
    std::vector<double> y(v.size());
    for (size_t i = 0; i < y.size(); ++i) {
      const int64_t d = static_cast<int64_t>(i) % width;
      const double *row = &v[i - static_cast<size_t>(d)];
      y[i] = row[turn.same[d]] * c[i] + turn.sign[d] * row[turn.other[d]] * s[i];
    }
    Write(out, y);
  };
}
ACLNN_OP(RotaryPositionEmbeddingGrad,
         (Tensor dy, Tensor cos, Tensor sin, Maybe x, int64_t mode, Out dx, MaybeOut dcos, MaybeOut dsin),
         "ops-transformer/posembedding/rotary_position_embedding_grad") {
  CheckRotary(dy, cos, sin, mode);
  SameShape(dy, dx);
  SameShape(dy, x);
  return [=] {
    const int64_t width = dy.shape[3];
    const Rotation turn(width, mode);
    const auto g = Reals(dy), c = Reals(cos, dy.shape), s = Reals(sin, dy.shape);
    const auto v = x ? Reals(x) : std::vector<double>(g.size());
    std::vector<double> gx(g.size()), gc(static_cast<size_t>(cos.numel())), gs(gc.size());
    Shape step = RowMajor(cos.shape);  // where an element of x is in cos
    for (size_t axis = 0; axis < 4; ++axis) step[axis] = cos.shape[axis] == 1 ? 0 : step[axis];
    size_t i = 0;
    Rows(dy.shape, step, [&](int64_t count, int64_t base, int64_t by) {
      for (int64_t d = 0; d < count; ++d, ++i) {
        const size_t row = i - static_cast<size_t>(d);
        const size_t a = row + static_cast<size_t>(turn.same[d]), b = row + static_cast<size_t>(turn.other[d]);
        gx[a] += g[i] * c[i];
        gx[b] += turn.sign[d] * g[i] * s[i];
        gc[base + d * by] += g[i] * v[a];
        gs[base + d * by] += g[i] * turn.sign[d] * v[b];
      }
    });
    Write(dx, gx);
    if (!x) return;
    if (dcos && dcos.numel() == cos.numel()) Write(dcos, gc);
    if (dsin && dsin.numel() == sin.numel()) Write(dsin, gs);
  };
}

// ---- grouped products
namespace {
enum GroupType { kNoGroups = -1, kGroupsOfRows = 0, kGroupsOfInner = 2 };

// An optional list counts as missing if it holds nothing.
bool IsGiven(const std::vector<Tensor> &list) {
  for (const Tensor &one : list) {
    if (one && one.numel() > 0) return true;
  }
  return false;
}
// A list of matrices, or one tensor that holds them along its first axis.
std::vector<Tensor> Each(const std::vector<Tensor> &list, int64_t rank) {
  if (list.size() != 1 || list[0].rank() != rank + 1) return list;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < list[0].shape[0]; ++i) {
    Tensor part = Part(list[0], 0, i, 1);
    part.shape.erase(part.shape.begin());
    part.stride.erase(part.stride.begin());
    parts.push_back(part);
  }
  return parts;
}
// The ranges of the groups, from their ends or their sizes.
std::vector<std::pair<int64_t, int64_t>> Ranges(const std::vector<int64_t> &numbers, bool counts, int64_t total) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  int64_t at = 0;
  for (const int64_t number : numbers) {
    const int64_t end = counts ? at + number : number;
    if (end < at || end > total) OutOfRange("the end of a group", end, total);
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}
void ProductInto(const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &out) {
  auto product = Multiply(a, b);
  if (bias) {
    const auto added = Reals(bias, out.shape);
    for (size_t i = 0; i < product.size(); ++i) product[i] += static_cast<float>(added[i]);
  }
  Write(out, product);
}
Task Grouped(const std::vector<Tensor> &x, const std::vector<Tensor> &weight, const std::vector<Tensor> &bias,
             std::function<std::vector<int64_t>()> group_list, int64_t group_type, bool counts,
             const std::vector<Tensor> &out) {
  Require(!x.empty() && !weight.empty() && !out.empty(), "x, weight and the result are not empty");
  for (const Tensor &one : x) Takes(one, kHalves);
  for (const Tensor &one : weight) SameType(x[0], one);
  Require(group_type == kNoGroups || group_type == kGroupsOfRows || group_type == kGroupsOfInner,
          "groupType is -1, 0 or 2");
  Require(group_type == kNoGroups || x.size() > 1 || group_list, "one x needs a groupList");
  if (group_type == kGroupsOfInner) {
    Require(x.size() == 1 && weight.size() == 1 && out.size() == 1, "groupType 2 takes one x, one weight, one result");
    Require(!IsGiven(bias), "groupType 2 takes no bias");
    return [=] {
      const auto ranges = Ranges(group_list(), counts, x[0].shape[1]);
      const auto results = Each(out, 2);
      if (ranges.size() != results.size()) OutOfRange("the number of groups", ranges.size(), results.size() + 1);
      for (size_t i = 0; i < ranges.size(); ++i) {
        const auto [from, to] = ranges[i];
        ProductInto(Part(x[0], 1, from, to - from), Part(weight[0], 0, from, to - from), Maybe{}, results[i]);
      }
    };
  }
  return [=] {
    const auto matrices = Each(weight, 2), biases = IsGiven(bias) ? Each(bias, 1) : std::vector<Tensor>{};
    std::vector<std::pair<int64_t, int64_t>> ranges;
    if (x.size() == 1 && group_list) {
      ranges = Ranges(group_list(), counts, x[0].shape[0]);
    } else {
      int64_t at = 0;
      for (const Tensor &one : x) {
        ranges.push_back({at, at + one.shape[0]});
        at += one.shape[0];
      }
    }
    if (ranges.size() != matrices.size()) OutOfRange("the number of groups", ranges.size(), matrices.size() + 1);
    if (out.size() == 1) Write(out[0], std::vector<double>(static_cast<size_t>(out[0].numel())));
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto [from, to] = ranges[i];
      const Tensor rows = x.size() == 1 ? Part(x[0], 0, from, to - from) : x[i];
      const Tensor into = out.size() == 1 ? Part(out[0], 0, from, to - from) : out[i];
      ProductInto(rows, matrices[i], biases.empty() ? Tensor{} : biases[i], into);
    }
  };
}
constexpr const char *kGrouped = "ops-transformer/gmm/grouped_matmul";
}  // namespace
ACLNN_OP(GroupedMatmulV4,
         (Tensors x, Tensors weight, MaybeTensors bias, MaybeTensors scale, MaybeTensors offset,
          MaybeTensors antiquantScale, MaybeTensors antiquantOffset, MaybeTensors perTokenScale, Maybe groupList,
          MaybeTensors activationInput, MaybeTensors activationQuantScale, MaybeTensors activationQuantOffset,
          int64_t splitItem, int64_t groupType, int64_t groupListType, int64_t actType, Tensors out,
          MaybeTensors activationFeatureOut, MaybeTensors dynQuantScaleOut),
         kGrouped) {
  for (const MaybeTensors &one : {scale, offset, antiquantScale, antiquantOffset, perTokenScale, activationInput,
                                  activationQuantScale, activationQuantOffset}) {
    Require(!IsGiven(one), "quantised products are not simulated");
  }
  (void)activationFeatureOut;
  (void)dynQuantScaleOut;
  Require(actType == 0, "a fused activation is not simulated");
  Require(splitItem >= 0 && splitItem <= 3, "splitItem lies between 0 and 3");
  Require((splitItem >= 2) == (out.size() == 1) || out.size() == x.size(), "splitItem 2 and 3 give one result");
  Require(groupListType == 0 || groupListType == 1, "groupListType is 0 or 1");
  Takes(groupList, I64);
  std::function<std::vector<int64_t>()> numbers;
  if (groupList) numbers = [groupList] { return Wholes(groupList); };
  return Grouped(x, weight, bias, numbers, groupType, groupListType == 1, out);
}
ACLNN_OP(GroupedMatmulV2,
         (Tensors x, Tensors weight, MaybeTensors bias, MaybeTensors scale, MaybeTensors offset,
          MaybeTensors antiquantScale, MaybeTensors antiquantOffset, MaybeInts groupList, int64_t splitItem,
          int64_t groupType, Tensors y),
         kGrouped) {
  for (const MaybeTensors &one : {scale, offset, antiquantScale, antiquantOffset}) {
    Require(!IsGiven(one), "quantised products are not simulated");
  }
  Require(splitItem >= 0 && splitItem <= 3, "splitItem lies between 0 and 3");
  std::function<std::vector<int64_t>()> numbers;
  if (groupList.present && !groupList.empty()) {
    numbers = [ends = std::vector<int64_t>(groupList)] { return ends; };
  }
  return Grouped(x, weight, bias, numbers, groupType, false, y);
}

// ---- products fused with a collective
namespace {
constexpr Types kExchanged = F16 | BF16;
void CheckFused(const Tensor &x1, const Tensor &x2, const Tensor &bias, int64_t comm_turn, int64_t stream_mode) {
  Takes(x1, kExchanged);
  SameType(x1, x2);
  HasRank(x1, 2, 2);
  HasRank(x2, 2, 2);
  Require(!bias, "a bias is not taken");
  Require(comm_turn == 0, "commTurn is 0");
  Require(stream_mode == 1, "streamMode is 1");
}
// What a collective reads or writes lies in row-major order.
void IsDense(const Tensor &tensor) {
  const Shape dense = RowMajor(tensor.shape);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (tensor.shape[i] > 1 && tensor.stride[i] != dense[i]) Refuse("'%s' is not contiguous", tensor.name);
  }
}
std::vector<char> Rounded(const std::vector<float> &values, int type) {
  std::vector<char> bytes(values.size() * SizeOf(type));
  aclTensor present;
  Tensor tensor;
  tensor.type = type;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.stride = {1};
  tensor.data = bytes.data();
  tensor.handle = &present;
  Write(tensor, values);
  return bytes;
}
}  // namespace
ACLNN_OP(AllGatherMatmul,
         (Tensor x1, Tensor x2, Maybe bias, Text group, int64_t gatherIndex, int64_t commTurn, int64_t streamMode,
          Out output, MaybeOut gatherOut),
         "ops-transformer/mc2/all_gather_matmul") {
  CheckFused(x1, x2, bias, commTurn, streamMode);
  Require(gatherIndex == 0, "gatherIndex is 0: the left operand is gathered");
  IsDense(x1);
  Communicator *ranks = Communicator::Find(group);
  const int64_t rows = x1.shape[0] * ranks->size();
  HasShape(output, {rows, x2.shape[1]});
  if (gatherOut && gatherOut.numel() > 0) HasShape(gatherOut, {rows, x1.shape[1]});
  return [=] {
    std::vector<char> bytes(static_cast<size_t>(rows * x1.shape[1]) * SizeOf(x1.type));
    ranks->AllGather(x1.data, bytes.data(), bytes.size() / ranks->size());
    Tensor whole = x1;
    whole.shape[0] = rows;
    whole.data = bytes.data();
    Write(output, Multiply(whole, x2));
    if (gatherOut && gatherOut.numel() > 0) Convert(whole, gatherOut);
  };
}
namespace {
// The product of this rank is rounded to its type before it is summed with those of the others.
Task ProductAndReduce(const Tensor &x1, const Tensor &x2, const std::string &reduce, Communicator *ranks,
                      const Tensor &out, bool scatter) {
  Require(reduce == "sum", "reduceOp is \"sum\"");
  const int64_t parts = scatter ? ranks->size() : 1;
  Require(x1.shape[0] % parts == 0, "the rows divide among the ranks");
  HasShape(out, {x1.shape[0] / parts, x2.shape[1]});
  IsDense(out);
  return [=] {
    auto bytes = Rounded(Multiply(x1, x2), x1.type);
    const uint64_t count = static_cast<uint64_t>(out.numel()), size = count * SizeOf(x1.type);
    char *base = bytes.data();
    if (scatter) {
      ranks->ReduceScatter([=](uint32_t r) { return std::make_pair(base + r * size, size); }, out.data, count, x1.type,
                           Combining::kSum);
    } else {
      ranks->Reduce(base, out.data, count, x1.type, Combining::kSum, ranks->size());
    }
  };
}
}  // namespace
ACLNN_OP(MatmulReduceScatter,
         (Tensor x1, Tensor x2, Maybe bias, Text group, Text reduceOp, int64_t commTurn, int64_t streamMode,
          Out output),
         "ops-transformer/mc2/matmul_reduce_scatter") {
  CheckFused(x1, x2, bias, commTurn, streamMode);
  return ProductAndReduce(x1, x2, reduceOp, Communicator::Find(group), output, true);
}
ACLNN_OP(MatmulAllReduce,
         (Tensor x1, Tensor x2, Maybe bias, Text group, Text reduceOp, int64_t commTurn, int64_t streamMode,
          Out output),
         "ops-transformer/mc2/matmul_all_reduce") {
  CheckFused(x1, x2, bias, commTurn, streamMode);
  return ProductAndReduce(x1, x2, reduceOp, Communicator::Find(group), output, false);
}
ACLNN_OP(MatmulAllReduceAddRmsNorm,
         (Tensor x1, Tensor x2, Maybe bias, Tensor residual, Tensor gamma, double epsilon, Text group, Text reduceOp,
          int64_t commTurn, int64_t streamMode, Out y, Out normOut),
         "ops-transformer/mc2/matmul_all_reduce_add_rms_norm") {
  HasRank(x1, 2, 3);
  HasRank(residual, 3, 3);
  IsDense(x1);
  Tensor rows = x1;
  rows.shape = {x1.numel() / std::max<int64_t>(x1.shape.back(), 1), x1.shape.back()};
  rows.stride = RowMajor(rows.shape);
  CheckFused(rows, x2, Maybe{}, commTurn, streamMode);
  Require(reduceOp == "sum", "reduceOp is \"sum\"");
  const int64_t columns = x2.shape[1];
  if (bias) HasShape(bias, {columns});
  HasShape(gamma, {columns});
  Shape shape = {residual.shape[0], rows.shape[0] / std::max<int64_t>(residual.shape[0], 1), columns};
  if (x1.rank() == 3) shape = {x1.shape[0], x1.shape[1], columns};
  for (const Tensor &one : {Tensor(residual), Tensor(y), Tensor(normOut)}) HasShape(one, shape);
  for (const Tensor &one : {Tensor(bias), Tensor(residual), Tensor(gamma), Tensor(y), Tensor(normOut)}) {
    SameType(x1, one);
  }
  Communicator *ranks = Communicator::Find(group);
  return [=] {
    auto product = Multiply(rows, x2);
    if (bias) {  // each rank adds it
      const auto b = Reals(bias);
      for (size_t i = 0; i < product.size(); ++i) product[i] += static_cast<float>(b[i % b.size()]);
    }
    auto bytes = Rounded(product, x1.type);
    std::vector<char> sums(bytes.size());
    ranks->Reduce(bytes.data(), sums.data(), product.size(), x1.type, Combining::kSum, ranks->size());
    Tensor total = residual;
    total.stride = RowMajor(total.shape);
    total.data = sums.data();
    auto x = Reals(total);
    const auto other = Reals(residual), weight = Reals(gamma);
    for (size_t i = 0; i < x.size(); ++i) x[i] += other[i];
    Write(y, x);
    for (size_t row = 0; row < x.size() / weight.size(); ++row) {
      double *line = &x[row * weight.size()], sum = 0;
      for (size_t k = 0; k < weight.size(); ++k) sum += line[k] * line[k];
      const double scale = 1 / std::sqrt(sum / static_cast<double>(weight.size()) + epsilon);
      for (size_t k = 0; k < weight.size(); ++k) line[k] *= scale * weight[k];
    }
    Write(normOut, x);
  };
}
