// Gradients of the hottest operators in C++. The Python formulas stay the definition: these give the same
// numbers with fewer steps, and only run when no graph of the gradient is asked for.
#include "internal.h"

namespace msa {

namespace {

TensorPtr run(const char *name, const Operator *&op, std::initializer_list<Operand> v) {
  if (!op) op = find_operator(name);
  return run_operator(op, v.begin(), static_cast<int>(v.size()))[0];
}
#define MSA_RUN(name, ...) ([&] { static const Operator *op = nullptr; return run(name, op, {__VA_ARGS__}); }())

DType type_of(const TensorPtr &t) { return from_ms(t->data_type()); }
TensorPtr fit(OpNode &n, int param, const TensorPtr &g) { return reduce_to(g, n.inputs[param].sizes, n.inputs[param].dtype); }
bool wants(OpNode &n, int param) { return n.inputs[param].edge >= 0 && n.needs(n.inputs[param].edge); }
void put(OpNode &n, Tensors *out, int param, const TensorPtr &g) { (*out)[n.inputs[param].edge] = fit(n, param, g); }

PyObject *plain(OpNode &n, int param) {
  for (auto &p : n.plain)
    if (p.first == param) return p.second.get();
  return nullptr;
}
bool is_one(PyObject *o) { return o && PyLong_CheckExact(o) && PyLong_AsLong(o) == 1; }

// The other factor of a product: a saved tensor of g's type, or the number the user wrote; none: not for us.
Operand factor(OpNode &n, int param, const TensorPtr &g) {
  if (TensorPtr t = n.saved_tensor(param)) return type_of(t) == type_of(g) && !is_complex(type_of(g)) ? Operand::of(t) : Operand();
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

// The gradient of a view that keeps every element: g in the input's shape.
bool reshaped(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  if (!is_contiguous(g)) return false;
  const Dims &sizes = n.inputs[0].sizes;
  Dims strides(sizes.size());
  int64_t step = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  (*out)[n.inputs[0].edge] = new_view(g, type_of(g), sizes, strides, offset_of(g));
  return true;
}

bool swapped(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  const int64_t nd = static_cast<int64_t>(g->shape().size());
  int64_t a = 0, b = 1;
  if (n.op->params.size() == 3) {
    PyObject *pa = plain(n, 1), *pb = plain(n, 2);
    if (!pa || !pb) return false;
    a = PyLong_AsLongLong(pa);
    b = PyLong_AsLongLong(pb);
    a += a < 0 ? nd : 0;
    b += b < 0 ? nd : 0;
  } else if (nd != 2) {
    return false;
  }
  if (nd == 0) return false;
  Dims sizes = g->shape(), strides = strides_of(g);
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  (*out)[n.inputs[0].edge] = new_view(g, type_of(g), sizes, strides, offset_of(g));
  return true;
}

// The gradient of a view of a part: zeros in which the same view holds g.
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
  if (!n.op->native_body(v.data(), &part)) return false;
  copy_into(view_of(part[0]), view_of(g));
  (*out)[n.inputs[0].edge] = whole;
  return true;
}

// Gradient of a sum over everything: the scalar seen as the whole shape.
bool sum(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (!wants(n, 0)) return true;
  if (!g->shape().empty() || n.inputs[0].dtype != type_of(g)) return false;
  const Dims &sizes = n.inputs[0].sizes;
  (*out)[n.inputs[0].edge] = new_view(g, type_of(g), sizes, Dims(sizes.size(), 0), offset_of(g));
  return true;
}

bool cast(OpNode &n, const TensorPtr &g, Tensors *out) {
  if (wants(n, 0)) put(n, out, 0, g);
  return true;
}

}  // namespace

NativeGradient native_gradient(const std::string &name) {
  static const std::unordered_map<std::string, NativeGradient> table = {
      {"add", add}, {"sub", sub}, {"mul", mul}, {"true_divide", divide}, {"neg", negative}, {"mm", mm}, {"view", reshaped},
      {"unsqueeze", reshaped}, {"transpose", swapped}, {"t", swapped}, {"select", placed}, {"_slice", placed}, {"_region", placed}, {"sum", sum}, {"_to_dtype", cast}, {"expand", cast}};
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace msa
