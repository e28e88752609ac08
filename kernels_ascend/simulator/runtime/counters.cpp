#include "counters.h"

#include <map>
#include <mutex>

#include "status.h"

namespace sim {
namespace {
std::mutex g_mutex;
std::map<std::string, std::atomic<int64_t>> &Counters() {
  static auto *all = new std::map<std::string, std::atomic<int64_t>>;
  return *all;
}
}  // namespace

std::atomic<int64_t> &Counter(const std::string &name) {
  std::lock_guard<std::mutex> guard(g_mutex);
  return Counters()[name];  // the nodes of a map do not move
}
}  // namespace sim

// All counters as lines "name<tab>number". The text stays valid until the next call in this thread.
SIM_API const char *SimulatedNpuCounters() {
  static thread_local std::string text;
  std::lock_guard<std::mutex> guard(sim::g_mutex);
  text.clear();
  for (const auto &[name, number] : sim::Counters()) text += name + "\t" + std::to_string(number.load()) + "\n";
  return text.c_str();
}
SIM_API void SimulatedNpuResetCounters() {
  std::lock_guard<std::mutex> guard(sim::g_mutex);
  for (auto &[name, number] : sim::Counters()) number = 0;
}
