// libhccl: collectives between processes (hccl.h, hccl_types.h). Each call is a task of its stream.
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "communicator.h"
#include "../aclnn/types.h"
#include "../runtime/counters.h"
#include "../runtime/faults.h"
#include "../runtime/memory.h"
#include "../runtime/settings.h"
#include "../runtime/stream.h"

using namespace sim;

namespace {
// HcclResult
constexpr int kSuccess = 0, kParameterError = 1, kPointerError = 2, kNotSupportedError = 5, kTimeoutError = 9;
constexpr int kRuntimeError = 15;
constexpr size_t kRootInfoBytes = 4108, kNameBytes = 128;
constexpr size_t kNameInConfig = 32;  // HcclCommConfig: 24 reserved bytes and two numbers precede the name

int TypeOf(int hccl) {
  static const int types[] = {kInt8,   kInt16, kInt32,  kFloat16, kFloat32, kInt64,
                              kUInt64, kUInt8, kUInt16, kUInt32,  kFloat64, kBfloat16};
  if (hccl < 0 || hccl > 11) throw Failure(kInvalidParameter, Format("the HCCL data type %d is not simulated", hccl));
  return types[hccl];
}
int ResultOf(Status status) {
  switch (status) {
    case kOk: return kSuccess;
    case kInvalidParameter: return kParameterError;
    case kNullPointer: return kPointerError;
    case kNotSupported: return kNotSupportedError;
    case kCollectiveTimeout: return kTimeoutError;
    default: return kRuntimeError;
  }
}
char *OnDevice(const void *address, uint64_t bytes, const char *what) {
  if (bytes > 0 && !IsDevice(address)) {
    throw Failure(kInvalidParameter, Format("%s lies at the host address %p", what, address));
  }
  return Reach(address);
}

// Puts a collective on its stream. `checked` runs at once, and returns the task.
template <class F>
int Launch(const char *name, void *communicator, void *stream, F checked) {
  if (communicator == nullptr) return kPointerError;
  Status status = kOk;
  const Status planned = Guarded([&] {
    auto task = checked(static_cast<Communicator *>(communicator));
    Log(1, "%s", name);
    ++Counter(name);
    const std::string fault = FaultDue(Event::kCollective);
    auto whole = [task, fault, name] {
      if (fault == "hccl_timeout") {
        throw Failure(kCollectiveTimeout, std::string("an injected fault: the notify of ") + name + " never came");
      }
      if (!fault.empty()) RaiseFault(fault);
      task();
    };
    status = Enqueue(ToStream(stream), whole, name);
  });
  return ResultOf(planned != kOk ? planned : status);
}
Combining HowOf(int op) {
  if (op < 0 || op > 3) throw Failure(kInvalidParameter, Format("the HCCL reduction %d does not exist", op));
  return static_cast<Combining>(op);
}
// HCCL reduces these types; DOUBLE and the unsigned ones are gathered and sent only (hccl_types.h, HcclAllReduce's
// page).
int Reduced(int hccl, int op) {
  const int type = TypeOf(hccl);
  if (!IsIn(type, kHalves | I8 | I16 | I32 | I64)) {
    throw Failure(kNotSupported, NameOf(type) + " is not reduced by HCCL");
  }
  if (op == static_cast<int>(Combining::kProduct) && IsIn(type, I16 | BF16)) {
    throw Failure(kNotSupported, "HCCL takes no products of " + NameOf(type));
  }
  return type;
}
std::vector<uint64_t> Numbers(const void *values, uint32_t count) {
  if (values == nullptr) throw Failure(kNullPointer, "counts or displacements are missing");
  const auto *numbers = static_cast<const uint64_t *>(values);
  return {numbers, numbers + count};
}
// The parts of a buffer, as elements: counts[r] from at[r].
Communicator::Place Parts(char *base, std::vector<uint64_t> counts, std::vector<uint64_t> at, uint64_t item) {
  return [=](uint32_t r) { return std::make_pair(base + at[r] * item, counts[r] * item); };
}
std::string NameIn(const void *config) {
  if (config == nullptr) return "";
  const char *name = static_cast<const char *>(config) + kNameInConfig;
  return {name, strnlen(name, kNameBytes - 1)};
}
}  // namespace

// ---- communicators
SIM_API int HcclGetRootInfo(char *info) {
  static std::atomic<int> number{0};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memset(info, 0, kRootInfoBytes);
  snprintf(info, kNameBytes, "simulated-npu-%d-%d-%ld%09ld", getpid(), number++, static_cast<long>(now.tv_sec),
           now.tv_nsec);
  return kSuccess;
}
SIM_API int HcclCommInitRootInfoConfig(uint32_t ranks, const char *info, uint32_t rank, const void *config,
                                       void **communicator) {
  return ResultOf(Guarded([&] {
    if (rank >= ranks) throw Failure(kInvalidParameter, Format("there is no rank %u of %u", rank, ranks));
    *communicator = Communicator::Join(std::string(info, strnlen(info, kNameBytes)), rank, ranks, NameIn(config));
  }));
}
SIM_API int HcclCommInitRootInfo(uint32_t ranks, const char *info, uint32_t rank, void **communicator) {
  return HcclCommInitRootInfoConfig(ranks, info, rank, nullptr, communicator);
}
SIM_API int HcclCreateSubCommConfig(void **communicator, uint32_t ranks, uint32_t *, uint64_t id, uint32_t rank,
                                    const void *config, void **made) {
  return ResultOf(Guarded([&] {
    *made = nullptr;
    const auto *parent = static_cast<Communicator *>(*communicator);
    if (rank >= ranks) return;  // this process is not in the group
    *made = Communicator::Join(Format("%.60s-%llu", parent->name().c_str(), (unsigned long long)id), rank, ranks,
                               NameIn(config));
  }));
}
SIM_API int HcclCommDestroy(void *communicator) {
  if (communicator != nullptr) Communicator::Forget(static_cast<Communicator *>(communicator));
  return kSuccess;
}
SIM_API int HcclCommResume(void *) { return kSuccess; }
SIM_API int HcclGetCommAsyncError(void *, int *error) {
  *error = ResultOf(DeviceError());
  return kSuccess;
}
SIM_API const char *HcclGetErrorString(int) { return LastReport(); }
SIM_API uint32_t HcclGetCommConfigCapability() { return 3; }
SIM_API int HcclSetConfig(int, uint64_t) { return kSuccess; }
SIM_API int HcclGetConfig(int, void *) { return kSuccess; }
SIM_API int HcclCommWorkingDevNicSet(void *, uint32_t *, bool *, uint32_t) { return kSuccess; }
SIM_API int HcclGetRankId(void *communicator, uint32_t *rank) {
  *rank = static_cast<Communicator *>(communicator)->rank();
  return kSuccess;
}
SIM_API int HcclGetRankSize(void *communicator, uint32_t *ranks) {
  *ranks = static_cast<Communicator *>(communicator)->size();
  return kSuccess;
}
SIM_API int HcclGetCommName(void *communicator, char *name) {
  snprintf(name, kNameBytes, "%s", static_cast<Communicator *>(communicator)->name().c_str());
  return kSuccess;
}

// ---- collectives
SIM_API int HcclAllReduce(void *send, void *receive, uint64_t count, int kind, int op, void *communicator,
                          void *stream) {
  return Launch("HcclAllReduce", communicator, stream, [&](Communicator *group) {
    const int type = Reduced(kind, op);
    char *from = OnDevice(send, count, "the buffer"), *to = OnDevice(receive, count, "the result");
    return [=] { group->Reduce(from, to, count, type, HowOf(op), group->size()); };
  });
}
SIM_API int HcclReduce(void *send, void *receive, uint64_t count, int kind, int op, uint32_t root, void *communicator,
                       void *stream) {
  return Launch("HcclReduce", communicator, stream, [&](Communicator *group) {
    const int type = Reduced(kind, op);
    char *from = OnDevice(send, count, "the buffer");
    char *to = OnDevice(receive, root == group->rank() ? count : 0, "the result");
    return [=] { group->Reduce(from, to, count, type, HowOf(op), root); };
  });
}
SIM_API int HcclBroadcast(void *buffer, uint64_t count, int kind, uint32_t root, void *communicator, void *stream) {
  return Launch("HcclBroadcast", communicator, stream, [&](Communicator *group) {
    char *place = OnDevice(buffer, count, "the buffer");
    const uint64_t bytes = count * SizeOf(TypeOf(kind));
    return [=] { group->Broadcast(place, bytes, root); };
  });
}
SIM_API int HcclAllGather(void *send, void *receive, uint64_t count, int kind, void *communicator, void *stream) {
  return Launch("HcclAllGather", communicator, stream, [&](Communicator *group) {
    char *from = OnDevice(send, count, "the buffer"), *to = OnDevice(receive, count, "the result");
    const uint64_t bytes = count * SizeOf(TypeOf(kind));
    return [=] { group->AllGather(from, to, bytes); };
  });
}
SIM_API int HcclAllGatherV(void *send, uint64_t count, void *receive, const void *counts, const void *places, int kind,
                           void *communicator, void *stream) {
  return Launch("HcclAllGatherV", communicator, stream, [&](Communicator *group) {
    const uint64_t item = SizeOf(TypeOf(kind));
    char *from = OnDevice(send, count, "the buffer"), *to = OnDevice(receive, 1, "the result");
    auto into = Parts(to, Numbers(counts, group->size()), Numbers(places, group->size()), item);
    return [=] { group->AllToAll([=](uint32_t) { return std::make_pair(from, count * item); }, into); };
  });
}
SIM_API int HcclScatter(void *send, void *receive, uint64_t count, int kind, uint32_t root, void *communicator,
                        void *stream) {
  return Launch("HcclScatter", communicator, stream, [&](Communicator *group) {
    const uint64_t bytes = count * SizeOf(TypeOf(kind));
    const bool gives = group->rank() == root;
    char *from = OnDevice(send, gives ? count : 0, "the buffer"), *to = OnDevice(receive, count, "the result");
    return [=] {
      group->AllToAll([=](uint32_t r) { return std::make_pair(from + r * bytes, gives ? bytes : 0); },
                      [=](uint32_t r) { return std::make_pair(to, r == root ? bytes : 0); });
    };
  });
}
SIM_API int HcclReduceScatter(void *send, void *receive, uint64_t count, int kind, int op, void *communicator,
                              void *stream) {
  return Launch("HcclReduceScatter", communicator, stream, [&](Communicator *group) {
    const int type = Reduced(kind, op);
    const uint64_t bytes = count * SizeOf(type);
    char *from = OnDevice(send, count, "the buffer"), *to = OnDevice(receive, count, "the result");
    return [=] {
      group->ReduceScatter([=](uint32_t r) { return std::make_pair(from + r * bytes, bytes); }, to, count, type,
                           HowOf(op));
    };
  });
}
SIM_API int HcclReduceScatterV(void *send, const void *counts, const void *places, void *receive, uint64_t count,
                               int kind, int op, void *communicator, void *stream) {
  return Launch("HcclReduceScatterV", communicator, stream, [&](Communicator *group) {
    const int type = Reduced(kind, op);
    char *from = OnDevice(send, 1, "the buffer"), *to = OnDevice(receive, count, "the result");
    auto parts = Parts(from, Numbers(counts, group->size()), Numbers(places, group->size()), SizeOf(type));
    return [=] { group->ReduceScatter(parts, to, count, type, HowOf(op)); };
  });
}
SIM_API int HcclAlltoAll(const void *send, uint64_t sent, int kind, const void *receive, uint64_t got, int,
                         void *communicator, void *stream) {
  return Launch("HcclAlltoAll", communicator, stream, [&](Communicator *group) {
    const uint64_t item = SizeOf(TypeOf(kind));
    char *from = OnDevice(send, sent, "the buffer"), *to = OnDevice(receive, got, "the result");
    return [=] {
      group->AllToAll([=](uint32_t r) { return std::make_pair(from + r * sent * item, sent * item); },
                      [=](uint32_t r) { return std::make_pair(to + r * got * item, got * item); });
    };
  });
}
SIM_API int HcclAlltoAllV(const void *send, const void *sent, const void *sent_at, int kind, const void *receive,
                          const void *got, const void *got_at, int, void *communicator, void *stream) {
  return Launch("HcclAlltoAllV", communicator, stream, [&](Communicator *group) {
    const uint64_t item = SizeOf(TypeOf(kind));
    auto from = Parts(Reach(send), Numbers(sent, group->size()), Numbers(sent_at, group->size()), item);
    auto to = Parts(Reach(receive), Numbers(got, group->size()), Numbers(got_at, group->size()), item);
    for (uint32_t r = 0; r < group->size(); ++r) {
      OnDevice(send, from(r).second, "the buffer");
      OnDevice(receive, to(r).second, "the result");
    }
    return [=] { group->AllToAll(from, to); };
  });
}
SIM_API int HcclBarrier(void *communicator, void *stream) {
  return Launch("HcclBarrier", communicator, stream, [](Communicator *group) { return [=] { group->Barrier(); }; });
}

// ---- between two ranks
namespace {
int LaunchMessages(const char *name, std::vector<Message> messages, void *communicator, void *stream) {
  return Launch(name, communicator, stream, [&](Communicator *group) {
    for (Message &message : messages) {
      if (message.peer >= group->size()) throw Failure(kInvalidParameter, Format("there is no rank %u", message.peer));
      message.type = TypeOf(message.type);
      message.buffer = OnDevice(message.buffer, message.count, "the buffer");
    }
    return [=] { group->Exchange(messages); };
  });
}
}  // namespace
SIM_API int HcclSend(void *buffer, uint64_t count, int kind, uint32_t to, void *communicator, void *stream) {
  return LaunchMessages("HcclSend", {{0, buffer, count, kind, to}}, communicator, stream);
}
SIM_API int HcclRecv(void *buffer, uint64_t count, int kind, uint32_t from, void *communicator, void *stream) {
  return LaunchMessages("HcclRecv", {{1, buffer, count, kind, from}}, communicator, stream);
}
SIM_API int HcclBatchSendRecv(const Message *messages, uint32_t count, void *communicator, void *stream) {
  return LaunchMessages("HcclBatchSendRecv", {messages, messages + count}, communicator, stream);
}
