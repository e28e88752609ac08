// The interface of the CPU kernels: strided operands, the allocation of results, and a registry of kernels by the name
// of MindSpore's operator. The kernels include no header of MindSpore, so they compile fast and can be tested alone.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "dtype.h"
#include "sizes.h"

namespace msa {

constexpr int kMaxDims = 16;

using Dims = std::vector<int64_t>;

// A strided operand. `data` is the address of its first element, so it includes the storage offset. Strides count
// elements.
struct Tensor {
  void *data = nullptr;
  DType dtype = DType::F32;
  int32_t ndim = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];

  template <class T>
  T *ptr() const {
    return static_cast<T *>(data);
  }
  int64_t size(int d) const { return sizes[d < 0 ? d + ndim : d]; }
  int64_t stride(int d) const { return strides[d < 0 ? d + ndim : d]; }
  Dims shape() const { return Dims(sizes, sizes + ndim); }
  bool contiguous() const {
    int64_t expected = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      if (sizes[d] == 1) continue;
      if (strides[d] != expected) return numel == 0;
      expected *= sizes[d];
    }
    return true;
  }
  bool same_shape(const Tensor &o) const {
    if (ndim != o.ndim) return false;
    for (int d = 0; d < ndim; ++d)
      if (sizes[d] != o.sizes[d]) return false;
    return true;
  }
};

// The name of an element type in PyTorch's message about numbers that do not fit it.
template <class T>
constexpr const char *cpp_name() {
  constexpr DType d = dtype_of<T>::value;
  return d == DType::U8     ? "uint8_t"
         : d == DType::I8   ? "int8_t"
         : d == DType::I16  ? "int16_t"
         : d == DType::I32  ? "int"
         : d == DType::I64  ? "int64_t"
         : d == DType::U16  ? "uint16_t"
         : d == DType::U32  ? "uint32_t"
         : d == DType::U64  ? "uint64_t"
         : d == DType::F16  ? "c10::Half"
         : d == DType::BF16 ? "c10::BFloat16"
         : d == DType::F32  ? "float"
                            : "double";
}
[[noreturn]] void does_not_fit(const char *type);

// A Python number. `kind` is the type of the number that the user wrote.
struct Scalar {
  enum Kind : uint8_t { kBool, kInt, kFloat, kComplex } kind = kInt;
  bool is_unsigned = false;  // the integer is 2^63 or more, and `i` holds its bits
  int64_t i = 0;
  double d = 0;
  double imag = 0;

  // The number as an element type. Integers wrap round and floats become infinite if they are too large. This is what
  // PyTorch's arithmetic and comparisons do.
  template <class T>
  T wrapped() const {
    if constexpr (is_complex32_v<T>) {
      return T(wrapped<c64>());
    } else if constexpr (is_complex_v<T>) {
      using R = typename T::value_type;
      return T(kind <= kInt ? integer<R>() : static_cast<R>(d), static_cast<R>(imag));
    } else {
      return kind <= kInt ? integer<T>() : convert<T>(d);
    }
  }
  // The same, but a number that the type does not hold is a RuntimeError. This is what PyTorch does where a number is
  // stored, or is a limit or a factor.
  template <class T>
  T to() const {
    if constexpr (is_complex32_v<T>) {
      return wrapped<T>();  // as in PyTorch, a number that is too large becomes infinite
    } else if constexpr (is_complex_v<T>) {
      using R = typename T::value_type;
      if (!holds<R>() || !float_holds<R>(imag)) does_not_fit(cpp_name<R>());
    } else if constexpr (!std::is_same_v<T, bool>) {
      if (!holds<T>()) does_not_fit(cpp_name<T>());
    }
    return wrapped<T>();
  }

 private:
  template <class T>
  T integer() const {
    return is_unsigned ? convert<T>(static_cast<uint64_t>(i)) : convert<T>(i);
  }
  template <class T>
  bool holds() const {
    return kind <= kInt ? integer_holds<T>() : float_holds<T>(d);
  }
  template <class T>
  bool integer_holds() const {
    if constexpr (std::is_same_v<T, Half>) {
      return !is_unsigned && i >= -65504 && i <= 65504;
    } else if constexpr (!std::is_integral_v<T>) {
      return true;
    } else if constexpr (std::is_unsigned_v<T>) {  // as in PyTorch, -1 is the largest number, -2 the one before it, and
                                                   // so on
      const uint64_t size = !is_unsigned && i < 0 ? -static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
      return size <= std::numeric_limits<T>::max();
    } else {
      return !is_unsigned && i >= std::numeric_limits<T>::min() && i <= std::numeric_limits<T>::max();
    }
  }
  template <class T>
  static bool float_holds(double v) {
    if constexpr (std::is_integral_v<T>)
      return v >= static_cast<double>(std::numeric_limits<T>::min()) &&
             v < std::ldexp(1.0, std::numeric_limits<T>::digits);
    else if constexpr (std::is_same_v<T, double> || is_float8_v<T>)
      return true;
    else
      return !std::isfinite(v) || std::abs(v) <= largest<T>();
  }
  template <class T>
  static constexpr double largest() {
    if constexpr (std::is_same_v<T, Half>) return 65504;
    if constexpr (std::is_same_v<T, BFloat16>) return 3.3895313892515355e38;
    return std::numeric_limits<float>::max();
  }
};

// One operand of a call: a tensor, a list of tensors, a number, or another argument. `kind` tells which member is set.
struct Arg {
  enum Kind : uint8_t { kNone, kTensor, kTensors, kScalar, kInts, kFloats, kString, kDType } kind = kNone;
  Tensor tensor;
  Scalar scalar;
  DType dtype = DType::F32;
  std::vector<Tensor> tensors;
  Dims ints;
  std::vector<double> floats;
  std::string str;
};

// The call of one operator. A kernel reads its operands by their position and creates its results by their index.
class Call {
 public:
  virtual ~Call() = default;
  const char *name = "";
  const Arg *args = nullptr;
  int nargs = 0;

  bool has(int i) const { return i < nargs && args[i].kind != Arg::kNone; }
  const Tensor &in(int i) const { return args[i].tensor; }
  const std::vector<Tensor> &list(int i) const { return args[i].tensors; }
  const Scalar &scalar(int i) const { return args[i].scalar; }
  int64_t integer(int i) const { return args[i].scalar.to<int64_t>(); }
  double number(int i) const { return args[i].scalar.to<double>(); }
  bool flag(int i) const { return args[i].scalar.to<bool>(); }
  const Dims &ints(int i) const { return args[i].ints; }
  const std::vector<double> &floats(int i) const { return args[i].floats; }
  const std::string &str(int i) const { return args[i].str; }
  DType dtype(int i) const { return args[i].dtype; }

  // Creates result `index`. Its memory is not initialised, and it is contiguous unless strides are given. If the call
  // is in place or has out=, and the kernel is elementwise, the result is the strided tensor of the caller instead.
  virtual Tensor out(int index, DType dtype, const int64_t *sizes, int ndim, const int64_t *strides = nullptr) = 0;
  Tensor out(int index, DType dtype, const Dims &sizes) {
    return out(index, dtype, sizes.data(), static_cast<int>(sizes.size()));
  }
  Tensor out_like(int index, const Tensor &t) { return out(index, t.dtype, t.sizes, t.ndim); }
  // Creates the result of an elementwise operator. It has the broadcast shape of the operands and the layout that
  // PyTorch gives it: if a dense operand has permuted dims, the result has the same permutation.
  Tensor out_pointwise(int index, DType dtype, std::initializer_list<const Tensor *> operands);
  // Scratch memory that lives as long as the call.
  virtual void *scratch(size_t bytes) = 0;
  template <class T>
  T *scratch_of(int64_t n) {
    return static_cast<T *>(scratch(byte_count(n, sizeof(T))));
  }
  // contiguous() returns an operand as a contiguous tensor, and cast() also converts it to another type. Both return
  // the operand itself if it already is what is asked for.
  Tensor contiguous(const Tensor &t);
  Tensor cast(const Tensor &t, DType dtype);
};

using Kernel = void (*)(Call &);

struct KernelInfo {
  Kernel run = nullptr;
  bool elementwise = false;  // may write its result directly into an operand of the same shape
  bool writes_operands =
      false;  // changes some of its operands in place, although its name does not begin with "Inplace"
};

// Registers the kernel of the MindSpore operator `name`. A name that is registered twice is an error when the library
// is loaded.
void register_kernel(const char *name, const KernelInfo &info);
const KernelInfo *find_kernel(const std::string &name);
std::vector<std::string> kernel_names();

struct KernelRegistration {
  KernelRegistration(const char *name, const KernelInfo &info) { register_kernel(name, info); }
};
// MSA_KERNEL(AddExt) { ... } defines and registers a kernel. Its body has the parameter `Call &c`. A comment behind the
// name of a kernel lists its operands in the order of their positions; `?` marks an operand that may be absent, and the
// names after `->` are the results. MSA_POINTWISE_KERNEL marks the kernel as elementwise,
// and MSA_WRITING_KERNEL as one that writes operands.
#define MSA_KERNEL_(Name, Elementwise, Writes)                                                       \
  static void kernel_##Name(::msa::Call &c);                                                         \
  static ::msa::KernelRegistration registration_##Name(#Name, {kernel_##Name, Elementwise, Writes}); \
  static void kernel_##Name([[maybe_unused]] ::msa::Call &c)
#define MSA_KERNEL(Name) MSA_KERNEL_(Name, false, false)
#define MSA_POINTWISE_KERNEL(Name) MSA_KERNEL_(Name, true, false)
#define MSA_WRITING_KERNEL(Name) MSA_KERNEL_(Name, false, true)
// Registers a kernel under a second operator name.
#define MSA_KERNEL_ALIAS(Alias, Name) \
  static ::msa::KernelRegistration registration_##Alias(#Alias, *::msa::find_kernel(#Name));

// ---- errors with PyTorch's text. check(condition, "expected ", x, " but got ", y) throws RuntimeError with the joined
// parts unless the condition holds.
template <class... A>
[[noreturn]] void fail(const A &...parts);
template <class... A>
inline void check(bool ok, const A &...parts) {
  if (!ok) fail(parts...);
}
struct IndexError : std::out_of_range {
  using std::out_of_range::out_of_range;
};
struct ValueError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
struct OverflowError : std::overflow_error {
  using std::overflow_error::overflow_error;
};
struct TypeError : std::domain_error {
  using std::domain_error::domain_error;
};

inline void append(std::string &s, const char *v) { s += v; }
inline void append(std::string &s, const std::string &v) { s += v; }
inline void append(std::string &s, DType v) { s += dtype_name(v); }
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
inline void append(std::string &s, T v) {
  s += std::to_string(v);
}
inline void append(std::string &s, const Dims &v) {
  s += "[";
  for (size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  s += "]";
}
template <class... A>
std::string text(const A &...parts) {
  std::string s;
  (append(s, parts), ...);
  return s;
}
template <class... A>
[[noreturn]] void fail(const A &...parts) {
  throw std::runtime_error(text(parts...));
}

// Returns a dim in [-ndim, ndim) counted from the start. Throws IndexError with PyTorch's text for any other number. A
// tensor without dims counts as one with a single dim.
int64_t wrap_dim(int64_t dim, int64_t ndim);

// ---- threads
int num_threads();
void set_num_threads(int n);
// Calls f(begin, end) for parts of [0, n), in several threads if n >= grain. A call from within f runs in the thread
// that makes it.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)> &f);
bool in_parallel_region();

// Whether kernels in this thread only create their results and compute nothing. This is so for meta tensors, which have
// reserved addresses without memory behind them.
bool shape_only();
class ShapeOnly {
 public:
  explicit ShapeOnly(bool on);
  ~ShapeOnly();

 private:
  bool previous_;
};
// Throws an error for a meta tensor. Kernels call it if the sizes of their results depend on the values of operands.
void needs_values(const char *op);
void *reserve_address_space(size_t bytes);
void release_address_space(void *p, size_t bytes);

// ---- memory: a pool that keeps freed blocks in lists by their size
void *allocate(size_t bytes);
void deallocate(void *p, size_t bytes);
struct MemoryStats {
  int64_t allocated, peak, reserved;
};
MemoryStats memory_stats();
void reset_peak();
void release_cached();

}  // namespace msa
