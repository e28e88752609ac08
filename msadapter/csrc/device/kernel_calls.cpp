#include "kernel_calls.h"

namespace msa {

namespace {
class BoxedCall final : public Call {
 public:
  explicit BoxedCall(const TensorPtr *destination) : destination_(destination) {}
  ~BoxedCall() override {
    for (auto &s : scratch_) deallocate(s.first, s.second);
  }
  Tensor out(int index, DType dtype, const int64_t *sizes, int ndim, const int64_t *strides) override {
    if (static_cast<int>(results.size()) <= index) results.resize(index + 1);
    if (destination_ && index == 0) {
      Tensor d = view_of(*destination_);
      bool same = d.dtype == dtype && d.ndim == ndim;
      for (int i = 0; same && i < ndim; ++i) same = d.sizes[i] == sizes[i];
      if (same) {
        results[0] = *destination_;
        return d;
      }
    }
    results[index] = new_tensor(dtype, sizes, ndim, strides);
    return view_of(results[index]);
  }
  void *scratch(size_t bytes) override {
    scratch_.emplace_back(allocate(std::max<size_t>(bytes, 1)), std::max<size_t>(bytes, 1));
    return scratch_.back().first;
  }
  Tensors results;

 private:
  const TensorPtr *destination_;
  std::vector<std::pair<void *, size_t>> scratch_;
};
constexpr int kMaxOperands = 40;
}  // namespace

Tensors run_kernel(const char *name, const KernelInfo *kernel, const Operand *args, int n,
                   const TensorPtr *destination) {
  if (!kernel) throw NotImplementedError(text(name, " is not supported on CPU (docs/coverage.md)"));
  check(n <= kMaxOperands, name, ": too many operands");
  struct Boxed {  // only as many as there are operands, because an Arg is large
    explicit Boxed(int count) : n(count) {
      for (int i = 0; i < n; ++i) new (at(i)) Arg();
    }
    ~Boxed() {
      for (int i = 0; i < n; ++i) at(i)->~Arg();
    }
    Arg *at(int i) { return reinterpret_cast<Arg *>(bytes) + i; }
    alignas(Arg) unsigned char bytes[sizeof(Arg) * kMaxOperands];
    int n;
  } storage(n);
  Arg *boxed = storage.at(0);
  int tag = 0;
  for (int i = 0; i < n; ++i) {
    if (args[i].kind == Arg::kTensor) tag = std::max(tag, device_tag(args[i].tensor));
    for (auto &t : args[i].tensors)
      if (t) tag = std::max(tag, device_tag(t));
  }
  if (tag == kMetaTag && destination && !is_meta(*destination))
    throw NotImplementedError("Cannot copy out of meta tensor; no data!");
  DeviceScope scope(tag ? tag : factory_tag());
  ShapeOnly shapes(tag == kMetaTag || shape_only());
  for (int i = 0; i < n; ++i) {
    const Operand &o = args[i];
    Arg &a = boxed[i];
    a.kind = o.kind;
    switch (o.kind) {
      case Arg::kTensor: a.tensor = view_of(o.tensor); break;
      case Arg::kTensors:
        a.tensors.reserve(o.tensors.size());
        for (auto &t : o.tensors) {
          a.tensors.push_back(t ? view_of(t) : Tensor{});
          if (!t) a.tensors.back().ndim = -1;
        }
        break;
      case Arg::kInts: a.ints = o.ints; break;
      case Arg::kFloats: a.floats = o.floats; break;
      case Arg::kString: a.str = o.str; break;
      case Arg::kDType:
      case Arg::kScalar:
        a.scalar = o.scalar;
        a.dtype = o.dtype;
        break;
      case Arg::kNone: break;
    }
  }
  BoxedCall call(kernel->elementwise ? destination : nullptr);
  call.name = name;
  call.args = boxed;
  call.nargs = n;
  kernel->run(call);
  // Computed in other memory, because the kernel may read what it has already written
  if (destination && !kernel->elementwise) {
    copy_into(view_of(*destination), view_of(call.results.at(0)));
    call.results[0] = *destination;
  }
  return std::move(call.results);
}

}  // namespace msa
