#include <plait/actors/runtime/cpu_set.hpp>

#include <algorithm>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace plait::detail {

cpu_set::cpu_set(unsigned cpu)
{
    cpus_.set(cpu);
}

cpu_set cpu_set::of_this_thread() noexcept
{
    cpu_set here;
#if defined(__linux__)
    ::cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (unsigned cpu = 0; cpu < std::min<std::size_t>(here.cpus_.size(), CPU_SETSIZE); ++cpu) {
            here.cpus_[cpu] = CPU_ISSET(cpu, &set);
        }
        return here;
    }
#endif
    for (unsigned cpu = 0; cpu < std::min<std::size_t>(here.cpus_.size(), std::thread::hardware_concurrency()); ++cpu) {
        here.cpus_.set(cpu);
    }
    return here;
}

bool cpu_set::hold([[maybe_unused]] std::thread::native_handle_type thread) const noexcept
{
#if defined(__linux__)
    ::cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < std::min<std::size_t>(cpus_.size(), CPU_SETSIZE); ++cpu) {
        if (cpus_[cpu]) CPU_SET(cpu, &set);
    }
    return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
#else
    return true;
#endif
}

std::string cpu_set::text() const
{
    std::string all;
    for (unsigned first = 0; first < cpus_.size(); ++first) {
        if (!cpus_[first]) continue;
        auto last = first;
        while (contains(last + 1)) {
            ++last;
        }
        if (!all.empty()) all += ", ";
        all += std::to_string(first);
        if (last != first) all += "-" + std::to_string(last);
        first = last;
    }
    return all;
}

} // namespace plait::detail
