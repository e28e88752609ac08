// libnnopbase: making and destroying the objects of the aclnn interface.
#include "objects.h"

#include <string.h>

#include "types.h"
#include "../runtime/status.h"

using namespace sim;

namespace {
std::vector<int64_t> RowMajor(const std::vector<int64_t> &shape) {
  std::vector<int64_t> stride(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= shape[i];
  }
  return stride;
}
}  // namespace

// ---- tensors
SIM_API aclTensor *aclCreateTensor(const int64_t *shape, uint64_t rank, int type, const int64_t *stride, int64_t offset,
                                   int format, const int64_t *storage, uint64_t storage_rank, void *data) {
  auto *tensor = new aclTensor;
  if (rank > 0) tensor->shape.assign(shape, shape + rank);
  tensor->stride = stride != nullptr ? std::vector<int64_t>(stride, stride + rank) : RowMajor(tensor->shape);
  if (storage != nullptr) tensor->storage.assign(storage, storage + storage_rank);
  tensor->offset = offset;
  tensor->type = type;
  tensor->format = format;
  tensor->data = data;
  return tensor;
}
SIM_API int aclDestroyTensor(const aclTensor *tensor) {
  delete tensor;
  return kOk;
}
// The caller frees the array with delete[], as with CANN.
SIM_API int aclGetViewShape(const aclTensor *tensor, int64_t **shape, uint64_t *rank) {
  *rank = tensor->shape.size();
  *shape = new int64_t[tensor->shape.size()];
  std::copy(tensor->shape.begin(), tensor->shape.end(), *shape);
  return kOk;
}
SIM_API int aclGetDataType(const aclTensor *tensor, int *type) {
  *type = tensor->type;
  return kOk;
}
SIM_API int aclGetFormat(const aclTensor *tensor, int *format) {
  *format = tensor->format;
  return kOk;
}
SIM_API size_t aclDataTypeSize(int type) {
  size_t size = 0;
  Guarded([&] { size = SizeOf(type); });
  return size;
}

// ---- scalars and arrays
SIM_API aclScalar *aclCreateScalar(void *value, int type) {
  auto *scalar = new aclScalar;
  scalar->type = type;
  if (Guarded([&] { memcpy(scalar->bytes, value, SizeOf(type)); }) == kOk) return scalar;
  delete scalar;
  return nullptr;
}
SIM_API int aclDestroyScalar(const aclScalar *scalar) {
  delete scalar;
  return kOk;
}
SIM_API aclIntArray *aclCreateIntArray(const int64_t *values, uint64_t count) {
  return new aclIntArray{{values, values + count}};
}
SIM_API int aclDestroyIntArray(const aclIntArray *array) {
  delete array;
  return kOk;
}
SIM_API aclFloatArray *aclCreateFloatArray(const float *values, uint64_t count) {
  return new aclFloatArray{{values, values + count}};
}
SIM_API int aclDestroyFloatArray(const aclFloatArray *array) {
  delete array;
  return kOk;
}
SIM_API aclBoolArray *aclCreateBoolArray(const bool *values, uint64_t count) {
  return new aclBoolArray{{values, values + count}};
}
SIM_API int aclDestroyBoolArray(const aclBoolArray *array) {
  delete array;
  return kOk;
}

// ---- lists own what they hold
SIM_API aclTensorList *aclCreateTensorList(const aclTensor *const *values, uint64_t count) {
  auto *list = new aclTensorList;
  for (uint64_t i = 0; i < count; ++i) list->values.push_back(const_cast<aclTensor *>(values[i]));
  return list;
}
SIM_API int aclDestroyTensorList(const aclTensorList *list) {
  if (list == nullptr) return kOk;
  for (auto *tensor : list->values) delete tensor;
  delete list;
  return kOk;
}
SIM_API aclScalarList *aclCreateScalarList(const aclScalar *const *values, uint64_t count) {
  auto *list = new aclScalarList;
  for (uint64_t i = 0; i < count; ++i) list->values.push_back(const_cast<aclScalar *>(values[i]));
  return list;
}
SIM_API int aclDestroyScalarList(const aclScalarList *list) {
  if (list == nullptr) return kOk;
  for (auto *scalar : list->values) delete scalar;
  delete list;
  return kOk;
}

// ---- executors
SIM_API int aclDestroyAclOpExecutor(aclOpExecutor *executor) {
  delete executor;
  return kOk;
}
SIM_API int aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
  executor->repeatable = true;
  return kOk;
}
SIM_API int aclSetTensorAddr(aclOpExecutor *executor, const size_t, aclTensor *tensor, void *address) {
  if (tensor == nullptr) return Report(kNullPointer, "aclSetTensorAddr was given no tensor");
  tensor->data = address;
  executor->moved = true;
  return kOk;
}
SIM_API int aclSetDynamicTensorAddr(aclOpExecutor *executor, const size_t, const size_t index, aclTensorList *list,
                                    void *address) {
  if (list == nullptr || index >= list->values.size()) return Report(kNullPointer, "the list has no such tensor");
  list->values[index]->data = address;
  executor->moved = true;
  return kOk;
}
