// Generators: the Mersenne twister, PyTorch's 5056-byte state, and the kernels that Python calls.
#include <cmath>
#include <unordered_map>

#include "loops.h"
#include "random.h"

namespace msa {

void Generator::reseed(uint64_t s) {
  seed = s;
  words[0] = static_cast<uint32_t>(s);
  for (uint32_t j = 1; j < kMersenneWords; ++j) words[j] = 1812433253u * (words[j - 1] ^ (words[j - 1] >> 30)) + j;
  left = 1;
  next = 0;
  has_double = has_float = false;
}

void Generator::twist() {
  constexpr int kShift = 397;
  auto mixed = [](uint32_t a, uint32_t b) {
    return (((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1) ^ (-(b & 1u) & 0x9908b0dfu);
  };
  int j = 0;
  for (; j < kMersenneWords - kShift; ++j) words[j] = words[j + kShift] ^ mixed(words[j], words[j + 1]);
  for (; j < kMersenneWords - 1; ++j) words[j] = words[j + kShift - kMersenneWords] ^ mixed(words[j], words[j + 1]);
  words[j] = words[kShift - 1] ^ mixed(words[j], words[0]);
  left = kMersenneWords;
  next = 0;
}

void Generator::fill(uint32_t *out, int64_t n) {
  while (n > 0) {
    if (left == 1) {
      twist();
      ++left;  // decreased below, as for draws without a twist
    }
    const int64_t m = std::min<int64_t>(n, left - 1);
    const uint32_t *w = words + next;
    for (int64_t i = 0; i < m; ++i) out[i] = temper(w[i]);
    next += static_cast<uint32_t>(m);
    left -= static_cast<int32_t>(m);
    out += m;
    n -= m;
  }
}

double Generator::normal() {
  if (has_double) {
    has_double = false;
    return cached_double;
  }
  const double u1 = uniform_double(), u2 = uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), angle = 2.0 * M_PI * u1;
  cached_double = radius * std::sin(angle);
  has_double = true;
  return radius * std::cos(angle);
}

// ---- PyTorch's state: seed u64 @0, left i32 @8, seeded i32 @12, next u64 @16, 624 words as u64 @24,
// normal x/y/rho f64 @5016, double cached i32 @5040, float cache f32 @5048, float cached u8 @5052.
namespace {
constexpr int kLeft = 8, kSeeded = 12, kNext = 16, kWords = 24, kNormalY = 5024, kHasDouble = 5040, kFloat = 5048,
              kHasFloat = 5052;
template <class T>
void put(uint8_t *b, int at, T v) {
  std::memcpy(b + at, &v, sizeof(T));
}
template <class T>
T take(const uint8_t *b, int at) {
  T v;
  std::memcpy(&v, b + at, sizeof(T));
  return v;
}
}  // namespace

void Generator::get_state(uint8_t *b) const {
  std::memset(b, 0, kGeneratorStateBytes);
  put<uint64_t>(b, 0, seed);
  put<int32_t>(b, kLeft, left);
  put<int32_t>(b, kSeeded, 1);
  put<uint64_t>(b, kNext, next);
  for (int i = 0; i < kMersenneWords; ++i) put<uint64_t>(b, kWords + 8 * i, words[i]);
  put<double>(b, kNormalY, has_double ? cached_double : 0.0);
  put<int32_t>(b, kHasDouble, has_double);
  put<float>(b, kFloat, has_float ? cached_float : 0.f);
  put<uint8_t>(b, kHasFloat, has_float);
}

void Generator::set_state(const uint8_t *b, int64_t n) {
  check(n == kGeneratorStateBytes, "Expected a CPUGeneratorImplState of size ", kGeneratorStateBytes,
        " but found the input RNG state size to be ", n);
  const int32_t new_left = take<int32_t>(b, kLeft);
  const uint64_t new_next = take<uint64_t>(b, kNext);
  check(take<int32_t>(b, kSeeded) != 0 && new_left > 0 && new_left <= kMersenneWords && new_next <= kMersenneWords,
        "Invalid mt19937 state");
  seed = take<uint64_t>(b, 0);
  left = new_left;
  next = static_cast<uint32_t>(new_next);
  for (int i = 0; i < kMersenneWords; ++i) words[i] = static_cast<uint32_t>(take<uint64_t>(b, kWords + 8 * i));
  has_double = take<int32_t>(b, kHasDouble) != 0;
  cached_double = take<double>(b, kNormalY);
  has_float = take<uint8_t>(b, kHasFloat) != 0;
  cached_float = take<float>(b, kFloat);
}

// ---- registry: id 0 is the default generator, made at first use
namespace {
struct Registry {
  std::mutex mutex;
  std::unordered_map<int64_t, std::unique_ptr<Generator>> generators;
  int64_t last = 0;
};
Registry &registry() {
  static Registry *r = [] {
    auto *fresh = new Registry;
    fresh->generators.emplace(0, std::make_unique<Generator>());
    return fresh;
  }();
  return *r;
}
Generator &find_generator(int64_t id) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto it = r.generators.find(id);
  check(it != r.generators.end(), "there is no CPU generator with id ", id);
  return *it->second;
}
int64_t id_in(const Tensor &t) {
  check(t.dtype == DType::I64 && t.numel >= 1, "a CPU generator is named by an int64 tensor");
  return *t.ptr<int64_t>();
}
void return_id(Call &c, int64_t id) { *c.out(0, DType::I64, Dims{}).ptr<int64_t>() = id; }
}  // namespace

Generator &generator_of(const Tensor &seed) { return find_generator(id_in(seed)); }

// () -> id of a new generator with the default seed
MSA_KERNEL(GeneratorNew) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  const int64_t id = ++r.last;
  r.generators.emplace(id, std::make_unique<Generator>());
  return_id(c, id);
}
// (id) -> id; the generator is gone
MSA_KERNEL(GeneratorFree) {
  Registry &r = registry();
  const int64_t id = id_in(c.in(0));
  check(id != 0, "the default generator stays");
  std::lock_guard<std::mutex> lock(r.mutex);
  r.generators.erase(id);
  return_id(c, id);
}
// (id, seed as int64 tensor) -> id
MSA_KERNEL(GeneratorSeed) {
  Generator &g = generator_of(c.in(0));
  std::lock_guard<std::mutex> lock(g.mutex);
  g.reseed(static_cast<uint64_t>(id_in(c.in(1))));
  return_id(c, id_in(c.in(0)));
}
// (id) -> the seed as int64
MSA_KERNEL(GeneratorInitialSeed) {
  Generator &g = generator_of(c.in(0));
  std::lock_guard<std::mutex> lock(g.mutex);
  return_id(c, static_cast<int64_t>(g.seed));
}
// (id) -> uint8[5056]
MSA_KERNEL(GeneratorGetState) {
  Generator &g = generator_of(c.in(0));
  std::lock_guard<std::mutex> lock(g.mutex);
  g.get_state(c.out(0, DType::U8, Dims{kGeneratorStateBytes}).ptr<uint8_t>());
}
// (id, uint8[5056]) -> id
MSA_KERNEL(GeneratorSetState) {
  Generator &g = generator_of(c.in(0));
  check(c.in(1).dtype == DType::U8, "RNG state must be a torch.ByteTensor");
  const Tensor state = c.contiguous(c.in(1));
  std::lock_guard<std::mutex> lock(g.mutex);
  g.set_state(state.ptr<uint8_t>(), state.numel);
  return_id(c, id_in(c.in(0)));
}

}  // namespace msa
