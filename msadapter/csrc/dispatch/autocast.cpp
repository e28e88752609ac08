// torch.autocast. It casts the floating point operands of a call to the precision that the declaration of the operator
// names.
#include "internal.h"

namespace msa {

AutocastState &autocast_state() {
  thread_local AutocastState s;
  return s;
}

namespace {

bool castable(const TensorPtr &t) {
  if (!t) return false;
  const DType d = from_ms(t->data_type());
  return d == DType::F32 || d == DType::F16 || d == DType::BF16;
}

AutocastDevice device_of(const TensorPtr &t) { return on_cpu(t) && device_tag(t) == 0 ? kHost : kAccelerator; }

template <class F>
void for_tensors(const Op &op, Operand *v, F f) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor) f(v[i].tensor);
    for (auto &t : v[i].tensors)
      if (t) f(t);
  }
}

// Returns the kind of device whose autocast settings apply to a call, or kAutocastDevices if none does. If the operands
// are on both kinds, it is the accelerator. Meta tensors may stand for tensors of either kind.
int deciding_device(const Op &op, Operand *v) {
  const AutocastState &s = autocast_state();
  bool present[kAutocastDevices] = {false, false};
  for_tensors(op, v, [&](TensorPtr &t) {
    if (is_meta(t))
      present[kHost] = present[kAccelerator] = true;
    else
      present[device_of(t)] = true;
  });
  for (int device : {kAccelerator, kHost})
    if (present[device] && s.devices[device].enabled) return device;
  return kAutocastDevices;
}

DType target_of(const Op &op, Operand *v, int device) {
  const Cast policy = op.autocast[device];
  DType target = policy == Cast::kFloat32 ? DType::F32 : autocast_state().devices[device].dtype;
  if (policy == Cast::kWidest)
    for_tensors(op, v, [&](TensorPtr &t) {
      if (from_ms(t->data_type()) == DType::F32) target = DType::F32;
    });
  return target;
}

}  // namespace

bool apply_autocast(const Op &op, Operand *v, PyObject **slots, std::vector<Ref> *hold) {
  const int device = deciding_device(op, v);
  if (device == kAutocastDevices || op.autocast[device] == Cast::kNone) return false;
  if (op.autocast[device] == Cast::kRefused) fail(op.autocast_refusal);
  if (op.autocast[device] == Cast::kAsGiven) return true;
  const DType target = target_of(op, v, device);
  auto cast = [&](TensorPtr &t, PyObject *object) {
    if (!castable(t) || from_ms(t->data_type()) == target || (!is_meta(t) && device_of(t) != device)) return false;
    // The object that the caller passed is used if there is one, because the cast of a leaf is stored with this object.
    Ref given = object && is_tensor(object) && unwrap(object) == t ? Ref::borrow(object) : checked(wrap(t));
    Ref r = checked(
        PyObject_CallFunctionObjArgs(table_function("_autocast_cast"), given.get(), dtype_object(target), nullptr));
    t = unwrap(r.get());
    hold->push_back(r);
    return true;
  };
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor && cast(v[i].tensor, slots[i])) slots[i] = hold->back().get();
    for (auto &t : v[i].tensors) cast(t, nullptr);
  }
  return true;
}

}  // namespace msa
