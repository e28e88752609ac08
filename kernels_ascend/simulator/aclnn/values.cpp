#include "values.h"

#include <stdarg.h>
#include <string.h>

#include <algorithm>
#include <cmath>

#include "complex.h"

namespace sim {
namespace {
#ifdef __aarch64__  // where GCC has _Float16 in C++ since version 13 only
using Float16 = __fp16;
#else
using Float16 = _Float16;
#endif
struct Bfloat16 {
  uint16_t bits;
};
float Widen(Bfloat16 value) {
  const uint32_t bits = uint32_t(value.bits) << 16;
  float wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}
Bfloat16 Round(float value) {  // to the nearest, ties to even
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <class C, class E>
C Load(E value) {
  if constexpr (std::is_same_v<E, Bfloat16>) {
    return static_cast<C>(Widen(value));
  } else if constexpr (std::is_same_v<E, Float16>) {
    return static_cast<C>(static_cast<float>(value));
  } else {
    return static_cast<C>(value);
  }
}
int64_t Whole(double value) {
  constexpr double kEdge = 9223372036854775808.0;
  return value >= -kEdge && value < kEdge ? static_cast<int64_t>(value) : INT64_MIN;
}
template <class E, class C>
E Store(C value) {
  if constexpr (std::is_same_v<E, Bfloat16>) {
    return Round(static_cast<float>(value));
  } else if constexpr (std::is_same_v<E, Float16>) {
    return static_cast<Float16>(value);
  } else if constexpr (std::is_same_v<E, bool>) {
    return value != C(0);
  } else if constexpr (std::is_floating_point_v<C> && std::is_integral_v<E>) {
    return static_cast<E>(Whole(static_cast<double>(value)));
  } else {
    return static_cast<E>(value);
  }
}

// Calls f with a null pointer of the C++ type of a data type.
template <class F>
void Typed(int type, F &&f) {
  switch (type) {
    case kFloat32: return f(static_cast<float *>(nullptr));
    case kFloat16: return f(static_cast<Float16 *>(nullptr));
    case kBfloat16: return f(static_cast<Bfloat16 *>(nullptr));
    case kFloat64: return f(static_cast<double *>(nullptr));
    case kBool: return f(static_cast<bool *>(nullptr));
    case kInt8: return f(static_cast<int8_t *>(nullptr));
    case kUInt8: return f(static_cast<uint8_t *>(nullptr));
    case kInt16: return f(static_cast<int16_t *>(nullptr));
    case kUInt16: return f(static_cast<uint16_t *>(nullptr));
    case kInt32: return f(static_cast<int32_t *>(nullptr));
    case kUInt32: return f(static_cast<uint32_t *>(nullptr));
    case kInt64: return f(static_cast<int64_t *>(nullptr));
    case kUInt64: return f(static_cast<uint64_t *>(nullptr));
  }
  throw Failure(kRefused, Format("%s: the type %s is not simulated", Current()->name, NameOf(type).c_str()));
}

struct TypeName {
  DataType type;
  size_t size;
  const char *name;
};
constexpr TypeName kTypeNames[] = {{kFloat32, 4, "FLOAT"},       {kFloat16, 2, "FLOAT16"},
                                   {kInt8, 1, "INT8"},           {kInt32, 4, "INT32"},
                                   {kUInt8, 1, "UINT8"},         {kInt16, 2, "INT16"},
                                   {kUInt16, 2, "UINT16"},       {kUInt32, 4, "UINT32"},
                                   {kInt64, 8, "INT64"},         {kUInt64, 8, "UINT64"},
                                   {kFloat64, 8, "DOUBLE"},      {kBool, 1, "BOOL"},
                                   {kComplex64, 8, "COMPLEX64"}, {kComplex128, 16, "COMPLEX128"},
                                   {kBfloat16, 2, "BFLOAT16"}};
}  // namespace

size_t SizeOf(int type) {
  for (const auto &one : kTypeNames) {
    if (one.type == type) return one.size;
  }
  throw Failure(kRefused, Format("the data type %d is not simulated", type));
}
std::string NameOf(int type) {
  for (const auto &one : kTypeNames) {
    if (one.type == type) return one.name;
  }
  return "number " + std::to_string(type);
}
std::string NamesOf(Types set) {
  std::string names;
  for (const auto &one : kTypeNames) {
    if (IsIn(one.type, set)) names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return names;
}

template <class C>
std::vector<C> Read(const Tensor &tensor, const Shape &shape) {
  std::vector<C> all(static_cast<size_t>(Count(shape)));
  if (!tensor) throw Failure(kKernelException, Format("the tensor '%s' is missing and was read", tensor.name));
  C *to = all.data();
  const Shape stride = BroadcastStride(tensor, shape);
  Typed(tensor.type, [&](auto *kind) {
    using E = std::remove_pointer_t<decltype(kind)>;
    const auto *from = reinterpret_cast<const E *>(tensor.data);
    Rows(shape, stride, [&](int64_t count, int64_t base, int64_t step) {
      for (int64_t i = 0; i < count; ++i) *to++ = Load<C>(from[base + i * step]);
    });
  });
  return all;
}
template <class C>
void Write(const Tensor &tensor, const std::vector<C> &values) {
  if (!tensor) return;
  if (static_cast<int64_t>(values.size()) != tensor.numel()) {
    throw Failure(kKernelException, Format("%zu results for the %lld elements of '%s'", values.size(),
                                           static_cast<long long>(tensor.numel()), tensor.name));
  }
  const C *from = values.data();
  Typed(tensor.type, [&](auto *kind) {
    using E = std::remove_pointer_t<decltype(kind)>;
    auto *to = reinterpret_cast<E *>(tensor.data);
    Rows(tensor.shape, tensor.stride, [&](int64_t count, int64_t base, int64_t step) {
      for (int64_t i = 0; i < count; ++i) to[base + i * step] = Store<E>(*from++);
    });
  });
}
template std::vector<double> Read(const Tensor &, const Shape &);
template std::vector<int64_t> Read(const Tensor &, const Shape &);
template std::vector<float> Read(const Tensor &, const Shape &);
template void Write(const Tensor &, const std::vector<double> &);
template void Write(const Tensor &, const std::vector<int64_t> &);
template void Write(const Tensor &, const std::vector<float> &);

namespace {
void CopyBytes(const Tensor &from, const Tensor &to) {
  const size_t size = SizeOf(from.type);
  std::vector<char> bytes(static_cast<size_t>(to.numel()) * size);
  char *at = bytes.data();
  auto each = [&](const Shape &stride, auto &&move) {
    Rows(to.shape, stride, [&](int64_t count, int64_t base, int64_t step) {
      for (int64_t i = 0; i < count; ++i, at += size) move((base + i * step) * static_cast<int64_t>(size));
    });
  };
  each(BroadcastStride(from, to.shape), [&](int64_t offset) { memcpy(at, from.data + offset, size); });
  at = bytes.data();
  each(to.stride, [&](int64_t offset) { memcpy(to.data + offset, at, size); });
}
// The real (0) or imaginary (1) parts of a complex tensor, as a view.
Tensor Component(Tensor tensor, int which) {
  tensor.type = tensor.type == kComplex64 ? kFloat32 : kFloat64;
  for (auto &step : tensor.stride) step *= 2;
  tensor.data += which * static_cast<int64_t>(SizeOf(tensor.type));
  return tensor;
}
// Converts between complex and real types, or between two complex types. A real number becomes the real part of a
// complex number. A complex number loses its imaginary part. As a truth value it is true if either part is not zero.
void ConvertComplex(const Tensor &from, const Tensor &to) {
  const bool complex = IsComplex(from.type);
  auto real = Read<double>(complex ? Component(from, 0) : from, to.shape);
  std::vector<double> imaginary(real.size());
  if (complex) imaginary = Read<double>(Component(from, 1), to.shape);
  if (IsComplex(to.type)) {
    Write(Component(to, 0), real);
    return Write(Component(to, 1), imaginary);
  }
  if (to.type == kBool) {
    for (size_t i = 0; i < real.size(); ++i) real[i] = real[i] != 0 || imaginary[i] != 0;
  }
  Write(to, real);
}
}  // namespace

void Convert(const Tensor &from, const Tensor &to) {
  if (from.type == to.type) return CopyBytes(from, to);
  if (IsComplex(from.type) || IsComplex(to.type)) return ConvertComplex(from, to);
  Computed(from.floating(), [&](auto zero) { Write(to, Read<decltype(zero)>(from, to.shape)); });
}

void Fill(const Tensor &tensor, const Scalar &value) {
  Computed(value.floating(), [&](auto zero) {
    using C = decltype(zero);
    Write(tensor, std::vector<C>(static_cast<size_t>(tensor.numel()), As<C>(value)));
  });
}

void ReadNumber(const void *bytes, int type, double *real, int64_t *whole) {
  Typed(type, [&](auto *kind) {
    using E = std::remove_pointer_t<decltype(kind)>;
    E value;
    memcpy(&value, bytes, sizeof value);
    *real = Load<double>(value);
    if constexpr (std::is_integral_v<E>) {
      *whole = static_cast<int64_t>(value);
    } else {
      *whole = Whole(*real);
    }
  });
}

// ---- views
Shape RowMajor(const Shape &shape) {
  Shape stride(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= shape[i];
  }
  return stride;
}

Shape BroadcastStride(const Tensor &tensor, const Shape &shape) {
  Shape stride(shape.size(), 0);
  const int64_t shift = static_cast<int64_t>(shape.size()) - tensor.rank();
  for (int64_t i = 0; i < tensor.rank(); ++i) {
    const int64_t size = tensor.shape[i];
    if (i + shift < 0 ? size != 1 : size != 1 && size != shape[i + shift]) {
      throw Failure(kKernelException, Format("'%s' of shape %s does not broadcast to %s", tensor.name,
                                             Print(tensor.shape).c_str(), Print(shape).c_str()));
    }
    if (i + shift >= 0) stride[i + shift] = size == 1 ? 0 : tensor.stride[i];
  }
  return stride;
}

Shape BroadcastShape(const Shape &a, const Shape &b) {
  Shape wide = a.size() >= b.size() ? a : b;
  const Shape &other = a.size() >= b.size() ? b : a;
  const size_t shift = wide.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t &size = wide[i + shift];
    if (size != other[i] && size != 1 && other[i] != 1) {
      Refuse("the shapes %s and %s do not broadcast", Print(a).c_str(), Print(b).c_str());
    }
    if (size == 1) size = other[i];
  }
  return wide;
}

Tensor Part(Tensor tensor, int64_t axis, int64_t from, int64_t size) {
  tensor.data += from * tensor.stride[axis] * static_cast<int64_t>(SizeOf(tensor.type));
  tensor.shape[axis] = size;
  return tensor;
}

int64_t Axis(int64_t axis, int64_t rank) {
  const int64_t count = std::max<int64_t>(rank, 1);
  if (axis < -count || axis >= count) Refuse("there is no axis %lld of %lld", (long long)axis, (long long)rank);
  return axis < 0 ? axis + count : axis;
}

Around::Around(const Shape &shape, int64_t axis) {
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    (i < axis ? outer : i == axis ? along : inner) *= shape[i];
  }
}

// ---- checks
std::string Print(const Shape &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

void Refuse(const char *format, ...) {
  char reason[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  throw Failure(kRefused, Format("%s: %s (%s)", Current()->name, reason, Current()->page));
}

void Takes(const Tensor &tensor, Types types) {
  if (!tensor) return;
  if (IsIn(tensor.type, types)) {
    if (IsComplex(tensor.type)) {
      auto &left = UntakenComplex();
      left.erase(std::remove_if(left.begin(), left.end(), [&](const auto &one) { return one.first == tensor.handle; }),
                 left.end());
    }
    return;
  }
  Refuse("'%s' is %s; taken are %s", tensor.name, NameOf(tensor.type).c_str(), NamesOf(types).c_str());
}
void SameType(const Tensor &a, const Tensor &b) {
  if (!a || !b || a.type == b.type) return;
  Refuse("'%s' is %s and '%s' is %s; they must be equal", a.name, NameOf(a.type).c_str(), b.name,
         NameOf(b.type).c_str());
}
void SameShape(const Tensor &a, const Tensor &b) {
  if (a && b) HasShape(b, a.shape);
}
void HasShape(const Tensor &tensor, const Shape &shape) {
  if (!tensor || tensor.shape == shape) return;
  Refuse("'%s' has the shape %s and must have %s", tensor.name, Print(tensor.shape).c_str(), Print(shape).c_str());
}
void HasRank(const Tensor &tensor, int64_t least, int64_t most) {
  if (!tensor || (tensor.rank() >= least && tensor.rank() <= most)) return;
  Refuse("'%s' has %lld axes; taken are %lld to %lld", tensor.name, (long long)tensor.rank(), (long long)least,
         (long long)most);
}
void FitsBroadcast(std::initializer_list<Tensor> inputs, const Tensor &out) {
  Shape shape;
  for (const Tensor &one : inputs) {
    if (one) shape = BroadcastShape(shape, one.shape);
  }
  HasShape(out, shape);
}
void OutOfRange(const char *what, int64_t value, int64_t end) {
  throw Failure(kKernelException, Format("%s %lld is out of range, the end is %lld", what,
                                         static_cast<long long>(value), static_cast<long long>(end)));
}
}  // namespace sim
