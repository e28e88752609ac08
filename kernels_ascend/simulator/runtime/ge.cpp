// libge_runner and libgraph: the little of them that runs while the plugin is loaded or a device starts. Graphs are not
// simulated: MindSpore compiles none when it runs operators one by one.
#include <cstdint>
#include <map>
#include <string>

#define EXPORTED __attribute__((visibility("default")))

namespace ge {
// MindSpore's code works on the map through inline methods of the header.
class EXPORTED StatusFactory {
 public:
  static StatusFactory *Instance();
  std::map<uint32_t, std::string> descriptions;
};
StatusFactory *StatusFactory::Instance() {
  static auto *one = new StatusFactory;
  return one;
}
EXPORTED uint32_t GEInitialize(const std::map<std::string, std::string> &);
uint32_t GEInitialize(const std::map<std::string, std::string> &) { return 0; }
EXPORTED uint32_t GEFinalize();
uint32_t GEFinalize() { return 0; }
}  // namespace ge
