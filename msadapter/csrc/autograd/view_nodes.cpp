// Gradients between a base and its views after in-place writes.
#include "graph.h"
#include "written_view.h"

namespace msa {

// Whether two elements may have the same address. The answer is true if it is not certain.
static bool may_overlap(const Dims &sizes, const Dims &strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t extent = 1;
  for (auto &d : dims) {
    if (d.first < extent) return true;
    extent = d.first * (d.second - 1) + extent;
  }
  return false;
}

// Sizes or strides as an argument of the table's functions.
static Ref list_of(const Dims &d) {
  Ref l = checked(PyList_New(d.size()));
  for (size_t i = 0; i < d.size(); ++i) PyList_SET_ITEM(l.get(), i, PyLong_FromLongLong(d[i]));
  return l;
}

static bool complex_valued(const TensorPtr &t) { return is_complex(from_ms(t->data_type())); }

static TensorPtr table_call(const char *function, const TensorPtr &g) {
  return unwrap(checked(PyObject_CallFunctionObjArgs(table_function(function), checked(wrap(g)).get(), nullptr)).get());
}

// The place of a view in its base. Sizes and strides count elements. They count real numbers if only one of the two
// tensors is complex.
struct Window {
  Dims sizes, strides, base_sizes, base_strides;
  int64_t offset;  // from the base's first element
  bool view_complex, base_complex, mixed;
  Window(const TensorPtr &view, const TensorPtr &base)
      : sizes(view->shape()),
        strides(strides_of(view)),
        base_sizes(base->shape()),
        base_strides(strides_of(base)),
        view_complex(complex_valued(view)),
        base_complex(complex_valued(base)),
        mixed(view_complex != base_complex) {
    int64_t at = offset_of(view), start = offset_of(base);
    if (mixed && view_complex) count_reals(&sizes, &strides), at *= 2;
    if (mixed && base_complex) count_reals(&base_sizes, &base_strides), start *= 2;
    offset = at - start;
  }
  // Returns a gradient in the units of these sizes and strides, and the reverse.
  TensorPtr in_units(const TensorPtr &g) const {
    return g && mixed && complex_valued(g) ? table_call("view_as_real", g) : g;
  }
  TensorPtr for_base(const TensorPtr &g) const { return mixed && base_complex ? table_call("view_as_complex", g) : g; }
  TensorPtr for_view(const TensorPtr &g) const { return mixed && view_complex ? table_call("view_as_complex", g) : g; }
  // Whether the window lies inside a dense base, so that memory with the layout of the base can be written directly.
  bool plain() const {
    if (mixed || !is_dense(base_sizes, base_strides) || offset < 0) return false;
    int64_t last = offset, n = 1;
    for (size_t d = 0; d < sizes.size(); ++d) last += sizes[d] > 0 ? (sizes[d] - 1) * strides[d] : 0;
    for (auto s : base_sizes) n *= s;
    return last < n;
  }
  // Calls an operator of the table, so that it is recorded and works for any base. `first` is a gradient, `second`
  // another one or null.
  TensorPtr call(const char *function, const TensorPtr &first, const TensorPtr &second = nullptr) const {
    Ref at = checked(PyLong_FromLongLong(offset));
    Ref other = second ? checked(wrap(in_units(second))) : Ref::borrow(Py_None);
    Ref r = checked(PyObject_CallFunctionObjArgs(table_function(function), checked(wrap(in_units(first))).get(),
                                                 other.get(), list_of(base_sizes).get(), list_of(base_strides).get(),
                                                 list_of(sizes).get(), list_of(strides).get(), at.get(), nullptr));
    return unwrap(r.get());
  }
};

// window += g, one element after the other, because elements of the window may share memory (expand, unfold).
static void add_overlapping(const Tensor &window, const Tensor &g) {
  int64_t index[kMaxDims] = {0};
  MSA_SWITCH_FLOAT_COMPLEX(window.dtype, "as_strided_backward", ({
                             for (int64_t i = 0; i < g.numel; ++i) {
                               int64_t a = 0, b = 0;
                               for (int d = 0; d < g.ndim; ++d) {
                                 a += index[d] * window.strides[d];
                                 b += index[d] * g.strides[d];
                               }
                               using C = compute_t<T>;
                               T &into = window.ptr<T>()[a];
                               into = convert<T>(convert<C>(into) + convert<C>(g.ptr<T>()[b]));
                               for (int d = g.ndim - 1; d >= 0 && ++index[d] == g.sizes[d]; --d) index[d] = 0;
                             }
                           }));
}

// The gradient of a base of which only a view was used: the values at the view's place, and zeros elsewhere.
class ViewOfBase final : public Node {
 public:
  ViewOfBase(const TensorPtr &view, const TensorPtr &base) : ViewOfBase(Window(view, base)) {}
  explicit ViewOfBase(const Window &at) : Node("AsStridedBackward0", 1), at_(at) {}
  bool single_use() const override { return false; }
  Tensors apply(const Tensors &grads) override {
    if (!grads[0]) return {nullptr};
    if (grad_enabled() || !at_.plain()) return {at_.for_base(at_.call("_window_to_base", grads[0]))};
    // The base is dense, so its gradient has the same strides. The view's sizes and strides are therefore valid for the
    // gradient too.
    const DType d = from_ms(grads[0]->data_type());
    int64_t n = 1;
    for (auto s : at_.base_sizes) n *= s;
    TensorPtr flat = new_tensor(d, {n});
    zero_tensor(flat);
    TensorPtr window = new_view(flat, d, at_.sizes, at_.strides, at_.offset);
    if (!may_overlap(at_.sizes, at_.strides)) {
      copy_tensor(window, grads[0]);
    } else if (on_cpu(window)) {
      add_overlapping(view_of(window), view_of(grads[0]));
    } else {
      throw NotImplementedError(
          "the gradient of a view whose elements overlap is not supported in device memory (docs/ascend.md)");
    }
    return {new_view(flat, d, at_.base_sizes, at_.base_strides, 0)};
  }

 private:
  Window at_;
};

// Two tensors may share memory if they are the same elements in the same order.
void check_overlap(const TensorPtr &written, const TensorPtr &read) {
  if (written->device_address() != read->device_address() || written->data_type() != read->data_type()) return;
  const Dims a = strides_of(written), b = strides_of(read);
  // PyTorch does not check such tensors further
  if (may_overlap(written->shape(), a) || may_overlap(read->shape(), b)) return;
  if (!is_dense(written->shape(), a) || !is_dense(read->shape(), b)) return;
  auto count = [](const TensorPtr &t) {
    int64_t n = 1;
    for (auto s : t->shape()) n *= s;
    return n;
  };
  const int64_t x = offset_of(written), y = offset_of(read), n = count(written), m = count(read);
  if (n == 0 || m == 0 || x + n <= y || y + m <= x || (x == y && n == m && a == b)) return;
  fail(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
      "location. Please clone() the tensor before performing the operation.");
}

// While the node of a write to a view runs, what it saved of its result is a view of what CopySlices gives.
struct WriterRuns {
  explicit WriterRuns(WrittenView view) : outer(std::exchange(written_view(), std::move(view))) {}
  ~WriterRuns() { written_view() = std::move(outer); }
  WrittenView outer;
};

// The node of a base after a write to a view of it. The gradient of the view's elements goes to `inner`, the node of
// the write. The gradient of all other elements goes on to the history of the base.
class CopySlices final : public Node {
 public:
  CopySlices(const TensorPtr &view, const TensorPtr &base, const NodePtr &inner)
      : Node("CopySlices", 1), inner_(inner), at_(view, base) {
    add_next_edge(edge_of(base));
    // Needed if the base's gradient is needed
    if (!inner->next_edges().empty()) inner->set_next_edge(Edge(next_edges_[0]), 0);
    for (size_t i = 1; i < inner->next_edges().size(); ++i) add_next_edge(inner->next_edges()[i]);
  }
  bool single_use() const override { return inner_ && inner_->single_use(); }
  void Release() override {
    if (inner_) inner_->Release();
  }
  Tensors apply(const Tensors &grads) override {
    Tensors r(next_edges_.size());
    if (!grads[0]) return r;
    // The first edge of inner is the written tensor itself, and its gradient stays in the window.
    for (size_t i = 1; i < inner_->next_edges().size(); ++i)
      if (!needs(i)) inner_->set_next_edge(Edge(), i);
    Tensors in;
    if (grad_enabled() || !at_.plain()) {
      const TensorPtr g = at_.for_view(at_.call("_base_to_window", grads[0]));
      WriterRuns runs(grad_enabled() ? WrittenView{inner_.get(), view_of_this(g)} : WrittenView{});
      in = inner_->apply({g});
      r[0] = at_.for_base(at_.call("_replace_window", grads[0], in.empty() ? nullptr : in[0]));
    } else {
      const DType d = from_ms(grads[0]->data_type());
      int64_t n = 1;
      for (auto s : at_.base_sizes) n *= s;
      TensorPtr flat = new_tensor(d, {n});
      TensorPtr whole = new_view(flat, d, at_.base_sizes, at_.base_strides, 0);
      copy_tensor(whole, grads[0]);
      TensorPtr window = new_view(flat, d, at_.sizes, at_.strides, at_.offset);
      TensorPtr g = new_tensor(d, at_.sizes);
      copy_tensor(g, window);
      in = inner_->apply({g});
      if (!in.empty() && in[0])
        copy_tensor(window, in[0]);
      else
        zero_tensor(window);
      r[0] = whole;
    }
    for (size_t i = 1; i < in.size() && i < r.size(); ++i) r[i] = in[i];
    return r;
  }

 private:
  NodePtr inner_;
  Window at_;

  // The history of the view after the write. `g` has the view's sizes and dtype.
  NodePtr view_of_this(const TensorPtr &g) {
    NodePtr node = Node::make<ViewOfBase>(at_);
    node->add_next_edge(Edge(shared_from_this(), 0));
    node->add_output_metadata(g);
    return node;
  }
};

NodePtr view_of_base(const TensorPtr &view, const TensorPtr &base) { return Node::make<ViewOfBase>(view, base); }
NodePtr copy_slices(const TensorPtr &view, const TensorPtr &base, const NodePtr &inner) {
  return Node::make<CopySlices>(view, base, inner);
}

}  // namespace msa
