// Streams and events. A stream is a queue with a thread of its own, so a task runs later than the call that puts it
// there, as on a device. A task that fails stops its device: later tasks are dropped, and waiting returns the error.
#pragma once
#include <functional>
#include <memory>

#include "status.h"

namespace sim {
struct Stream;

// ---- devices
Status SetDevice(int id);
int CurrentDevice();
void ResetDevice(int id);  // forgets the device's error

// ---- streams. The handle nullptr means the default stream of the current device.
Stream *NewStream();
Stream *ToStream(void *handle);
Status DeleteStream(Stream *stream);
int IdOf(const Stream *stream);
int DeviceOf(const Stream *stream);
bool IsIdle(Stream *stream);
// Puts a task on a stream. A Failure that it throws becomes the error of the device.
Status Enqueue(Stream *stream, std::function<void()> task, const std::string &what);
// Waits for all tasks that are on a stream now. A negative time means forever.
Status WaitFor(Stream *stream, int milliseconds = -1);
Status WaitForDevice(int milliseconds = -1);
// Drops what is queued and forgets the error (aclrtDeviceTaskAbort).
void AbortTasks(int device);
// The error that stopped the current device. It stays until the device is reset.
Status DeviceError();

// ---- events
struct EventState;
struct EventHandle {
  std::shared_ptr<EventState> state;
};
EventHandle *NewEvent();
Status Record(EventHandle *event, Stream *stream);
Status StreamWaits(Stream *stream, EventHandle *event);
Status HostWaits(EventHandle *event, int milliseconds = -1);
bool IsReached(EventHandle *event);
// Milliseconds between two events. Throws Failure if one of them was not reached.
float Between(EventHandle *begin, EventHandle *end);
uint64_t Microseconds(EventHandle *event);
}  // namespace sim
