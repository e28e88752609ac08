// libascendcl: start and end, devices, contexts, and what a start of a device asks for besides.
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "counters.h"
#include "settings.h"
#include "status.h"
#include "stream.h"

using namespace sim;

namespace {
constexpr int kHostMode = 1;     // ACL_HOST: the program runs on the host
constexpr uint32_t kCores = 24;  // AI cores of an Ascend910B2
constexpr const char *kVersion = "8.5.0";
struct Context {
  int device;
};
thread_local Context *t_context = nullptr;

Context *ContextOf(int device) {
  static Context *all = [] {
    auto *contexts = new Context[64];
    for (int i = 0; i < 64; ++i) contexts[i].device = i;
    return contexts;
  }();
  return &all[device];
}
}  // namespace

// ---- start and end
SIM_API int aclInit(const char *) {
  Log(1, "a SIMULATED NPU: %zu devices named %s", TheSettings().devices, TheSettings().chip.c_str());
  return kOk;
}
SIM_API int aclFinalize() { return kOk; }
SIM_API int aclnnInit(const char *) { return kOk; }
SIM_API int aclnnFinalize() { return kOk; }
SIM_API const char *aclGetRecentErrMsg() { return TakeReport(); }
SIM_API const char *aclrtGetSocName() { return TheSettings().chip.c_str(); }
SIM_API int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
  *major = 1;
  *minor = *patch = 0;
  return kOk;
}
SIM_API int aclsysGetCANNVersion(int, void *answer) {
  struct Version {
    char version[128], inner[128];
  };
  auto *version = static_cast<Version *>(answer);
  strncpy(version->version, kVersion, sizeof version->version);
  strncpy(version->inner, "SIMULATED", sizeof version->inner);
  return kOk;
}

// ---- devices
SIM_API int aclrtGetRunMode(int *mode) {
  *mode = kHostMode;
  return kOk;
}
SIM_API int aclrtGetDeviceCount(uint32_t *count) {
  *count = static_cast<uint32_t>(TheSettings().devices);
  return kOk;
}
SIM_API int aclrtSetDevice(int32_t id) {
  const Status status = SetDevice(id);
  if (status == kOk) t_context = ContextOf(id);
  return status;
}
SIM_API int aclrtGetDevice(int32_t *id) {
  *id = CurrentDevice();
  return kOk;
}
SIM_API int aclrtResetDevice(int32_t id) {
  ResetDevice(id);
  return kOk;
}
SIM_API int aclrtResetDeviceForce(int32_t id) { return aclrtResetDevice(id); }
SIM_API int aclrtDeviceTaskAbort(int32_t id, uint32_t) {
  AbortTasks(id);
  return kOk;
}
// Errors of calls of this thread. A device that has stopped stays so.
SIM_API int aclrtGetLastError(int) { return TakeStatus(); }
SIM_API int aclrtPeekAtLastError(int) { return LastStatus(); }
SIM_API int aclrtDeviceCanAccessPeer(int32_t *can, int32_t, int32_t) {
  *can = 1;
  return kOk;
}
SIM_API int aclrtDeviceEnablePeerAccess(int32_t, uint32_t) { return kOk; }
SIM_API int aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
  *least = 7;
  *greatest = 0;
  return kOk;
}
SIM_API int aclrtDeviceGetBareTgid(int32_t *id) {
  *id = getpid();
  return kOk;
}
// No address is listed: an injected memory error hits no address in particular.
SIM_API int aclrtGetMemUceInfo(int32_t, void *, size_t, size_t *count) {
  *count = 0;
  return kOk;
}
SIM_API int aclrtMemUceRepair(int32_t id, void *, size_t) { return aclrtResetDevice(id); }

// ---- contexts: one for each device
SIM_API int aclrtCreateContext(void **context, int32_t id) {
  const Status status = aclrtSetDevice(id);
  *context = status == kOk ? ContextOf(id) : nullptr;
  return status;
}
SIM_API int aclrtDestroyContext(void *context) {
  if (t_context == context) t_context = nullptr;
  return kOk;
}
SIM_API int aclrtSetCurrentContext(void *context) {
  if (context == nullptr) return Report(kNoContext, "aclrtSetCurrentContext was given no context");
  return aclrtSetDevice(static_cast<Context *>(context)->device);
}
SIM_API int aclrtGetCurrentContext(void **context) {
  *context = t_context;
  return t_context != nullptr ? kOk : Report(kNoContext, "this thread has no context: call aclrtSetDevice");
}
SIM_API int aclrtCtxSetSysParamOpt(int, int64_t) { return kOk; }
SIM_API int aclrtSetSysParamOpt(int, int64_t) { return kOk; }
SIM_API int aclrtSetDeviceSatMode(int) { return kOk; }
SIM_API int aclrtSetOpExecuteTimeOut(uint32_t) { return kOk; }
SIM_API int aclrtSetOpWaitTimeout(uint32_t) { return kOk; }

// ---- how many cores a stream may use: accepted, without effect
SIM_API int aclrtGetDeviceResLimit(int32_t, int, uint32_t *cores) {
  *cores = kCores;
  return kOk;
}
SIM_API int aclrtSetDeviceResLimit(int32_t, int, uint32_t) { return kOk; }
SIM_API int aclrtGetStreamResLimit(void *, int, uint32_t *cores) { return aclrtGetDeviceResLimit(0, 0, cores); }
SIM_API int aclrtSetStreamResLimit(void *, int, uint32_t) { return kOk; }
SIM_API int aclrtResetStreamResLimit(void *) { return kOk; }
SIM_API int aclrtUseStreamResInCurrentThread(void *) { return kOk; }
SIM_API int aclrtGetResInCurrentThread(int, uint32_t *cores) { return aclrtGetDeviceResLimit(0, 0, cores); }

// ---- what is told about an exception on a device: nothing beyond the text
SIM_API int aclrtSetExceptionInfoCallback(void *) { return kOk; }
SIM_API uint32_t aclrtGetTaskIdFromExceptionInfo(const void *) { return 0; }
SIM_API uint32_t aclrtGetStreamIdFromExceptionInfo(const void *) { return 0; }
SIM_API uint32_t aclrtGetThreadIdFromExceptionInfo(const void *) { return 0; }
SIM_API uint32_t aclrtGetDeviceIdFromExceptionInfo(const void *) { return 0; }
SIM_API uint32_t aclrtGetErrorCodeFromExceptionInfo(const void *) { return 0; }

// ---- options of the compiler, dumps, the profiler: a simulated device compiles and dumps nothing
SIM_API int aclSetCompileopt(int, const char *) { return kOk; }
SIM_API int aclopSetCompileFlag(int) { return kOk; }
SIM_API int aclopSetModelDir(const char *) { return kOk; }
SIM_API int aclmdlInitDump() { return kOk; }
SIM_API int aclmdlSetDump(const char *) { return kOk; }
SIM_API int aclmdlFinalizeDump() { return kOk; }
SIM_API int aclprofSetConfig(int, const char *, size_t) { return kOk; }

// ---- the channel over which a data set is fed to a graph: MindSpore makes one when a device starts
namespace {
struct Placeholder {};
}  // namespace
SIM_API void *acltdtCreateChannelWithCapacity(uint32_t, const char *, size_t) { return new Placeholder; }
SIM_API void *acltdtCreateChannel(uint32_t, const char *) { return new Placeholder; }
SIM_API int acltdtStopChannel(void *) { return kOk; }
SIM_API int acltdtCleanChannel(void *) { return kOk; }
SIM_API int acltdtDestroyChannel(void *channel) {
  delete static_cast<Placeholder *>(channel);
  return kOk;
}
SIM_API int acltdtQueryChannelSize(const void *, size_t *size) {
  *size = 0;
  return kOk;
}
SIM_API void *acltdtCreateDataset() { return new Placeholder; }
SIM_API int acltdtDestroyDataset(void *data) {
  delete static_cast<Placeholder *>(data);
  return kOk;
}
SIM_API int acltdtReceiveTensor(const void *, void *, int32_t milliseconds) {
  usleep(1000u * static_cast<unsigned>(milliseconds > 0 ? std::min(milliseconds, 200) : 200));
  return kQueueEmpty;
}

// ---- what the generated entries call (stubs/generate.py)
SIM_API void SimulatedNpuUnsupported(const char *name) {
  Report(kNotSupported, std::string(name) + " is not simulated");
}
SIM_API void SimulatedNpuMissing(const char *name) {
  fprintf(stderr, "[simulated NPU] %s was called. It is not simulated, and it has no way to report an error.\n", name);
  abort();
}
