// The class and the attributes of Python objects, kept with their C++ tensors.
#include "python_objects.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace msa {

namespace {

constexpr auto kKey = "msadapter_object";
std::atomic<bool> any_kept{false};

struct Kept {
  Ref type, attributes, object;  // the last one is a weak reference
};

// What a thread without the interpreter's lock was the last to own. It is dropped when the next object is kept.
std::mutex late_lock;
std::vector<Kept *> late;

void drop(Kept *kept) {
  if (!Py_IsInitialized()) return;  // Python has ended, and with it its objects
  if (PyGILState_Check()) {
    delete kept;
    return;
  }
  std::lock_guard<std::mutex> guard(late_lock);
  late.push_back(kept);
}

void drop_late() {
  std::vector<Kept *> dropped;
  {
    std::lock_guard<std::mutex> guard(late_lock);
    dropped.swap(late);
  }
  for (Kept *kept : dropped) delete kept;
}

std::shared_ptr<Kept> kept_of(const TensorPtr &t) {
  if (!t || !any_kept.load(std::memory_order_relaxed)) return nullptr;
  return t->user_data<Kept>(kKey);
}

}  // namespace

void keep_object(const TensorPtr &t, PyObject *o) {
  drop_late();
  auto kept = kept_of(t);
  if (kept && PyWeakref_GetObject(kept->object.get()) == o) return;
  any_kept.store(true, std::memory_order_relaxed);
  kept = std::shared_ptr<Kept>(new Kept, drop);
  kept->type = Ref::borrow(reinterpret_cast<PyObject *>(Py_TYPE(o)));
  kept->attributes = checked(PyObject_GenericGetDict(o, nullptr));
  kept->object = checked(PyWeakref_NewRef(o, nullptr));
  t->set_user_data<Kept>(kKey, kept);
}

bool has_object(const TensorPtr &t) { return kept_of(t) != nullptr; }

PyObject *kept_object(const TensorPtr &t) {
  const auto kept = kept_of(t);
  if (!kept) return nullptr;
  PyObject *o = PyWeakref_GetObject(kept->object.get());
  if (o != Py_None) {
    Py_INCREF(o);
    return o;
  }
  using Object = mindspore::tensor::PyType<mindspore::tensor::TensorPy>;
  auto *type = reinterpret_cast<PyTypeObject *>(kept->type.get());
  Ref made = checked(type->tp_alloc(type, 0));
  auto *value = &reinterpret_cast<Object *>(made.get())->value;
  new (value) mindspore::tensor::TensorPy(t);
  value->SetInitFinished(true);
  if (PyObject_GenericSetDict(made.get(), kept->attributes.get(), nullptr) < 0) throw PythonError{};
  kept->object = checked(PyWeakref_NewRef(made.get(), nullptr));
  return made.release();
}

int visit_object(const TensorPtr &t, visitproc visit, void *arg) {
  const auto kept = kept_of(t);
  if (!kept) return 0;
  Py_VISIT(kept->attributes.get());
  return 0;
}

}  // namespace msa
