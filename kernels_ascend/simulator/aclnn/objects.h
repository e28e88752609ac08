// The objects behind the opaque handles of the aclnn interface (aclnn_base.h).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// `shape`, `stride` and `offset` count elements. `data` is the address of the storage, not of the first element.
struct aclTensor {
  std::vector<int64_t> shape, stride, storage;
  int64_t offset = 0;
  int type = 0;
  int format = 2;
  void *data = nullptr;
};
struct aclScalar {
  int type = 0;
  unsigned char bytes[16] = {};
};
struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclFloatArray {
  std::vector<float> values;
};
struct aclBoolArray {
  std::vector<uint8_t> values;
};
struct aclTensorList {
  std::vector<aclTensor *> values;
};
struct aclScalarList {
  std::vector<aclScalar *> values;
};

// What a call of aclnnXGetWorkspaceSize leaves for aclnnX: the checked arguments and the task that computes.
struct aclOpExecutor {
  const char *name = "";
  std::function<std::function<void()>()> prepare;  // binds the arguments and checks them
  std::function<void()> task;
  bool repeatable = false;  // it may run several times, and outlives a run
  bool moved = false;       // the address of a tensor was changed since the task was made
};
