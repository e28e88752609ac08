// A chain of element-wise operators in one pass: a small program that runs over blocks which stay in the L1 cache.
// Every instruction rounds as the operator by itself does, so that the result is the same to the last bit.
#include "fused_pointwise.h"

#include "pointwise.h"
#include "vec_math.h"

namespace msa {
namespace {

// The codes of the instructions. Their names are those that declarations use (fuses=...).
#define MSA_FUSED_INSTRUCTIONS(X) \
  X(kAdd, "add")                  \
  X(kSub, "sub")                  \
  X(kMul, "mul")                  \
  X(kDiv, "div")                  \
  X(kNeg, "neg")                  \
  X(kTanh, "tanh")                \
  X(kSigmoid, "sigmoid")          \
  X(kSilu, "silu")                \
  X(kExp, "exp")                  \
  X(kGelu, "gelu")                \
  X(kGeluTanh, "gelu_tanh")       \
  X(kRelu, "relu")                \
  X(kReciprocal, "reciprocal")    \
  X(kAbs, "abs")                  \
  X(kCopy, "copy")

enum Code : int64_t {
#define MSA_CODE(code, name) code,
  MSA_FUSED_INSTRUCTIONS(MSA_CODE)
#undef MSA_CODE
      kCodes
};
constexpr int64_t kFields = 5;     // of an instruction: code, destination, first operand, second operand, rounding
constexpr int64_t kResult = 1000;  // a destination from this number on is a result; a negative operand is a constant
constexpr int64_t kChunk = 256, kTemporaries = 16;

struct Program {
  const Dims &code;
  const std::vector<double> &constants;
  int64_t inputs, results;
};

template <class F>
void pairwise(float *d, const float *a, float x, const float *b, float y, int64_t n, F f) {
  if (a && b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = f(a[i], b[i]);
  } else if (a) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = f(a[i], y);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = f(x, b[i]);
  }
}
template <class F>
void single(float *d, const float *a, int64_t n, F f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = f(a[i]);
}

void execute(int64_t code, float *d, const float *a, float x, const float *b, float y, int64_t n) {
  switch (code) {
    case kAdd: return pairwise(d, a, x, b, y, n, [](float u, float v) { return u + v; });
    case kSub: return pairwise(d, a, x, b, y, n, [](float u, float v) { return u - v; });
    case kMul: return pairwise(d, a, x, b, y, n, [](float u, float v) { return u * v; });
    case kDiv: return pairwise(d, a, x, b, y, n, [](float u, float v) { return u / v; });
    case kNeg: return single(d, a, n, [](float u) { return -u; });
    case kTanh: return single(d, a, n, [](float u) { return vec::tanh(u); });
    case kSigmoid: return single(d, a, n, [](float u) { return vec::sigmoid(u); });
    case kSilu: return single(d, a, n, [](float u) { return vec::silu(u); });
    case kExp: return single(d, a, n, [](float u) { return vec::exp(u); });
    case kGelu: return single(d, a, n, [](float u) { return vec::gelu(u); });
    case kGeluTanh: return single(d, a, n, [](float u) { return vec::gelu_tanh(u); });
    case kRelu: return single(d, a, n, [](float u) { return u < 0.f ? 0.f : u; });
    case kReciprocal: return single(d, a, n, [](float u) { return 1.f / u; });
    case kAbs: return single(d, a, n, [](float u) { return vec::abs(u); });
    default: return single(d, a, n, [](float u) { return u; });
  }
}

void run_program(char *const *p, int64_t n, const void *context) {
  const Program &program = *static_cast<const Program *>(context);
  alignas(64) float temporaries[kTemporaries][kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t m = std::min(kChunk, n - begin);
    auto at = [&](int64_t k) { return reinterpret_cast<float *>(p[k]) + begin; };
    auto operand_at = [&](int64_t r) -> const float * {
      return r < program.inputs ? at(program.results + r) : temporaries[r - program.inputs];
    };
    for (size_t i = 0; i < program.code.size(); i += kFields) {
      const int64_t *c = &program.code[i], to = c[1];
      float *d = to >= kResult ? at(to - kResult) : temporaries[to - program.inputs];
      const float x = c[2] < 0 ? static_cast<float>(program.constants[-1 - c[2]]) : 0.f;
      const float y = c[3] < 0 ? static_cast<float>(program.constants[-1 - c[3]]) : 0.f;
      execute(c[0], d, c[2] < 0 ? nullptr : operand_at(c[2]), x, c[3] < 0 ? nullptr : operand_at(c[3]), y, m);
      if (c[4] == 1) single(d, d, m, [](float u) { return static_cast<float>(BFloat16(u)); });
      if (c[4] == 2) single(d, d, m, [](float u) { return static_cast<float>(Half(u)); });
    }
  }
}

void check_program(const Program &p) {
  const Dims &code = p.code;
  const int64_t registers = p.inputs + kTemporaries, constants = static_cast<int64_t>(p.constants.size());
  check(code.size() % kFields == 0, "internal: a fused program is cut short");
  for (size_t i = 0; i < code.size(); i += kFields) {
    const int64_t to = code[i + 1];
    check(code[i] >= 0 && code[i] < kCodes &&
              ((to >= p.inputs && to < registers) || (to >= kResult && to < kResult + p.results)),
          "internal: a fused program names what is not there");
    const bool two = code[i] <= kDiv;
    for (int64_t r : {code[i + 2], two ? code[i + 3] : 0})
      check(r < registers && r >= (two ? -constants : 0), "internal: a fused program reads what is not there");
    check(!two || code[i + 2] >= 0 || code[i + 3] >= 0, "internal: a fused program computes with constants alone");
  }
}

}  // namespace

const std::vector<std::string> &fused_instructions() {
#define MSA_NAME(code, name) name,
  static const std::vector<std::string> names = {MSA_FUSED_INSTRUCTIONS(MSA_NAME)};
#undef MSA_NAME
  return names;
}

MSA_WRITING_KERNEL(FusedPointwise) {  // operands, results (filled), program, constants
  c.out(0, DType::I64, Dims{0});
  const auto &inputs = c.list(0), &results = c.list(1);
  const std::vector<double> none;
  const Program program{c.ints(2), c.has(3) && c.args[3].kind == Arg::kFloats ? c.floats(3) : none,
                        static_cast<int64_t>(inputs.size()), static_cast<int64_t>(results.size())};
  check(!results.empty() && inputs.size() + results.size() <= 6,
        "internal: a fused program has at most six operands and results");
  check_program(program);
  const Tensor *t[6];
  DType compute[6];
  int n = 0;
  for (auto &r : results) t[n++] = &r;
  for (auto &i : inputs) t[n++] = &i;
  std::fill_n(compute, n, DType::F32);
  const int64_t instructions = static_cast<int64_t>(program.code.size()) / kFields;
  run_blocks(n, static_cast<int>(results.size()), t, compute, run_program, &program,
             std::max<int64_t>(512, kGrain / (instructions + 1)));
}

}  // namespace msa
