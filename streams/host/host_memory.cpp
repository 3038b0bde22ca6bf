#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <plait/streams/host/host_memory.hpp>

namespace plait::host {

namespace {

/// The cgroup's limit less what it uses; the largest number where there is none.
std::int64_t left_in_cgroup()
{
    auto none = std::numeric_limits<std::int64_t>::max();
    std::ifstream self("/proc/self/cgroup");
    std::string line;
    while (std::getline(self, line)) {
        if (!line.starts_with("0::")) continue;
        auto left = none;
        // A limit may stand on any level above.
        for (auto at = std::filesystem::path("/sys/fs/cgroup" + line.substr(3)); at != "/sys/fs";
             at = at.parent_path()) {
            std::int64_t most = 0, used = 0;
            std::ifstream limit(at / "memory.max"), current(at / "memory.current");
            if (limit >> most && current >> used) left = std::min(left, std::max<std::int64_t>(0, most - used));
            if (at == at.root_path()) break;
        }
        return left;
    }
    return none;
}

} // namespace

std::int64_t available_memory()
{
    std::ifstream info("/proc/meminfo");
    std::string key;
    std::int64_t kib = 0;
    std::int64_t available = std::numeric_limits<std::int64_t>::max();
    while (info >> key >> kib) {
        if (key == "MemAvailable:") available = kib * 1024;
        info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return std::min(available, left_in_cgroup());
}

} // namespace plait::host
