// What calls return, and how a message reaches the caller. The numbers are CANN's (acl_base.h, rt_error_codes.h,
// aclnn_base.h, hccl_types.h).
#pragma once
#include <stdexcept>
#include <string>

#define SIM_API extern "C" __attribute__((visibility("default")))

namespace sim {
using Status = int;
constexpr Status kOk = 0;
constexpr Status kInvalidParameter = 107000;  // ACL_ERROR_RT_PARAM_INVALID
constexpr Status kInvalidDevice = 107001;     // ACL_ERROR_RT_INVALID_DEVICEID
constexpr Status kNoContext = 107002;         // ACL_ERROR_RT_CONTEXT_NULL
constexpr Status kNotReached = 107006;        // ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID
constexpr Status kStreamTimeout = 507046;     // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
constexpr Status kNotSupported = 207000;      // ACL_ERROR_RT_FEATURE_NOT_SUPPORT
constexpr Status kOutOfMemory = 207001;       // ACL_ERROR_RT_MEMORY_ALLOCATION
constexpr Status kQueueEmpty = 207013;        // ACL_ERROR_RT_QUEUE_EMPTY
constexpr Status kKernelException = 507015;   // ACL_ERROR_RT_AICORE_EXCEPTION
constexpr Status kMemoryError = 507053;       // ACL_ERROR_RT_DEVICE_MEM_ERROR, "UCE"
constexpr Status kEccError = 507054;          // ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR
constexpr Status kLinkError = 507056;         // ACL_ERROR_RT_LINK_ERROR
constexpr Status kRemoteError = 507057;       // ACL_ERROR_RT_SUSPECT_REMOTE_ERROR
constexpr Status kNullPointer = 161001;       // ACLNN_ERR_PARAM_NULLPTR
constexpr Status kRefused = 161002;           // ACLNN_ERR_PARAM_INVALID

// A call that is refused, or a task that fails on its stream.
struct Failure : std::runtime_error {
  Failure(Status code, const std::string &text) : std::runtime_error(text), status(code) {}
  Status status;
};

// Formats a text as printf does.
std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Remembers the text that aclGetRecentErrMsg returns in this thread, and returns the status.
Status Report(Status status, const std::string &text);
// The status that this thread reported last. TakeStatus forgets it, as aclrtGetLastError does.
Status LastStatus();
Status TakeStatus();
const char *LastReport();
// The same, and forgets it, as aclGetRecentErrMsg does. The text stays valid until the next call in this thread.
const char *TakeReport();

// Prints to stderr if the log level asks for it.
void Log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Runs a body. A Failure becomes its status, with its text reported.
template <class F>
Status Guarded(F &&body) {
  try {
    body();
    return kOk;
  } catch (const Failure &failure) { return Report(failure.status, failure.what()); }
}
}  // namespace sim
