// The graph node of an operator's call, and the reduction of its gradients to the shapes of the inputs.
#include <optional>

#include "../autograd/below.h"
#include "../device/geometry.h"
#include "internal.h"

namespace msa {

// ---------------------------------------------------------------- small helpers
TensorPtr reduce_to(const TensorPtr &g, const Dims &sizes, DType dtype) {
  TensorPtr r = g;
  const bool by_table = (grad_enabled() && requires_grad(g)) || answered_in_python(g);
  const Dims &have = g->shape();
  if (have != sizes) {
    const int extra = static_cast<int>(have.size()) - static_cast<int>(sizes.size());
    Dims dims;
    for (int d = 0; d < static_cast<int>(have.size()); ++d)
      if (d < extra || (sizes[d - extra] == 1 && have[d] != 1)) dims.push_back(d);
    check(extra >= 0, "gradient of shape ", have, " cannot be reduced to ", sizes);
    if (!dims.empty()) {
      if (by_table) {
        Ref d = checked(PyTuple_New(dims.size()));
        for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(d.get(), i, PyLong_FromLongLong(dims[i]));
        r = unwrap(checked(PyObject_CallFunctionObjArgs(table_function("sum"), checked(wrap(r)).get(), d.get(), Py_True,
                                                        nullptr))
                       .get());
      } else {
        r = run1("SumExt", {Operand::of(r), Operand::of(dims), Operand::of(true), Operand()});
      }
    }
    if (r->shape() != sizes) {
      if (by_table) {
        Ref s = checked(PyTuple_New(sizes.size()));
        for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(s.get(), i, PyLong_FromLongLong(sizes[i]));
        r = unwrap(
            checked(PyObject_CallFunctionObjArgs(table_function("reshape"), checked(wrap(r)).get(), s.get(), nullptr))
                .get());
      } else {
        int64_t n = 1, m = 1;
        for (auto s : sizes) n *= s;
        for (auto s : r->shape()) m *= s;
        check(n == m, "gradient of shape ", r->shape(), " does not fit ", sizes);
        TensorPtr base = is_contiguous(r) ? r : run1("Clone", {Operand::of(r)});
        r = Geometry::contiguous(sizes, offset_of(base)).on(base);
      }
    }
  }
  if (from_ms(r->data_type()) != dtype) {
    if (by_table) {
      if (is_complex(from_ms(r->data_type())) && !is_complex(dtype))  // on purpose, so without a warning
        r = unwrap(
            checked(PyObject_CallFunctionObjArgs(table_function("real"), checked(wrap(r)).get(), nullptr)).get());
      r = unwrap(checked(PyObject_CallFunctionObjArgs(table_function("_to_dtype"), checked(wrap(r)).get(),
                                                      dtype_object(dtype), nullptr))
                     .get());
    } else {
      TensorPtr c = new_tensor(dtype, sizes);
      copy_tensor(c, r);
      r = c;
    }
  }
  return r;
}

// The gradient on the device of the operand that it belongs to.
static TensorPtr moved_to(const TensorPtr &g, int tag) {
  if (!has_accelerator() || device_tag(g) == tag || is_meta(g)) return g;
  if (!grad_enabled() || !requires_grad(g)) return copy_to_device(g, tag);
  return unwrap(checked(PyObject_CallFunction(table_function("_to_device"), "Ni", wrap(g), tag)).get());
}

// ---------------------------------------------------------------- recorded node
void OpNode::Release() {
  for (auto &s : saved) s.second.reset();
  for (auto &l : saved_lists)
    for (auto &s : l.second) s.reset();
  for (auto &s : results) s.reset();
  released = true;
}

TensorPtr OpNode::unpacked(const SavedTensor &saved) {
  if (!saved.has_hooks()) return saved.unpack(this);
  for (auto &u : unpacked_)
    if (u.first == &saved) return u.second;
  unpacked_.emplace_back(&saved, saved.unpack(this));
  return unpacked_.back().second;
}

TensorPtr OpNode::saved_tensor(int param) {
  for (auto &s : saved)
    if (s.first == param) return unpacked(s.second);
  return nullptr;
}

Ref result_of_none() { return Ref::borrow(Py_None); }
Ref python_tensor(const TensorPtr &t) { return t ? checked(wrap(t)) : result_of_none(); }

// Where no graph is recorded, formulas call kernels themselves, which need memory. A tensor of a __torch_dispatch__ may
// have none, so its gradients are computed as for a graph: with operators of the table alone.
class TableFormulas {
 public:
  explicit TableFormulas(bool wanted) : before_(python_dispatch().formulas) {
    if (!wanted || grad_enabled()) return;
    python_dispatch().formulas = true;
    mode_.emplace(true);
  }
  ~TableFormulas() {
    if (on()) python_dispatch().formulas = before_;
  }
  bool on() const { return mode_.has_value(); }

 private:
  const bool before_;
  std::optional<GradMode> mode_;
};

Tensors OpNode::apply(const Tensors &grads) {
  struct Clear {
    std::vector<std::pair<const SavedTensor *, TensorPtr>> *list;
    ~Clear() { list->clear(); }
  } clear{&unpacked_};
  TableFormulas formulas(in_python);
  Tensors found = compute(grads);
  if (formulas.on())
    for (auto &g : found)
      if (g && requires_grad(g)) g = without_history(g);
  return found;
}

Tensors OpNode::compute(const Tensors &grads) {
  Tensors out(next_edges_.size());
  // The gradients of further outputs are usually null, because these outputs only serve the backward
  bool first_only = grads[0] != nullptr;
  for (size_t i = 1; i < grads.size(); ++i) first_only = first_only && !grads[i];
  if (op->native && first_only && !in_python && !answered_in_python(grads[0]) && !grad_enabled() && fast_path() &&
      on_cpu(grads[0]) && !is_meta(grads[0]) && op->native(*this, grads[0], &out))
    return out;
  std::unordered_map<int, Ref> cache;
  auto value_of = [&](const Need &n, const Formula &f) -> Ref {
    if (n.kind == Need::kResult) return python_tensor(saved_result(n.index));
    if (n.kind == Need::kNeeds) {
      Ref l = checked(PyList_New(f.params.size()));
      for (size_t i = 0; i < f.params.size(); ++i) {
        const Input &in = inputs[f.params[i]];
        PyObject *b = in.edge >= 0 && needs(in.edge) ? Py_True : Py_False;
        Py_INCREF(b);
        PyList_SET_ITEM(l.get(), i, b);
      }
      return l;
    }
    auto hit = cache.find(n.index);
    if (hit != cache.end()) return hit->second;
    Ref r;
    if (TensorPtr tensor = saved_tensor(n.index)) r = python_tensor(tensor);
    for (auto &l : saved_lists)
      if (l.first == n.index) {
        r = checked(PyList_New(l.second.size()));
        for (size_t i = 0; i < l.second.size(); ++i)
          PyList_SET_ITEM(r.get(), i, python_tensor(unpacked(l.second[i])).release());
      }
    for (auto &p : plain)
      if (p.first == n.index) r = p.second;
    for (auto &p : shapes)
      if (p.first == n.index) r = python_tensor(p.second);
    if (!r) r = result_of_none();
    cache[n.index] = r;
    return r;
  };
  Ref g;
  if (output_size_ == 1 && !op->result_type)
    g = python_tensor(grads[0]);
  else {
    g = checked(PyList_New(grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) PyList_SET_ITEM(g.get(), i, python_tensor(grads[i]).release());
  }
  auto put = [&](int param, PyObject *value) {
    const Input &in = inputs[param];
    if (in.edge < 0 || value == Py_None) return;
    if (op->params[param].type == ParamType::kTensors) {
      Ref seq = checked(PySequence_Fast(value, "gradient of a list of tensors must be a list"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()) && i < in.count; ++i) {
        PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
        if (e == Py_None || !needs(in.edge + i)) continue;
        out[in.edge + i] = reduce_to(unwrap(e), list_meta[i].first, list_meta[i].second);
      }
      return;
    }
    if (!is_tensor(value)) {
      PyErr_Format(PyExc_TypeError, "gradient of %s for '%U' must be a Tensor, not %s", op->name.c_str(),
                   op->params[param].name, Py_TYPE(value)->tp_name);
      throw PythonError{};
    }
    out[in.edge] = moved_to(reduce_to(unwrap(value), in.sizes, in.dtype), in.tag);
  };
  for (const Formula &f : op->formulas) {
    bool wanted = false;
    for (int p : f.params) {
      const Input &in = inputs[p];
      for (int e = 0; in.edge >= 0 && e < in.count; ++e) wanted = wanted || needs(in.edge + e);
    }
    if (!wanted) continue;
    std::vector<Ref> hold;
    PyObject *argv[1 + kMaxNeeds];  // make_op refuses formulas with more
    size_t n = 0;
    argv[n++] = g.get();
    for (auto &need : f.needs) {
      hold.push_back(value_of(need, f));
      argv[n++] = hold.back().get();
    }
    Ref r;
    {
      OwnCodeScope scope(scope_tag());
      r = checked(PyObject_Vectorcall(f.function, argv, n, nullptr));
    }
    if (f.joint && is_tensor(r.get())) {
      put(f.params[0], r.get());  // the function returned one gradient, so the other parameters get none
    } else if (f.joint) {
      Ref seq = checked(PySequence_Fast(r.get(), "a joint gradient must return a tuple"));
      for (size_t i = 0; i < f.params.size() && static_cast<Py_ssize_t>(i) < PySequence_Fast_GET_SIZE(seq.get()); ++i)
        put(f.params[i], PySequence_Fast_GET_ITEM(seq.get(), i));
    } else {
      put(f.params[0], r.get());
    }
  }
  return out;
}

}  // namespace msa
