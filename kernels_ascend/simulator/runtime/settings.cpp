#include "settings.h"

#include <stdlib.h>

#include <algorithm>

namespace sim {
namespace {
constexpr const char *kPrefix = "MSADAPTER_SIMULATED_NPU_";

std::string Text(const char *name, const std::string &otherwise) {
  const char *value = getenv((kPrefix + std::string(name)).c_str());
  return value != nullptr && *value != '\0' ? value : otherwise;
}
double Number(const char *name, double otherwise) { return atof(Text(name, std::to_string(otherwise)).c_str()); }
bool Flag(const char *name) {
  const std::string value = Text(name, "0");
  return value != "0";
}
// CANN's own variable decides where the simulator's is not set.
double Seconds(const char *name, const char *cann, double otherwise) {
  const char *value = getenv(cann);
  return Number(name, value != nullptr && *value != '\0' ? atof(value) : otherwise);
}

Settings Read() {
  Settings s;
  s.devices = static_cast<size_t>(std::clamp(Number("DEVICES", 8), 1.0, 64.0));
  s.memory = static_cast<size_t>(std::max(Number("MEMORY_GB", 64), 0.001) * (size_t(1) << 30));
  s.chip = Text("CHIP", "Ascend910B2");
  s.log = static_cast<int>(Number("LOG", 0));
  s.synchronous = Flag("SYNC");
  s.delay_us = static_cast<int64_t>(Number("DELAY_US", 0));
  s.delay_seed = static_cast<uint64_t>(Number("DELAY_SEED", 0));
  s.poison = Flag("POISON");
  s.host_access = Flag("HOST_ACCESS");
  s.faults = Text("FAULTS", "");
  s.hccl_timeout = Seconds("HCCL_TIMEOUT", "HCCL_EXEC_TIMEOUT", 1836);    // CANN's own default
  s.hccl_connect = Seconds("HCCL_CONNECT", "HCCL_CONNECT_TIMEOUT", 120);  // CANN's own default
  s.hccl_slot = static_cast<size_t>(std::max(Number("HCCL_SLOT", 1 << 20), 4096.0)) / 4096 * 4096;
  return s;
}
}  // namespace

const Settings &TheSettings() {
  static const Settings *one = new Settings(Read());  // never destroyed: threads of streams may outlive main()
  return *one;
}

bool ChipHasBfloat16() {
  static const bool has =
      TheSettings().chip.rfind("Ascend910B", 0) == 0 || TheSettings().chip.rfind("Ascend910_9", 0) == 0;
  return has;
}
}  // namespace sim
