#pragma once

#include <bitset>
#include <string>
#include <thread>

namespace plait::detail {

/// Processors that threads may run on. Where the system can't be asked, the first ones, and no thread is moved.
class cpu_set {
public:
    cpu_set() = default;
    explicit cpu_set(unsigned cpu);

    /// Those of the calling thread: the process's, unless the thread was moved.
    static cpu_set of_this_thread() noexcept;

    bool contains(unsigned cpu) const noexcept { return cpu < cpus_.size() && cpus_[cpu]; }
    /// For people: "0-3, 8".
    std::string text() const;

    /// From now on `thread` runs on these only. False when the system refuses.
    bool hold(std::thread::native_handle_type thread) const noexcept;

private:
    std::bitset<1024> cpus_; // as many as the system's own sets have
};

} // namespace plait::detail
