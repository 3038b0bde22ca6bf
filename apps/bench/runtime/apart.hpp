#pragma once

#include <plait/apps/bench/runtime/processors.hpp>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <thread>

namespace plait::bench {

/// Whether the two sides of a workload run at the same time: on two threads and, where there are two processors, on one
/// each. Each side calls `here` where it works; `check` comes when both have ended.
class apart {
public:
    void here(std::size_t side)
    {
        auto& one = sides_.at(side);
        one.thread = std::this_thread::get_id();
        one.processor = ::sched_getcpu();
    }

    void check() const
    {
        auto const& [one, two] = sides_;
        if (one.thread == std::thread::id() || two.thread == std::thread::id() || one.thread == two.thread)
            throw std::logic_error("both sides of a workload ran on one thread");
        if (processor(1) && one.processor == two.processor)
            throw std::logic_error("both sides of a workload ran on one processor");
    }

private:
    struct side {
        std::thread::id thread;
        int processor = -1;
    };
    std::array<side, 2> sides_;
};

} // namespace plait::bench
