#include <plait/apps/bench/runtime/processors.hpp>

#include <plait/actors/error.hpp>

#include <fstream>

namespace plait::bench {

namespace {

void check(int failed)
{
    if (failed != 0) throw error(errc::io, "the system does not tell or change which processors a thread may use");
}

// Of the calling thread; who measures has been moved by nobody else.
::cpu_set_t allowed()
{
    ::cpu_set_t out;
    CPU_ZERO(&out);
    check(::sched_getaffinity(0, sizeof out, &out));
    return out;
}

} // namespace

std::optional<unsigned> processor(std::size_t which)
{
    static auto const all = allowed(); // asked before any thread is moved
    if (CPU_COUNT(&all) < 2) return std::nullopt;
    for (unsigned i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &all) && which-- == 0) return i;
    return std::nullopt;
}

on_processor::on_processor(std::optional<unsigned> which)
{
    if (!which) return;
    before_ = allowed();
    ::cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*which, &one);
    check(::sched_setaffinity(0, sizeof one, &one));
}

on_processor::~on_processor()
{
    if (before_) ::sched_setaffinity(0, sizeof *before_, &*before_);
}

std::string processor_name()
{
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (auto const colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
            return line.substr(colon + 2);
    return "unknown processors";
}

} // namespace plait::bench
