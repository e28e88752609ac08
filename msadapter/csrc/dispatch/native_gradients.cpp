// C++ gradients of the most frequent operators. They give the same numbers as the Python formulas, which remain the
// definition, with fewer steps. They run only if no graph of the gradient is recorded.
#include "../device/geometry.h"
#include "internal.h"

namespace msa {

namespace {

TensorPtr run(const char *name, const Operator *&op, std::initializer_list<Operand> v) {
  if (!op) op = find_operator(name);
  return run_operator(op, v.begin(), static_cast<int>(v.size()))[0];
}
#define MSA_RUN(name, ...)               \
  ([&] {                                 \
    static const Operator *op = nullptr; \
    return run(name, op, {__VA_ARGS__}); \
  }())

DType type_of(const TensorPtr &t) { return from_ms(t->data_type()); }
TensorPtr fit(OpNode &n, int param, const TensorPtr &g) {
  return reduce_to(g, n.inputs[param].sizes, n.inputs[param].dtype);
}
bool wants(OpNode &n, int param) { return n.inputs[param].edge >= 0 && n.needs(n.inputs[param].edge); }
void put(OpNode &n, Tensors *out, int param, const TensorPtr &g) { (*out)[n.inputs[param].edge] = fit(n, param, g); }

PyObject *plain(OpNode &n, int param) {
  for (auto &p : n.plain)
    if (p.first == param) return p.second.get();
  return nullptr;
}
bool is_one(PyObject *o) { return o && PyLong_CheckExact(o) && PyLong_AsLong(o) == 1; }

// Returns the other factor of a product: a saved tensor with the type of g, or a number. It returns an empty operand
// if this function does not support the case, and then the Python formula runs.
Operand factor(OpNode &n, int param, const TensorPtr &g) {
  if (TensorPtr t = n.saved_tensor(param))
    return type_of(t) == type_of(g) && !is_complex(type_of(g)) ? Operand::of(t) : Operand();
  PyObject *o = plain(n, param);
  if (!o || is_complex(type_of(g))) return Operand();
  if (PyFloat_CheckExact(o)) return Operand::of(PyFloat_AS_DOUBLE(o));
  if (PyLong_CheckExact(o)) return Operand::of(static_cast<double>(PyLong_AsLongLong(o)));
  return Operand();
}

bool add(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 1) && !is_one(plain(n, 2))) return false;
  for (int p = 0; p < 2; ++p)
    if (wants(n, p)) put(n, out, p, g);
  return true;
}

bool sub(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 1) && !is_one(plain(n, 2))) return false;
  if (wants(n, 0)) put(n, out, 0, g);
  if (wants(n, 1)) put(n, out, 1, MSA_RUN("Neg", Operand::of(g)));
  return true;
}

bool mul(OpNode &n, const TensorPtr &g, Tensors *out) {
  Operand other[2];
  for (int p = 0; p < 2; ++p)
    if (wants(n, p) && (other[p] = factor(n, 1 - p, g)).kind == Arg::kNone) return false;
  for (int p = 0; p < 2; ++p)
    if (wants(n, p)) put(n, out, p, MSA_RUN("Mul", Operand::of(g), other[p]));
  return true;
}

bool divide(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 1)) return false;
  Operand by = factor(n, 1, g);
  if (by.kind == Arg::kNone) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("Div", Operand::of(g), by));
  return true;
}

bool negative(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("Neg", Operand::of(g)));
  return true;
}

bool mm(OpNode &n, const TensorPtr &g, Tensors *out) {
  TensorPtr a, b;
  if (wants(n, 0)) b = n.saved_tensor(1);
  if (wants(n, 1)) a = n.saved_tensor(0);
  for (auto &t : {a, b})
    if (t && (type_of(t) != type_of(g) || is_complex(type_of(g)))) return false;
  if (b) put(n, out, 0, MSA_RUN("MatMul", Operand::of(g), Operand::of(b), Operand::of(false), Operand::of(true)));
  if (a) put(n, out, 1, MSA_RUN("MatMul", Operand::of(a), Operand::of(g), Operand::of(true), Operand::of(false)));
  return true;
}

// The gradient of a view that keeps every element: g, in the shape of the input.
bool reshaped(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  if (!is_contiguous(g)) return false;
  (*out)[n.inputs[0].edge] = Geometry::contiguous(n.inputs[0].sizes, offset_of(g)).on(g);
  return true;
}

bool swapped(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  Geometry back = Geometry::of(g);
  int64_t a = 0, b = 1;
  if (n.op->params.size() == 3) {
    PyObject *pa = plain(n, 1), *pb = plain(n, 2);
    if (!pa || !pb) return false;
    a = PyLong_AsLongLong(pa);
    b = PyLong_AsLongLong(pb);
  } else if (back.rank() != 2) {
    return false;
  }
  if (!wrap_dim(&a, back.rank()) || !wrap_dim(&b, back.rank())) return false;
  back.swap(a, b);
  (*out)[n.inputs[0].edge] = back.on(g);
  return true;
}

// The gradient of a view of a part: zeros, with g in the same part.
bool placed(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  if (n.inputs[0].dtype != type_of(g) || !n.op->native_body) return false;
  const int count = static_cast<int>(n.op->params.size());
  TensorPtr whole = new_tensor(type_of(g), n.inputs[0].sizes);
  fill_zero(view_of(whole));
  Operands v(count);
  v[0] = Operand::of(whole);
  for (int i = 1; i < count; ++i) {
    PyObject *o = plain(n, i);
    if (!o) return false;
    convert(*n.op, i, o, &v[i]);
  }
  Tensors part;
  if (!n.op->native_body(v.data(), nullptr, &part)) return false;
  copy_into(view_of(part[0]), view_of(g));
  (*out)[n.inputs[0].edge] = whole;
  return true;
}

// Expands the gradient g of a reduction to the input's shape. Null if the arguments are not plain. `count` is the
// number of elements in each sum.
TensorPtr spread(OpNode &n, const TensorPtr &g, int64_t *count) {
  const Dims &sizes = n.inputs[0].sizes;
  const int64_t rank = static_cast<int64_t>(sizes.size());
  std::vector<bool> reduced(sizes.size(), true);
  PyObject *dims = plain(n, 1), *keep = plain(n, 2);
  if (!dims || !keep || n.inputs[0].dtype != type_of(g)) return nullptr;
  if (dims != Py_None) {
    Operand o;
    convert(*n.op, 1, dims, &o);
    if (!o.ints.empty()) {
      reduced.assign(sizes.size(), false);
      for (int64_t d : o.ints) {
        if (!wrap_dim(&d, rank)) return nullptr;
        reduced[d] = true;
      }
    }
  }
  const bool kept = keep == Py_True;
  const Dims from = strides_of(g);
  Geometry whole{sizes, Dims(sizes.size(), 0), offset_of(g)};
  size_t at = 0;
  *count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (reduced[d])
      *count *= sizes[d];
    else if (at < from.size())
      whole.strides[d] = from[at];
    if (kept || !reduced[d]) ++at;
  }
  return at == from.size() ? whole.on(g) : nullptr;
}
bool sum(OpNode &n, const TensorPtr &g, Tensors *out) {
  int64_t count;
  if (wants(n, 0) && !((*out)[n.inputs[0].edge] = spread(n, g, &count))) return false;
  return true;
}
bool mean(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  int64_t count;
  if (!spread(n, g, &count) || is_complex(type_of(g))) return false;
  (*out)[n.inputs[0].edge] = spread(n, MSA_RUN("Div", Operand::of(g), Operand::of(static_cast<double>(count))), &count);
  return true;
}

// ---- gradients that are a single operator of MindSpore
TensorPtr result_of(OpNode &n, int i) { return n.saved_result(i); }
Operand number(OpNode &n, int param) {
  Operand o;
  if (PyObject *p = plain(n, param)) convert(*n.op, param, p, &o);
  return o;
}
bool same_type(OpNode &n, const TensorPtr &g) { return n.inputs[0].dtype == type_of(g); }

bool gelu(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("GeluGradExt", Operand::of(g), Operand::of(n.saved_tensor(0)), number(n, 1)));
  return true;
}
bool silu(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("SiLUGrad", Operand::of(g), Operand::of(n.saved_tensor(0))));
  return true;
}
bool relu(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("ReluGrad", Operand::of(g), Operand::of(result_of(n, 0))));
  return true;
}
bool tanh(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("TanhGrad", Operand::of(result_of(n, 0)), Operand::of(g)));
  return true;
}
bool sigmoid(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0)) put(n, out, 0, MSA_RUN("SigmoidGrad", Operand::of(result_of(n, 0)), Operand::of(g)));
  return true;
}
bool softmax(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0))
    put(n, out, 0, MSA_RUN("SoftmaxBackward", Operand::of(g), Operand::of(result_of(n, 0)), number(n, 1)));
  return true;
}
bool log_softmax(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g)) return false;
  if (wants(n, 0))
    put(n, out, 0, MSA_RUN("LogSoftmaxGrad", Operand::of(result_of(n, 0)), Operand::of(g), number(n, 1)));
  return true;
}
bool layer_norm(OpNode &n, const TensorPtr &g, Tensors *out) {  // input, normalized_shape, weight, bias, eps
  if (!same_type(n, g)) return false;
  static const Operator *op = find_operator("LayerNormGradExt");
  const int inputs[3] = {0, 2, 3};
  Dims mask;
  for (int p : inputs) mask.push_back(wants(n, p));
  Operand v[8] = {Operand::of(g),
                  Operand::of(n.saved_tensor(0)),
                  number(n, 1),
                  Operand::of(result_of(n, 1)),
                  Operand::of(result_of(n, 2)),
                  Operand::of(n.saved_tensor(2)),
                  Operand::of(n.saved_tensor(3)),
                  Operand::of(mask)};
  Tensors r = run_operator(op, v, 8);
  for (int i = 0; i < 3; ++i)
    if (mask[i]) put(n, out, inputs[i], r.at(i));
  return true;
}
bool cross_entropy(OpNode &n, const TensorPtr &g,
                   Tensors *out) {  // self, target, weight, reduction, ignore_index, label_smoothing
  if (!wants(n, 0)) return true;
  put(n, out, 0,
      MSA_RUN("CrossEntropyLossGrad", Operand::of(g), Operand::of(result_of(n, 1)), Operand::of(n.saved_tensor(1)),
              Operand::of(n.saved_tensor(2)), Operand(), Operand(), number(n, 3), number(n, 4), number(n, 5),
              Operand::of(0.0)));
  return true;
}
bool embedding(OpNode &n, const TensorPtr &g, Tensors *out) {  // weight, indices, padding_idx, scale_grad_by_freq
  if (!wants(n, 0)) return true;
  Operand padding = number(n, 2);
  if (padding.scalar.i < 0) padding = Operand();
  put(n, out, 0,
      MSA_RUN("EmbeddingDenseBackward", Operand::of(g), Operand::of(n.saved_tensor(1)),
              Operand::of(n.inputs[0].sizes[0]), padding, number(n, 3)));
  return true;
}
bool index_select(OpNode &n, const TensorPtr &g, Tensors *out) {  // self, dim, index
  if (!wants(n, 0)) return true;
  TensorPtr whole = new_tensor(type_of(g), n.inputs[0].sizes);
  fill_zero(view_of(whole));
  static const Operator *op = find_operator("IndexAddExt");
  Operand v[5] = {Operand::of(whole), number(n, 1), Operand::of(n.saved_tensor(2)), Operand::of(g),
                  Operand::of(static_cast<int64_t>(1))};
  put(n, out, 0, run_operator(op, v, 5, &whole)[0]);
  return true;
}

// ---- products, with g and the operands as matrices
TensorPtr as_matrix(const TensorPtr &t) {
  if (!is_contiguous(t) || t->shape().empty()) return nullptr;
  const int64_t columns = t->shape().back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < t->shape().size(); ++d) rows *= t->shape()[d];
  return Geometry::contiguous({rows, columns}, offset_of(t)).on(t);
}
bool linear(OpNode &n, const TensorPtr &g, Tensors *out) {  // input, weight, bias
  if (!same_type(n, g) || is_complex(type_of(g)) || n.inputs[1].sizes.size() != 2 || g->shape().empty()) return false;
  TensorPtr gm = as_matrix(g), x = wants(n, 1) ? n.saved_tensor(0) : nullptr,
            w = wants(n, 0) ? n.saved_tensor(1) : nullptr;
  TensorPtr xm = x ? as_matrix(x) : nullptr;
  for (auto &t : {x, w})
    if (t && type_of(t) != type_of(g)) return false;
  if (!gm || (x && !xm)) return false;
  if (w) {
    TensorPtr dx = MSA_RUN("MatMul", Operand::of(gm), Operand::of(w), Operand::of(false), Operand::of(false));
    (*out)[n.inputs[0].edge] = Geometry::contiguous(n.inputs[0].sizes, offset_of(dx)).on(dx);
  }
  if (x) put(n, out, 1, MSA_RUN("MatMul", Operand::of(gm), Operand::of(xm), Operand::of(true), Operand::of(false)));
  if (n.inputs[2].edge >= 0 && wants(n, 2)) put(n, out, 2, g);
  return true;
}
bool bmm(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!same_type(n, g) || is_complex(type_of(g))) return false;
  if (wants(n, 0))
    put(n, out, 0,
        MSA_RUN("BatchMatMul", Operand::of(g), Operand::of(n.saved_tensor(1)), Operand::of(false), Operand::of(true)));
  if (wants(n, 1))
    put(n, out, 1,
        MSA_RUN("BatchMatMul", Operand::of(n.saved_tensor(0)), Operand::of(g), Operand::of(true), Operand::of(false)));
  return true;
}

// ---- rearrangements
bool permute(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  const Operand order = number(n, 1);
  const Geometry from = Geometry::of(g);
  if (order.kind != Arg::kInts || static_cast<int64_t>(order.ints.size()) != from.rank()) return false;
  Geometry back = from;
  for (int64_t i = 0; i < from.rank(); ++i) {
    int64_t d = order.ints[i];
    if (!wrap_dim(&d, from.rank())) return false;
    back.sizes[d] = from.sizes[i];
    back.strides[d] = from.strides[i];
  }
  (*out)[n.inputs[0].edge] = back.on(g);
  return true;
}
bool cat(OpNode &n, const TensorPtr &g, Tensors *out) {  // tensors, dim, lengths
  const Operand dim = number(n, 1), lengths = number(n, 2);
  Geometry part = Geometry::of(g);
  int64_t d = dim.scalar.i;
  if (lengths.kind != Arg::kInts || !wrap_dim(&d, part.rank())) return false;
  for (int64_t l : lengths.ints)
    if (l < 0) return false;
  for (size_t i = 0; i < lengths.ints.size(); ++i) {
    part.sizes[d] = lengths.ints[i];
    const size_t edge = n.inputs[0].edge + i;
    if (n.needs(edge)) (*out)[edge] = reduce_to(part.on(g), n.list_meta[i].first, n.list_meta[i].second);
    part.offset += lengths.ints[i] * part.strides[d];
  }
  return true;
}

bool cast(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 0)) put(n, out, 0, g);
  return true;
}

}  // namespace

const Table<NativeGradient> &native_gradients() {
  static const Table<NativeGradient> table = {
      {"add", add},
      {"sub", sub},
      {"mul", mul},
      {"true_divide", divide},
      {"neg", negative},
      {"mm", mm},
      {"view", reshaped},
      {"unsqueeze", reshaped},
      {"transpose", swapped},
      {"t", swapped},
      {"select", placed},
      {"_slice", placed},
      {"_region", placed},
      {"sum", sum},
      {"_to_dtype", cast},
      {"expand", cast},
      {"clone", cast},
      {"_contiguous_copy", cast},
      {"_unsafe_view", reshaped},
      {"squeeze", reshaped},
      {"permute", permute},
      {"mean", mean},
      {"_gelu", gelu},
      {"_silu", silu},
      {"relu", relu},
      {"tanh", tanh},
      {"sigmoid", sigmoid},
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"_layer_norm", layer_norm},
      {"_cross_entropy", cross_entropy},
      {"_embedding", embedding},
      {"index_select", index_select},
      {"nn.functional.linear", linear},
      {"bmm", bmm},
      {"_cat", cat},
  };
  return table;
}

}  // namespace msa
