#include "faults.h"

#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "settings.h"

namespace sim {
namespace {
struct Wish {
  std::string kind;
  Event event;
  long left;  // how many events until it is due
};
const std::map<std::string, Event> kKinds = {
    {"oom", Event::kAllocation},          {"ecc", Event::kTask},       {"uce", Event::kTask}, {"kernel", Event::kTask},
    {"hccl_timeout", Event::kCollective}, {"link", Event::kCollective}};

std::vector<Wish> Parse(const std::string &text) {
  std::vector<Wish> wishes;
  std::stringstream stream(text);
  std::string one;
  while (std::getline(stream, one, ',')) {
    const size_t at = one.find('@');
    const auto kind = kKinds.find(one.substr(0, at));
    const long number = at == std::string::npos ? 0 : atol(one.c_str() + at + 1);
    if (kind == kKinds.end() || number < 1) {
      throw Failure(kInvalidParameter, "the fault \"" + one + "\" is not of the form kind@number with a known kind");
    }
    wishes.push_back({kind->first, kind->second, number});
  }
  return wishes;
}

std::mutex g_mutex;
std::vector<Wish> &Wishes() {
  static auto *all = [] {
    auto *wishes = new std::vector<Wish>;
    const Status status = Guarded([&] { *wishes = Parse(TheSettings().faults); });
    if (status != kOk) {
      fprintf(stderr, "%s (MSADAPTER_SIMULATED_NPU_FAULTS)\n", LastReport());
      exit(2);  // a run whose faults are not injected would prove nothing
    }
    return wishes;
  }();
  return *all;
}
}  // namespace

std::string FaultDue(Event event) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto &all = Wishes();
  std::string due;
  for (size_t i = 0; i < all.size();) {
    if (all[i].event == event && --all[i].left == 0 && due.empty()) {
      due = all[i].kind;
      all.erase(all.begin() + static_cast<long>(i));
    } else {
      ++i;
    }
  }
  return due;
}

void RaiseFault(const std::string &kind) {
  if (kind == "ecc") throw Failure(kEccError, "an injected fault: HBM multi-bit ECC error (507054)");
  if (kind == "uce") throw Failure(kMemoryError, "an injected fault: UCE, uncorrectable device memory error (507053)");
  if (kind == "link") throw Failure(kLinkError, "an injected fault: the link to another device is lost (507056)");
  throw Failure(kKernelException, "an injected fault: AI core exception (507015)");
}
}  // namespace sim

SIM_API int SimulatedNpuInjectFaults(const char *text) {
  return sim::Guarded([&] {
    auto wishes = sim::Parse(text);
    std::lock_guard<std::mutex> guard(sim::g_mutex);
    auto &all = sim::Wishes();
    all.insert(all.end(), wishes.begin(), wishes.end());
  });
}
