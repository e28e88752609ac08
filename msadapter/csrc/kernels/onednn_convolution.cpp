// Convolutions with oneDNN: the result, the gradient of the image and that of the weight.
#include "onednn_library.h"

namespace msa::onednn {
namespace {

struct Key {
  Convolution shape;
  int part, threads;
  bool operator<(const Key &o) const { return std::memcmp(this, &o, sizeof(Key)) < 0; }
};

// A primitive with its three operands: image, weight and result. oneDNN chooses their layouts. `plain` are the operands
// in the order of their dims, `inner` those of the primitive, which are copied from or to the plain ones.
struct Primitive {
  Library &l;
  Handle primitive = nullptr, plain_desc[3] = {}, plain[3] = {}, inner[3] = {}, copy[3] = {}, bias = nullptr;
  size_t bytes[3] = {};
  explicit Primitive(Library &lib) : l(lib) {}
  Primitive(const Primitive &) = delete;
  Primitive &operator=(const Primitive &) = delete;
  ~Primitive() {
    for (int i = 0; i < 3; ++i) {
      if (plain[i]) l.memory_destroy(plain[i]);
      if (inner[i]) l.memory_destroy(inner[i]);
      if (copy[i]) l.primitive_destroy(copy[i]);
      if (plain_desc[i]) l.memory_desc_destroy(plain_desc[i]);
    }
    if (bias) l.memory_destroy(bias);
    if (primitive) l.primitive_destroy(primitive);
  }
};

// The sizes of the operands, with a dim for groups in front of the weight's if there are several.
struct Operand {
  int64_t size[kDimsMax] = {}, stride[kDimsMax] = {};
  int n = 0;
  void add(int64_t v) { size[n++] = v; }
  void finish() {
    int64_t step = 1;
    for (int d = n - 1; d >= 0; --d) {
      stride[d] = step;
      step *= size[d];
    }
  }
};

bool build(Primitive &p, const Convolution &c, Part part) {
  Library &l = p.l;
  Operand operands[3];
  operands[0].add(c.n);
  operands[0].add(c.image_channels);
  if (c.groups > 1) operands[1].add(c.groups);
  operands[1].add(c.result_channels / c.groups);
  operands[1].add(c.image_channels / c.groups);
  operands[2].add(c.n);
  operands[2].add(c.result_channels);
  int64_t stride[3], dilation[3], left[3], right[3];
  for (int d = 0; d < c.spatial; ++d) {
    const int s = 3 - c.spatial + d;
    operands[0].add(c.in[s]);
    operands[1].add(c.kernel[s]);
    operands[2].add(c.out[s]);
    stride[d] = c.stride[s];
    dilation[d] = c.dilation[s] - 1;
    left[d] = c.pad[s];
    // what the last window reaches beyond the image, or leaves of it
    right[d] = (c.out[s] - 1) * c.stride[s] + (c.kernel[s] - 1) * c.dilation[s] + 1 - c.in[s] - c.pad[s];
    if (right[d] + stride[d] <= 0) return false;
  }
  Handle any[3] = {}, bias = nullptr, forward = nullptr, pd = nullptr;
  bool ok = true;
  const int written = static_cast<int>(part);
  for (int i = 0; i < 3; ++i) {
    const int type = onednn_type(static_cast<DType>(i == written ? c.written : c.type));
    operands[i].finish();
    ok = ok && l.memory_desc_create_with_strides(&p.plain_desc[i], operands[i].n, operands[i].size, type,
                                                 operands[i].stride) == 0;
    ok = ok && l.memory_desc_create_with_tag(&any[i], operands[i].n, operands[i].size, type, kAnyTag) == 0;
  }
  if (c.biased) {
    const int64_t one = 1;
    ok = ok && l.memory_desc_create_with_strides(&bias, 1, &c.result_channels, onednn_type(DType::F32), &one) == 0 &&
         l.memory_create(&p.bias, bias, l.engine, nullptr) == 0;
  }
  ok = ok && l.convolution_forward_primitive_desc_create(&forward, l.engine, kForwardTraining, kDirect, any[0], any[1],
                                                         bias, any[2], stride, dilation, left, right, nullptr) == 0;
  int query[3] = {kQuerySrc, kQueryWeights, kQueryDst};
  if (part == Part::kImage) {
    ok = ok && l.convolution_backward_data_primitive_desc_create(&pd, l.engine, kDirect, any[0], any[1], any[2], stride,
                                                                 dilation, left, right, forward, nullptr) == 0;
    query[0] = kQueryDiffSrc;
    query[2] = kQueryDiffDst;
  } else if (part == Part::kWeight) {
    ok = ok &&
         l.convolution_backward_weights_primitive_desc_create(&pd, l.engine, kDirect, any[0], any[1], nullptr, any[2],
                                                              stride, dilation, left, right, forward, nullptr) == 0;
    query[1] = kQueryDiffWeights;
    query[2] = kQueryDiffDst;
  }
  const Handle chosen = part == Part::kResult ? forward : pd;
  ok = ok && l.primitive_create(&p.primitive, chosen) == 0;
  for (int i = 0; ok && i < 3; ++i) {
    const Handle desc = l.primitive_desc_query_md(chosen, query[i], 0);
    ok = desc && l.memory_create(&p.plain[i], p.plain_desc[i], l.engine, nullptr) == 0;
    if (!ok || l.memory_desc_equal(desc, p.plain_desc[i])) continue;
    p.bytes[i] = l.memory_desc_get_size(desc);
    ok = l.memory_create(&p.inner[i], desc, l.engine, nullptr) == 0;
    Handle reorder = nullptr;
    const Handle from = i == written ? desc : p.plain_desc[i], to = i == written ? p.plain_desc[i] : desc;
    ok = ok && l.reorder_primitive_desc_create(&reorder, from, l.engine, to, l.engine, nullptr) == 0;
    ok = ok && l.primitive_create(&p.copy[i], reorder) == 0;
    if (reorder) l.primitive_desc_destroy(reorder);
  }
  if (pd) l.primitive_desc_destroy(pd);
  if (forward) l.primitive_desc_destroy(forward);
  for (Handle d : {any[0], any[1], any[2], bias})
    if (d) l.memory_desc_destroy(d);
  return ok;
}

}  // namespace

bool convolves() {
  static const char *choice = std::getenv("MSADAPTER_ONEDNN");
  return !(choice && choice[0] == '0') && library().ok();
}

bool convolve(const Convolution &shape, Part part, void *const *data, const std::function<void *(int64_t)> &scratch) {
  Key key;
  std::memset(static_cast<void *>(&key), 0, sizeof(key));
  key.shape = shape;
  key.part = static_cast<int>(part);
  key.threads = in_parallel_region() ? 1 : num_threads();
  thread_local Cache<Key, Primitive> cache;
  Library &l = library();
  const Handle s = stream();
  if (!s) return false;
  l.threadpool_interop_set_max_concurrency(key.threads);
  Primitive *p = cache.get(key, [&] {
    auto fresh = std::make_unique<Primitive>(l);
    if (!build(*fresh, shape, part)) fresh.reset();
    return fresh;
  });
  if (!p) return false;
  const int written = static_cast<int>(part);
  ExecArg args[4];
  const int names[3] = {part == Part::kImage ? kDiffSrc : kSrc, part == Part::kWeight ? kDiffWeights : kWeights,
                        part == Part::kResult ? kDst : kDiffDst};
  for (int i = 0; i < 3; ++i) {
    l.memory_set_data_handle(p->plain[i], data[i]);
    args[i] = {names[i], p->plain[i]};
    if (!p->inner[i]) continue;
    l.memory_set_data_handle(p->inner[i], scratch(static_cast<int64_t>(p->bytes[i])));
    args[i].memory = p->inner[i];
    const ExecArg copied[] = {{kSrc, p->plain[i]}, {kDst, p->inner[i]}};
    if (i != written && l.primitive_execute(p->copy[i], s, 2, copied) != 0) return false;
  }
  if (p->bias) {
    l.memory_set_data_handle(p->bias, data[3]);
    args[3] = {kBias, p->bias};
  }
  if (l.primitive_execute(p->primitive, s, p->bias ? 4 : 3, args) != 0) return false;
  if (!p->inner[written]) return true;
  const ExecArg copied[] = {{kSrc, p->inner[written]}, {kDst, p->plain[written]}};
  return l.primitive_execute(p->copy[written], s, 2, copied) == 0;
}

}  // namespace msa::onednn
