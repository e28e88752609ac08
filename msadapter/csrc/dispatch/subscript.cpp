// tensor[numbers, slices, None, ...] as one recorded view, without Python code. All other indices are left to the
// Python functions, which raise PyTorch's errors.
#include "../device/geometry.h"
#include "../device/trace.h"
#include "internal.h"

namespace msa {
namespace {

bool number(PyObject *o, int64_t *value) { return PyLong_CheckExact(o) && integer_fits(o, value); }
bool bound(PyObject *o, int64_t fallback, int64_t *value) {
  if (o != Py_None) return number(o, value);
  *value = fallback;
  return true;
}

// Collects the items of an index as `_region` takes them (RegionItem); false for an index that is not plain.
class Region {
 public:
  explicit Region(const Dims &shape) : shape_(shape) {}
  bool add(PyObject *item, int64_t skipped) {
    if (item == Py_None) return put({RegionItem::kNewDim, 0, 0, 0});
    if (item == Py_Ellipsis) {
      for (; skipped > 0; --skipped)
        if (!whole()) return false;
      return true;
    }
    if (dim_ >= shape_.size()) return false;
    const int64_t size = shape_[dim_];
    if (PySlice_Check(item)) {
      auto *s = reinterpret_cast<PySliceObject *>(item);
      int64_t start, stop, step;
      if (!bound(s->step, 1, &step) || !bound(s->start, 0, &start) || !bound(s->stop, size, &stop) || step <= 0)
        return false;
      start = start < 0 ? std::max<int64_t>(start + size, 0) : std::min(start, size);
      stop = stop < 0 ? std::max<int64_t>(stop + size, 0) : std::min(stop, size);
      ++dim_;
      return put({RegionItem::kSlice, start, step, slice_length(start, stop, step)});
    }
    int64_t i;
    if (!number(item, &i) || i < -size || i >= size) return false;
    ++dim_;
    return put({RegionItem::kSelect, i < 0 ? i + size : i, 0, 0});
  }
  Dims spec;

 private:
  bool whole() {
    if (dim_ >= shape_.size()) return false;
    const int64_t size = shape_[dim_++];
    return put({RegionItem::kSlice, 0, 1, size});
  }
  bool put(const RegionItem &item) {
    spec.insert(spec.end(), {item.kind, item.start, item.step, item.length});
    return true;
  }
  const Dims &shape_;
  size_t dim_ = 0;
};

bool plain_region(const Dims &shape, PyObject *index, Dims *spec) {
  Region region(shape);
  if (!PyTuple_CheckExact(index)) {
    if (index == Py_Ellipsis || !region.add(index, 0)) return false;
  } else {
    const Py_ssize_t n = PyTuple_GET_SIZE(index);
    int64_t used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject *o = PyTuple_GET_ITEM(index, i);
      if (o == Py_Ellipsis)
        ++ellipses;
      else if (o != Py_None)
        ++used;
    }
    if (ellipses > 1) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!region.add(PyTuple_GET_ITEM(index, i), static_cast<int64_t>(shape.size()) - used)) return false;
  }
  *spec = std::move(region.spec);
  return true;
}

}  // namespace

// Returns the view for a plain index, or null without an error if the Python function must handle it.
PyObject *plain_subscript(PyObject *tensor, PyObject *index) {
  static Op *op = op_named("_region");
  static PyObject *name = PyUnicode_InternFromString("spec");
  const TensorPtr t = unwrap(tensor);
  Operands v(2);
  if (!plain_region(t->shape(), index, &v[1].ints)) return nullptr;
  v[0] = Operand::of(t);
  v[1].kind = Arg::kInts;
  TraceScope trace;
  if (tracing) trace.begin("aten::", "__getitem__", "cpu_op", &tensor, 1);
  PyObject *slots[2] = {tensor, name};  // the second slot is not used, because its value is in the operand
  return run_functional(*op, v.data(), slots).release();
}

}  // namespace msa
