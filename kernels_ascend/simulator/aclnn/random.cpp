// Random numbers from Philox 4x32-10 with a seed and an offset, as devices use it. The stream of numbers is not a
// device's: how a device divides the counter among its cores is not documented.
#include <cmath>
#include <numeric>

#include "values.h"

using namespace sim;

namespace {
class Philox {
 public:
  Philox(uint64_t seed, uint64_t offset)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, 0, static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)} {}
  uint32_t Next() {
    if (left_ == 0) Refill();
    return block_[4 - left_--];
  }
  double Uniform() { return Next() * (1.0 / 4294967296.0); }  // [0, 1)
  double Normal() {                                           // Box and Muller
    const double u = 1 - Uniform(), v = Uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
  }
  uint64_t Wide() {
    const uint64_t high = Next();
    return high << 32 | Next();
  }

 private:
  void Refill() {
    uint32_t c[4] = {counter_[0], counter_[1], counter_[2], counter_[3]}, k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
      const uint64_t p = uint64_t(0xD2511F53) * c[0], q = uint64_t(0xCD9E8D57) * c[2];
      const uint32_t next[4] = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(q),
                                static_cast<uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p)};
      std::copy(next, next + 4, c);
    }
    std::copy(c, c + 4, block_);
    if (++counter_[0] == 0) ++counter_[1];
    left_ = 4;
  }
  uint32_t key_[2], counter_[4], block_[4] = {};
  int left_ = 0;
};

// Seed and offset of a call: numbers, or tensors of one element with a further offset.
struct State {
  std::function<Philox()> start;
};
State NumberState(int64_t seed, int64_t offset) {
  return {[=] { return Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)); }};
}
State TensorState(const Tensor &seed, const Tensor &offset, int64_t more) {
  Takes(seed, I64);
  Takes(offset, I64);
  Require(seed.numel() == 1 && offset.numel() == 1, "seed and offset are single numbers");
  return {
      [=] { return Philox(static_cast<uint64_t>(Wholes(seed)[0]), static_cast<uint64_t>(Wholes(offset)[0] + more)); }};
}
template <class F>
Task Draw(const Tensor &out, const State &state, F f) {
  return [=] {
    Philox philox = state.start();
    std::vector<double> r(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < r.size(); ++i) r[i] = static_cast<double>(f(philox, i));
    Write(out, r);
  };
}
Task Normal(const Tensor &out, double mean, double std, const State &state) {
  Takes(out, kFloats);
  Require(std >= 0, "the standard deviation is not negative");
  return Draw(out, state, [=](Philox &p, size_t) { return mean + std * p.Normal(); });
}
Task Uniform(const Tensor &out, double from, double to, const State &state) {
  Takes(out, kReals);
  Require(from <= to, "from is not above to");
  return Draw(out, state, [=](Philox &p, size_t) { return from + (to - from) * p.Uniform(); });
}
Task Whole(const Tensor &out, int64_t from, int64_t to, const State &state) {
  Takes(out, kAll);
  Require(from < to, "from is below to");
  return [=] {
    Philox philox = state.start();
    const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    std::vector<int64_t> r(static_cast<size_t>(out.numel()));
    for (auto &v : r) v = static_cast<int64_t>(static_cast<uint64_t>(from) + philox.Wide() % range);
    Write(out, r);
  };
}
Task Bernoulli(const Tensor &out, double probability, const State &state) {
  Takes(out, kAll);
  Require(probability >= 0 && probability <= 1, "prob lies between 0 and 1");
  return Draw(out, state, [=](Philox &p, size_t) { return p.Uniform() < probability; });
}
Task BernoulliEach(const Tensor &out, const Tensor &probability, const State &state) {
  Takes(out, kAll);
  Takes(probability, kFloats);
  FitsBroadcast({out, probability}, out);
  return [=] {
    const auto p = Reals(probability, out.shape);
    Draw(out, state, [&](Philox &philox, size_t i) { return philox.Uniform() < p[i]; })();
  };
}
constexpr const char *kNormal = "ops-math/random/dsa_random_normal", *kUniform = "ops-math/random/dsa_random_uniform";
constexpr const char *kBernoulli = "ops-math/random/stateless_bernoulli";
constexpr const char *kNormalOut = "ops-math/random/stateless_random_normal_v2";
}  // namespace

// ---- distributions
ACLNN_OP(InplaceNormal, (Out selfRef, float mean, float std, int64_t seed, int64_t offset), kNormal) {
  return Normal(selfRef, mean, std, NumberState(seed, offset));
}
ACLNN_OP(InplaceNormalTensor,
         (Out selfRef, float mean, float std, Tensor seedTensor, Tensor offsetTensor, int64_t offset), kNormal) {
  return Normal(selfRef, mean, std, TensorState(seedTensor, offsetTensor, offset));
}
ACLNN_OP(NormalFloatFloat, (float mean, float std, int64_t seed, int64_t offset, Out out), kNormalOut) {
  return Normal(out, mean, std, NumberState(seed, offset));
}
namespace {
Task NormalEach(std::function<std::vector<double>()> mean, std::function<std::vector<double>()> std, const Tensor &out,
                const State &state) {
  Takes(out, kFloats);
  return [=] {
    const auto m = mean(), s = std();
    Draw(out, state, [&](Philox &p, size_t i) { return m[i] + s[i] * p.Normal(); })();
  };
}
std::function<std::vector<double>()> From(const Tensor &tensor, const Tensor &out) {
  return [=] { return Reals(tensor, out.shape); };
}
std::function<std::vector<double>()> From(float value, const Tensor &out) {
  return [=] { return std::vector<double>(static_cast<size_t>(out.numel()), value); };
}
}  // namespace
ACLNN_OP(NormalFloatTensor, (float mean, Tensor std, int64_t seed, int64_t offset, Out out), kNormalOut) {
  return NormalEach(From(mean, out), From(std, out), out, NumberState(seed, offset));
}
ACLNN_OP(NormalTensorFloat, (Tensor mean, float std, int64_t seed, int64_t offset, Out out), kNormalOut) {
  return NormalEach(From(mean, out), From(std, out), out, NumberState(seed, offset));
}
ACLNN_OP(NormalTensorTensor, (Tensor mean, Tensor std, int64_t seed, int64_t offset, Out out), kNormalOut) {
  return NormalEach(From(mean, out), From(std, out), out, NumberState(seed, offset));
}
ACLNN_OP(InplaceUniform, (Out selfRef, double from, double to, uint64_t seed, uint64_t offset), kUniform) {
  return Uniform(selfRef, from, to, NumberState(static_cast<int64_t>(seed), static_cast<int64_t>(offset)));
}
ACLNN_OP(InplaceUniformTensor,
         (Out selfRef, double from, double to, Tensor seedTensor, Tensor offsetTensor, uint64_t offset), kUniform) {
  return Uniform(selfRef, from, to, TensorState(seedTensor, offsetTensor, static_cast<int64_t>(offset)));
}
ACLNN_OP(InplaceRandom, (Out selfRef, int64_t from, int64_t to, int64_t seed, int64_t offset), kUniform) {
  return Whole(selfRef, from, to, NumberState(seed, offset));
}
ACLNN_OP(InplaceRandomTensor,
         (Out selfRef, int64_t from, int64_t to, Tensor seedTensor, Tensor offsetTensor, int64_t offset), kUniform) {
  return Whole(selfRef, from, to, TensorState(seedTensor, offsetTensor, offset));
}
ACLNN_OP(InplaceBernoulli, (Out selfRef, Scalar prob, int64_t seed, int64_t offset), kBernoulli) {
  return Bernoulli(selfRef, prob.real, NumberState(seed, offset));
}
ACLNN_OP(Bernoulli, (Tensor self, Scalar prob, int64_t seed, int64_t offset, Out out), kBernoulli) {
  SameShape(self, out);
  return Bernoulli(out, prob.real, NumberState(seed, offset));
}
ACLNN_OP(InplaceBernoulliTensor, (Out selfRef, Tensor prob, int64_t seed, int64_t offset), kBernoulli) {
  return BernoulliEach(selfRef, prob, NumberState(seed, offset));
}
ACLNN_OP(BernoulliTensor, (Tensor self, Tensor prob, int64_t seed, int64_t offset, Out out), kBernoulli) {
  SameShape(self, out);
  return BernoulliEach(out, prob, NumberState(seed, offset));
}
ACLNN_OP(Randperm, (int64_t n, int64_t seed, int64_t offset, Out out), "ops-math/random/stateless_randperm") {
  Takes(out, kReals);
  HasShape(out, {n});
  return [=, state = NumberState(seed, offset)] {
    Philox philox = state.start();
    std::vector<int64_t> r(static_cast<size_t>(n));
    std::iota(r.begin(), r.end(), 0);
    for (int64_t i = n - 1; i > 0; --i) std::swap(r[i], r[philox.Wide() % static_cast<uint64_t>(i + 1)]);
    Write(out, r);
  };
}
ACLNN_OP(Multinomial, (Tensor self, int64_t numsamples, bool replacement, int64_t seed, int64_t offset, Out out),
         "ops-math/random/stateless_sample_multinomial") {
  Takes(self, kFloats);
  Takes(out, I64);
  HasRank(self, 1, 2);
  const int64_t classes = self.shape.back();
  Require(numsamples > 0, "at least one sample");
  Require(replacement || numsamples <= classes, "without replacement not more samples than classes");
  return [=, state = NumberState(seed, offset)] {
    Philox philox = state.start();
    auto weight = Reals(self);
    std::vector<int64_t> r;
    for (int64_t row = 0; row < self.numel() / classes; ++row) {
      double *w = &weight[row * classes];
      for (int64_t s = 0; s < numsamples; ++s) {
        double left = philox.Uniform() * std::accumulate(w, w + classes, 0.0);
        int64_t k = 0, last = 0;
        for (; k < classes; ++k) {
          if (w[k] <= 0) continue;
          last = k;
          if (left < w[k]) break;
          left -= w[k];
        }
        r.push_back(last);
        if (!replacement) w[last] = 0;
      }
    }
    Write(out, r);
  };
}

// ---- dropout: a mask with one bit for each element, rounded up to 128 bits
namespace {
Task MaskBits(double drop, const Tensor &out, const State &state) {
  Takes(out, U8);
  Require(drop >= 0 && drop <= 1, "prob lies between 0 and 1");
  return [=] {
    Philox philox = state.start();
    std::vector<int64_t> r(static_cast<size_t>(out.numel()));
    for (auto &v : r) {
      for (int bit = 0; bit < 8; ++bit) v |= static_cast<int64_t>(philox.Uniform() >= drop) << bit;
    }
    Write(out, r);
  };
}
constexpr const char *kMaskPage = "ops-math/random/dsa_gen_bit_mask";
}  // namespace
ACLNN_OP(DropoutGenMask, (Ints shape, double prob, int64_t seed, int64_t offset, Out out), kMaskPage) {
  Require(out.numel() * 8 >= Count(shape), "the mask has a bit for each element");
  return MaskBits(prob, out, NumberState(seed, offset));
}
ACLNN_OP(DropoutGenMaskV2, (Ints shape, double prob, int64_t seed, int64_t offset, int probDataType, Out out),
         kMaskPage) {
  Require(out.numel() * 8 >= Count(shape), "the mask has a bit for each element");
  Require(IsIn(probDataType, kHalves), "probDataType is FLOAT, FLOAT16 or BFLOAT16");
  return MaskBits(prob, out, NumberState(seed, offset));
}
ACLNN_OP(DropoutGenMaskV2Tensor,
         (Ints shape, double prob, Tensor seedTensor, Tensor offsetTensor, int64_t offset, int probDataType, Out out),
         kMaskPage) {
  Require(out.numel() * 8 >= Count(shape), "the mask has a bit for each element");
  Require(IsIn(probDataType, kHalves), "probDataType is FLOAT, FLOAT16 or BFLOAT16");
  return MaskBits(prob, out, TensorState(seedTensor, offsetTensor, offset));
}
ACLNN_OP(DropoutDoMask, (Tensor self, Tensor mask, double prob, Out out), "ops-math/random/drop_out_do_mask") {
  Takes(self, kHalves);
  Takes(mask, U8);
  SameShape(self, out);
  Require(prob >= 0 && prob <= 1, "prob lies between 0 and 1");
  Require(mask.numel() * 8 >= (self.numel() + 127) / 128 * 128, "the mask has a bit for each element, in units of 128");
  return [=] {
    auto x = Reals(self);
    const auto bits = Wholes(mask);
    for (size_t i = 0; i < x.size(); ++i) x[i] = (bits[i / 8] >> (i % 8) & 1) != 0 ? x[i] / (1 - prob) : 0;
    Write(out, x);
  };
}
