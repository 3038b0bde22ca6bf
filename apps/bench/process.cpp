#include <plait/apps/bench/process.hpp>

#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>

namespace plait::bench {

namespace {

std::int64_t status_bytes(std::string const& wanted)
{
    std::ifstream file("/proc/self/status");
    std::string key;
    while (file >> key) {
        std::int64_t kilobytes = 0;
        if (key == wanted && file >> kilobytes) return kilobytes * 1024;
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return 0;
}

duration of(timeval t) noexcept
{
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
}

} // namespace

std::string quoted(std::string const& text)
{
    std::string out = "'";
    for (char c : text)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

duration processor_time() noexcept
{
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return of(usage.ru_utime) + of(usage.ru_stime);
}

std::int64_t resident_bytes()
{
    return status_bytes("VmRSS:");
}

std::int64_t peak_resident_bytes()
{
    return status_bytes("VmHWM:");
}

void forget_peak()
{
    std::ofstream("/proc/self/clear_refs") << 5;
}

} // namespace plait::bench
