// libascendcl: streams and events.
#include <unistd.h>

#include <algorithm>

#include "counters.h"
#include "settings.h"
#include "status.h"
#include "stream.h"

using namespace sim;

// ---- streams
SIM_API int aclrtCreateStream(void **stream) {
  *stream = NewStream();
  return kOk;
}
SIM_API int aclrtCreateStreamWithConfig(void **stream, uint32_t, uint32_t) { return aclrtCreateStream(stream); }
SIM_API int aclrtDestroyStream(void *stream) {
  return stream != nullptr ? DeleteStream(static_cast<Stream *>(stream)) : kOk;
}
SIM_API int aclrtDestroyStreamForce(void *stream) { return aclrtDestroyStream(stream); }
namespace {
void CountWait() { ++Counter("waits of the host"); }
}  // namespace
SIM_API int aclrtSynchronizeStream(void *stream) {
  CountWait();
  return WaitFor(ToStream(stream));
}
SIM_API int aclrtSynchronizeStreamWithTimeout(void *stream, int32_t milliseconds) {
  CountWait();
  return WaitFor(ToStream(stream), milliseconds);
}
SIM_API int aclrtSynchronizeDevice() {
  CountWait();
  return WaitForDevice();
}
SIM_API int aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
  CountWait();
  return WaitForDevice(milliseconds);
}
SIM_API int aclrtStreamQuery(void *stream, int *status) {
  *status = IsIdle(ToStream(stream)) ? 0 : 1;  // ACL_STREAM_STATUS_COMPLETE, ACL_STREAM_STATUS_NOT_READY
  return kOk;
}
SIM_API int aclrtStreamGetId(void *stream, int32_t *id) {
  *id = IdOf(ToStream(stream));
  return kOk;
}
SIM_API int aclrtSetStreamFailureMode(void *, uint64_t) { return kOk; }
SIM_API int aclrtSetStreamOverflowSwitch(void *, uint32_t) { return kOk; }
SIM_API int aclrtLaunchCallback(void (*function)(void *), void *data, int, void *stream) {
  return Enqueue(ToStream(stream), [=] { function(data); }, "a callback");
}
SIM_API int aclrtSubscribeReport(uint64_t, void *) { return kOk; }
SIM_API int aclrtUnSubscribeReport(uint64_t, void *) { return kOk; }
// Callbacks run on the thread of their stream, so the thread that waits for them here has nothing to do.
SIM_API int aclrtProcessReport(int32_t milliseconds) {
  if (milliseconds > 0) usleep(1000u * static_cast<unsigned>(std::min(milliseconds, 100)));
  return kOk;
}

// ---- events
SIM_API int aclrtCreateEvent(void **event) {
  *event = NewEvent();
  return kOk;
}
SIM_API int aclrtCreateEventWithFlag(void **event, uint32_t) { return aclrtCreateEvent(event); }
SIM_API int aclrtCreateEventExWithFlag(void **event, uint32_t) { return aclrtCreateEvent(event); }
SIM_API int aclrtDestroyEvent(void *event) {
  delete static_cast<EventHandle *>(event);  // tasks that wait for it share its state
  return kOk;
}
SIM_API int aclrtRecordEvent(void *event, void *stream) {
  return Record(static_cast<EventHandle *>(event), ToStream(stream));
}
SIM_API int aclrtStreamWaitEvent(void *stream, void *event) {
  return StreamWaits(ToStream(stream), static_cast<EventHandle *>(event));
}
SIM_API int aclrtSynchronizeEvent(void *event) { return HostWaits(static_cast<EventHandle *>(event)); }
SIM_API int aclrtSynchronizeEventWithTimeout(void *event, int32_t milliseconds) {
  return HostWaits(static_cast<EventHandle *>(event), milliseconds);
}
SIM_API int aclrtQueryEventStatus(void *event, int *status) {
  *status = IsReached(static_cast<EventHandle *>(event)) ? 1 : 0;  // ACL_EVENT_RECORDED_STATUS_COMPLETE
  return kOk;
}
SIM_API int aclrtQueryEventWaitStatus(void *event, int *status) {
  *status = IsReached(static_cast<EventHandle *>(event)) ? 0 : 1;  // ACL_EVENT_WAIT_STATUS_COMPLETE
  return kOk;
}
SIM_API int aclrtResetEvent(void *, void *) { return kOk; }
SIM_API int aclrtEventElapsedTime(float *milliseconds, void *begin, void *end) {
  return Guarded([&] { *milliseconds = Between(static_cast<EventHandle *>(begin), static_cast<EventHandle *>(end)); });
}
SIM_API int aclrtEventGetTimestamp(void *event, uint64_t *microseconds) {
  *microseconds = Microseconds(static_cast<EventHandle *>(event));
  return kOk;
}
