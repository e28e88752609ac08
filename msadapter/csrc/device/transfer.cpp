#include "transfer.h"

#include "ascend_limits.h"
#include "geometry.h"

namespace msa {

namespace {

// A dense tensor that has the strides of t if those are dense, on the device of the scope.
TensorPtr empty_like(const TensorPtr &t, DType dtype) {
  const Tensor g = geometry_of(t);
  return new_tensor(dtype, g.sizes, g.ndim, is_dense(t->shape(), strides_of(t)) ? g.strides : nullptr);
}

// The bytes from the first to behind the last element of a dense tensor.
size_t dense_bytes(const TensorPtr &t) {
  const Tensor g = geometry_of(t);
  return static_cast<size_t>(g.numel) * item_size(g.dtype);
}

bool is_dense_block(const TensorPtr &t) { return is_dense(t->shape(), strides_of(t)); }

TensorPtr dense_block(const TensorPtr &t) {
  return is_dense_block(t) ? t : call_on_accelerator("Contiguous", {Operand::of(t)});
}

// Copies without waiting to a pinned tensor that has the layout of the other one's values. False if it has another one.
bool copied_to_pinned(const TensorPtr &to, const TensorPtr &from) {
  if (!is_pinned(to) || to->data_type() != from->data_type() || to->shape() != from->shape()) return false;
  const TensorPtr block = dense_block(from);
  if (strides_of(block) != strides_of(to)) return false;
  if (dense_bytes(to)) accelerator()->to_host_later(view_of(to).data, data_pointer(block), dense_bytes(to));
  return true;
}

// Complex numbers as pairs of real ones
TensorPtr real_view(const TensorPtr &t) {
  Dims sizes = t->shape(), strides = strides_of(t);
  count_reals(&sizes, &strides);
  const DType real = from_ms(t->data_type()) == DType::C128 ? DType::F64 : DType::F32;
  return new_view(t, real, sizes, strides, 2 * offset_of(t));
}

// Copies between two tensors on the accelerator.
void copy_on_accelerator(const TensorPtr &to, const TensorPtr &from) {
  // CANN copies complex numbers only into dense tensors, and the real numbers that they consist of into any.
  const bool pairs = to->data_type() == from->data_type() && is_complex(from_ms(to->data_type()));
  const Operand args[] = {Operand::of(pairs ? real_view(to) : to), Operand::of(pairs ? real_view(from) : from),
                          Operand::of(false)};
  static const Operator *copy = find_operator("InplaceCopy");
  if (const char *reason = why_not_on_npu(*copy, args, 3)) {
    note_host_call(copy->name, reason);
    const TensorPtr values = on_host(from);
    DeviceScope host(0);
    const TensorPtr converted = empty_like(values, from_ms(to->data_type()));
    copy_into(view_of(converted), view_of(values));
    return copy_on_accelerator(to, copy_to_device(converted, device_tag(to)));
  }
  call_on_accelerator(copy, args, 3);
}

void copy_between_devices(const TensorPtr &to, const TensorPtr &from, bool later) {
  if (on_cpu(to)) {
    if (later && copied_to_pinned(to, from)) return;
    const TensorPtr values = on_host(from);
    copy_into(view_of(to), view_of(values));
    return;
  }
  // MindSpore's copy converts and broadcasts, so only the bytes have to be on the device.
  copy_on_accelerator(to, on_cpu(from) ? copy_to_device(from, device_tag(to), later) : from);
}

}  // namespace

TensorPtr on_host(const TensorPtr &t) {
  if (on_cpu(t)) return t;
  const TensorPtr block = dense_block(t);
  DeviceScope scope(0);
  const TensorPtr r = empty_like(block, from_ms(t->data_type()));
  if (dense_bytes(r)) accelerator()->to_host(view_of(r).data, data_pointer(block), dense_bytes(r));
  return r;
}

static void check_this_device(int tag) {
  if (tag != accelerator_tag())
    throw NotImplementedError(
        text("a tensor on npu:", tag - 1,
             ": MindSpore drives one NPU in a process, and this one uses npu:", accelerator_tag() - 1,
             ". Call torch.npu.set_device before the first tensor is created "
             "(docs/ascend.md)"));
}

// A tensor in pinned memory, with the layout of empty_like.
static TensorPtr pinned_like(const TensorPtr &t) {
  const DType dtype = from_ms(t->data_type());
  const size_t bytes = dense_bytes(t);
  const auto memory = accelerator()->allocate_pinned(bytes);
  DeviceScope scope(0);
  const TensorPtr flat = tensor_on(memory.get(), bytes, dtype, {static_cast<int64_t>(geometry_of(t).numel)}, memory);
  const TensorPtr model = empty_like(t, dtype);
  return new_view(flat, dtype, model->shape(), strides_of(model), 0);
}

TensorPtr pinned_copy(const TensorPtr &t) {
  if (!on_cpu(t)) fail("cannot pin '", dtype_name(from_ms(t->data_type())), "': only dense CPU tensors can be pinned");
  if (!has_accelerator() || is_pinned(t)) return t;
  const TensorPtr r = pinned_like(t);
  copy_into(view_of(r), view_of(t));
  return r;
}

bool is_pinned(const TensorPtr &t) {
  return has_accelerator() && on_cpu(t) && !is_meta(t) && accelerator()->is_pinned(view_of(t).data);
}

TensorPtr copy_to_device(const TensorPtr &t, int tag, bool later) {
  if (has_accelerator() && tag != 0 && tag != kMetaTag) check_this_device(tag);
  const DType dtype = from_ms(t->data_type());
  if (!has_accelerator() || tag == 0 || !on_cpu(t)) {
    DeviceScope scope(tag);
    TensorPtr r = later && tag == 0 && !on_cpu(t) ? pinned_like(t) : empty_like(t, dtype);
    copy_tensor(r, t, later);
    return r;
  }
  TensorPtr block = t;
  if (!is_dense_block(t)) {
    DeviceScope scope(0);
    block = empty_like(t, dtype);
    copy_into(view_of(block), view_of(t));
  }
  DeviceScope scope(tag);
  TensorPtr r = empty_like(block, dtype);
  if (!dense_bytes(r)) return r;
  if (later && is_pinned(block))
    accelerator()->from_host_later(data_pointer(r), view_of(block).data, dense_bytes(r));
  else
    accelerator()->from_host(data_pointer(r), view_of(block).data, dense_bytes(r));
  return r;
}

void copy_tensor(const TensorPtr &to, const TensorPtr &from, bool later) {
  if (on_cpu(to) && on_cpu(from))
    copy_into(view_of(to), view_of(from));
  else if (element_count(to->shape()) > 0)  // MindSpore refuses an empty tensor whose strides are 0
    copy_between_devices(to, from, later);
}

void zero_tensor(const TensorPtr &t) {
  if (on_cpu(t))
    fill_zero(view_of(t));
  else if (element_count(t->shape()) > 0)
    call_on_accelerator("InplaceZero", {Operand::of(is_complex(from_ms(t->data_type())) ? real_view(t) : t)});
}

}  // namespace msa
