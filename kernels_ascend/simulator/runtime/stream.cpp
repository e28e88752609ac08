#include "stream.h"

#include <string.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "counters.h"
#include "faults.h"
#include "settings.h"

namespace sim {
using Clock = std::chrono::steady_clock;
namespace {
struct Device {
  std::mutex mutex;
  Status error = kOk;
  std::string text;
  std::set<Stream *> streams;
  Stream *first = nullptr;  // the default stream
};
std::mutex g_mutex;
std::map<int, Device *> g_devices;
thread_local int t_device = -1;
std::atomic<int> g_last_device{0};
std::atomic<int> g_stream_ids{0};
const pid_t g_owner = getpid();
}  // namespace

struct Stream {
  int device = 0, id = 0;
  std::mutex mutex;
  std::condition_variable arrived, drained;
  std::deque<std::function<void()>> tasks;
  uint64_t put = 0, done = 0;
  bool stop = false;
  std::thread worker;
  std::mt19937_64 delays;
};

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t asked = 0, reached = 0;  // records that were put on a stream, and the last one that it has passed
  Clock::time_point when;
};

namespace {
Stream *StreamOn(int device);

Device &DeviceAt(int id) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto &device = g_devices[id];
  if (device == nullptr) device = new Device;
  return *device;
}

void Fail(int id, const Failure &failure, const std::string &what) {
  Device &device = DeviceAt(id);
  std::lock_guard<std::mutex> guard(device.mutex);
  if (device.error != kOk) return;  // the first error is the cause of all others
  device.error = failure.status;
  device.text = what + ": " + failure.what();
  Log(1, "device %d failed in %s", id, device.text.c_str());
}

Status ErrorOf(int id) {
  Device &device = DeviceAt(id);
  std::lock_guard<std::mutex> guard(device.mutex);
  return device.error == kOk ? kOk : Report(device.error, device.text);
}

// In a child of fork() the threads of the streams do not exist, and a device's context is not valid either.
Status CheckOwner() {
  return getpid() == g_owner ? kOk : Report(kNoContext, "a forked process has no context of the device");
}

void Run(Stream *stream, const std::function<void()> &task, const std::string &what) {
  bool failed;
  {
    Device &device = DeviceAt(stream->device);
    std::lock_guard<std::mutex> guard(device.mutex);
    failed = device.error != kOk;
  }
  if (failed) return;
  if (const int64_t most = TheSettings().delay_us; most > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(stream->delays() % static_cast<uint64_t>(most + 1)));
  }
  try {
    if (const std::string fault = FaultDue(Event::kTask); !fault.empty()) RaiseFault(fault);
    task();
  } catch (const Failure &failure) { Fail(stream->device, failure, what); }
}

void Work(Stream *stream) {
  std::unique_lock<std::mutex> lock(stream->mutex);
  for (;;) {
    stream->arrived.wait(lock, [&] { return stream->stop || !stream->tasks.empty(); });
    if (stream->tasks.empty()) return;
    auto task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds is freed before the stream counts as drained
    lock.lock();
    ++stream->done;
    stream->drained.notify_all();
  }
}

Stream *StreamOn(int device) {
  auto *stream = new Stream;
  stream->device = device;
  stream->id = g_stream_ids++;
  stream->delays.seed(TheSettings().delay_seed + static_cast<uint64_t>(stream->id));
  if (!TheSettings().synchronous) stream->worker = std::thread(Work, stream);
  Device &owner = DeviceAt(device);
  std::lock_guard<std::mutex> guard(owner.mutex);
  owner.streams.insert(stream);
  return stream;
}
}  // namespace

Status SetDevice(int id) {
  if (id < 0 || static_cast<size_t>(id) >= TheSettings().devices) {
    return Report(kInvalidDevice, Format("there is no device %d: %zu are simulated", id, TheSettings().devices));
  }
  t_device = id;
  g_last_device = id;
  return kOk;
}

int CurrentDevice() { return t_device >= 0 ? t_device : g_last_device.load(); }

void ResetDevice(int id) {
  Device &device = DeviceAt(id);
  std::lock_guard<std::mutex> guard(device.mutex);
  device.error = kOk;
  device.text.clear();
}

Stream *NewStream() { return StreamOn(CurrentDevice()); }

Stream *ToStream(void *handle) {
  if (handle != nullptr) return static_cast<Stream *>(handle);
  Device &device = DeviceAt(CurrentDevice());
  static std::mutex once;
  std::lock_guard<std::mutex> guard(once);
  if (device.first == nullptr) device.first = StreamOn(CurrentDevice());
  return device.first;
}

Status DeleteStream(Stream *stream) {
  if (const Status status = CheckOwner(); status != kOk) return status;
  WaitFor(stream);
  {
    std::lock_guard<std::mutex> guard(stream->mutex);
    stream->stop = true;
    stream->arrived.notify_all();
  }
  if (stream->worker.joinable()) stream->worker.join();
  {
    Device &device = DeviceAt(stream->device);
    std::lock_guard<std::mutex> guard(device.mutex);
    device.streams.erase(stream);
  }
  delete stream;
  return kOk;
}

int IdOf(const Stream *stream) { return stream->id; }
int DeviceOf(const Stream *stream) { return stream->device; }

bool IsIdle(Stream *stream) {
  std::lock_guard<std::mutex> guard(stream->mutex);
  return stream->done >= stream->put;
}

Status Enqueue(Stream *stream, std::function<void()> task, const std::string &what) {
  if (const Status status = CheckOwner(); status != kOk) return status;
  static auto &count = Counter("tasks");
  ++count;
  Log(3, "stream %d <- %s", stream->id, what.c_str());
  auto whole = [stream, task = std::move(task), what] { Run(stream, task, what); };
  if (TheSettings().synchronous) {
    whole();
    return ErrorOf(stream->device);
  }
  std::lock_guard<std::mutex> guard(stream->mutex);
  stream->tasks.push_back(std::move(whole));
  ++stream->put;
  stream->arrived.notify_one();
  return kOk;
}

Status WaitFor(Stream *stream, int milliseconds) {
  if (const Status status = CheckOwner(); status != kOk) return status;
  if (!TheSettings().synchronous) {
    std::unique_lock<std::mutex> lock(stream->mutex);
    const uint64_t until = stream->put;
    auto reached = [&] { return stream->done >= until; };
    if (milliseconds < 0) {
      stream->drained.wait(lock, reached);
    } else if (!stream->drained.wait_for(lock, std::chrono::milliseconds(milliseconds), reached)) {
      return Report(kStreamTimeout, Format("stream %d is not done after %d ms", stream->id, milliseconds));
    }
  }
  return ErrorOf(stream->device);
}

Status WaitForDevice(int milliseconds) {
  std::set<Stream *> all;
  Device &device = DeviceAt(CurrentDevice());
  {
    std::lock_guard<std::mutex> guard(device.mutex);
    all = device.streams;
  }
  for (Stream *stream : all) {
    if (const Status status = WaitFor(stream, milliseconds); status != kOk) return status;
  }
  return ErrorOf(CurrentDevice());
}

void AbortTasks(int id) {
  std::set<Stream *> all;
  Device &device = DeviceAt(id);
  {
    std::lock_guard<std::mutex> guard(device.mutex);
    all = device.streams;
  }
  for (Stream *stream : all) {
    std::lock_guard<std::mutex> guard(stream->mutex);
    stream->done += stream->tasks.size();
    stream->tasks.clear();
    stream->drained.notify_all();
  }
  ResetDevice(id);
}

Status DeviceError() { return ErrorOf(CurrentDevice()); }

EventHandle *NewEvent() { return new EventHandle{std::make_shared<EventState>()}; }

Status Record(EventHandle *event, Stream *stream) {
  auto state = event->state;
  uint64_t number;
  {
    std::lock_guard<std::mutex> guard(state->mutex);
    number = ++state->asked;
  }
  auto reach = [state, number] {
    std::lock_guard<std::mutex> guard(state->mutex);
    state->reached = std::max(state->reached, number);
    state->when = Clock::now();
    state->changed.notify_all();
  };
  if (TheSettings().synchronous) {
    reach();
    return ErrorOf(stream->device);
  }
  if (const Status status = CheckOwner(); status != kOk) return status;
  // Put on the queue itself and not through Run: whoever waits for it goes on even if the device has failed.
  std::lock_guard<std::mutex> guard(stream->mutex);
  stream->tasks.push_back(reach);
  ++stream->put;
  stream->arrived.notify_one();
  return kOk;
}

namespace {
bool AwaitRecord(EventState &state, uint64_t number, int milliseconds) {
  std::unique_lock<std::mutex> lock(state.mutex);
  auto reached = [&] { return state.reached >= number; };
  if (milliseconds >= 0) return state.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), reached);
  state.changed.wait(lock, reached);
  return true;
}
uint64_t Asked(EventState &state) {
  std::lock_guard<std::mutex> guard(state.mutex);
  return state.asked;
}
}  // namespace

Status StreamWaits(Stream *stream, EventHandle *event) {
  auto state = event->state;
  const uint64_t number = Asked(*state);
  if (TheSettings().synchronous) return kOk;  // everything before it has run
  return Enqueue(stream, [state, number] { AwaitRecord(*state, number, -1); }, "wait for an event");
}

Status HostWaits(EventHandle *event, int milliseconds) {
  if (const Status status = CheckOwner(); status != kOk) return status;
  if (!AwaitRecord(*event->state, Asked(*event->state), milliseconds)) {
    return Report(kStreamTimeout, Format("an event is not reached after %d ms", milliseconds));
  }
  return ErrorOf(CurrentDevice());
}

bool IsReached(EventHandle *event) {
  std::lock_guard<std::mutex> guard(event->state->mutex);
  return event->state->reached >= event->state->asked;
}

float Between(EventHandle *begin, EventHandle *end) {
  if (begin->state->reached == 0 || end->state->reached == 0 || !IsReached(begin) || !IsReached(end)) {
    throw Failure(kNotReached, "the time between two events was asked for before both were reached");
  }
  return std::chrono::duration<float, std::milli>(end->state->when - begin->state->when).count();
}

uint64_t Microseconds(EventHandle *event) {
  const auto since = event->state->when.time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}
}  // namespace sim
