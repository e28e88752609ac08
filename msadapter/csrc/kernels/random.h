// The random number generator of the CPU kernels: PyTorch's mt19937 stream, bit for bit.
#pragma once
#include <memory>
#include <mutex>

#include "api.h"

namespace msa {

constexpr int kMersenneWords = 624;
constexpr int64_t kGeneratorStateBytes = 5056;
constexpr uint64_t kDefaultSeed = 67280421310721ull;

// The Mersenne twister, with a cached second normal number. `left` is the number of words until the next twist, counted
// as in PyTorch's engine (1 directly after seeding), so that states can be exchanged without conversion.
struct Generator {
  std::mutex mutex;
  uint64_t seed = 0;
  int32_t left = 1;
  uint32_t next = 0;
  uint32_t words[kMersenneWords];
  bool has_double = false, has_float = false;
  double cached_double = 0;
  float cached_float = 0;

  explicit Generator(uint64_t s = kDefaultSeed) { reseed(s); }
  void reseed(uint64_t s);
  void get_state(uint8_t *bytes) const;
  void set_state(const uint8_t *bytes, int64_t n);

  uint32_t random() {
    if (--left == 0) twist();
    return temper(words[next++]);
  }
  // A number of 64 bits from two draws. The first draw is its upper half.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // The next n draws at once.
  void fill(uint32_t *out, int64_t n);
  // Uniform numbers in [0, 1) with 24 and with 53 random bits.
  float uniform_float() { return static_cast<float>(random() & 0xFFFFFFu) * 0x1p-24f; }
  double uniform_double() { return static_cast<double>(random64() & 0x1FFFFFFFFFFFFFull) * 0x1p-53; }
  // A standard normal number by the Box-Muller method, which makes two numbers at a time. Every second call returns the
  // cached one.
  double normal();

  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

 private:
  void twist();
};

// The generator that the `seed` operand of a random operator names.
Generator &generator_of(const Tensor &seed);

}  // namespace msa
