// What differs between processors: x86-64 and aarch64 are supported.
#pragma once

namespace msa {

// A float16 number of the compiler. GCC has _Float16 in C++ for x86-64 since version 12 but for aarch64 since version
// 13 only; __fp16 is the same format there, and older compilers have it too.
#ifdef __aarch64__
using Float16 = __fp16;
#else
using Float16 = _Float16;
#endif

// Tells the processor that this thread waits in a loop, so that its other thread of the same core can run.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace msa
