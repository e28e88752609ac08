// Gradients of the hottest operators in C++. The Python formulas stay the definition: these give the same
// numbers with fewer steps, and only run when no graph of the gradient is asked for.
#include "../dispatch/op.h"

namespace msa {

namespace {

const Operator *operator_named(const char *name) { return find_operator(name); }

TensorPtr mul(const TensorPtr &a, const TensorPtr &b) {
  static const Operator *op = operator_named("Mul");
  Operand v[2] = {Operand::of(a), Operand::of(b)};
  if (a->data_type() != b->data_type()) {
    const DType d = promote_types(from_ms(a->data_type()), from_ms(b->data_type()));
    for (auto &o : v)
      if (from_ms(o.tensor->data_type()) != d) {
        TensorPtr c = new_tensor(d, o.tensor->shape());
        copy_into(view_of(c), view_of(o.tensor));
        o.tensor = c;
      }
  }
  return run_operator(op, v, 2)[0];
}

TensorPtr fit(OpNode &n, int param, const TensorPtr &g) { return reduce_to(g, n.inputs[param].sizes, n.inputs[param].dtype); }
bool wants(OpNode &n, int param) { return n.inputs[param].edge >= 0 && n.needs(n.inputs[param].edge); }
TensorPtr &slot(OpNode &n, Tensors &out, int param) { return out[n.inputs[param].edge]; }
bool any_complex(const TensorPtr &t) { return t && is_complex(from_ms(t->data_type())); }

// The other factor: a saved tensor, or the Python number the user wrote.
TensorPtr factor(OpNode &n, int param, const TensorPtr &like) {
  if (TensorPtr t = n.saved_tensor(param)) return t;
  for (auto &p : n.plain)
    if (p.first == param) {
      TensorPtr t = new_tensor(from_ms(like->data_type()), Dims{});
      const double v = PyFloat_AsDouble(p.second.get());
      if (v == -1.0 && PyErr_Occurred()) throw PythonError{};
      Tensor x = view_of(t);
      MSA_SWITCH_REAL(x.dtype, "mul", (*x.ptr<T>() = convert<T>(v)));
      return t;
    }
  return nullptr;
}

Tensors add_backward(OpNode &n, const TensorPtr &g) {
  Tensors out(n.next_edges().size());
  for (int p = 0; p < 2; ++p)
    if (wants(n, p)) slot(n, out, p) = fit(n, p, g);
  return out;
}

Tensors mul_backward(OpNode &n, const TensorPtr &g) {
  Tensors out(n.next_edges().size());
  if (wants(n, 0)) slot(n, out, 0) = fit(n, 0, mul(g, factor(n, 1, g)));
  if (wants(n, 1)) slot(n, out, 1) = fit(n, 1, mul(g, factor(n, 0, g)));
  return out;
}

// Complex operands keep the Python formula (conjugates).
template <NativeGradient F> Tensors real_only(OpNode &n, const TensorPtr &g) { return F(n, g); }

TensorPtr transposed(const TensorPtr &t) {
  Dims sizes = t->shape(), strides = strides_of(t);
  std::swap(sizes[0], sizes[1]);
  std::swap(strides[0], strides[1]);
  return new_view(t, from_ms(t->data_type()), sizes, strides, offset_of(t));
}
TensorPtr mm(const TensorPtr &a, const TensorPtr &b) {
  static const Operator *op = operator_named("Mm");
  Operand v[2] = {Operand::of(a), Operand::of(b)};
  return run_operator(op, v, 2)[0];
}
Tensors mm_backward(OpNode &n, const TensorPtr &g) {
  Tensors out(n.next_edges().size());
  if (wants(n, 0)) slot(n, out, 0) = mm(g, transposed(n.saved_tensor(1)));
  if (wants(n, 1)) slot(n, out, 1) = mm(transposed(n.saved_tensor(0)), g);
  return out;
}

}  // namespace

NativeGradient native_gradient(const std::string &name) {
  static const std::unordered_map<std::string, NativeGradient> table = {
      {"mm", mm_backward}};
  (void)any_complex;
  (void)add_backward;
  (void)mul_backward;
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace msa
