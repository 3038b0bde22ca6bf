#pragma once

#include <plait/actors/executor.hpp>
#include <plait/actors/stop.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>

namespace plait::detail {

class machine;

/// A task that the outside of the runtime has started.
struct run_entry {
    stop_source* source = nullptr;
    run_entry* next = nullptr;
    run_entry* previous = nullptr;
};

/// The tasks that run in a runtime and were started from outside, and the first failure that nobody handled.
class run_registry {
public:
    void add(run_entry& e) noexcept;
    void remove(run_entry& e) noexcept;

    /// Asks every task, also later ones, to stop, and returns when none is left.
    void stop_all(machine& below) noexcept;
    /// The same without waiting: `then` runs when none is left, on the thread of the last.
    void stop_all(work& then) noexcept;

    /// Keeps the first failure and stops what runs.
    void fail(std::exception_ptr failure) noexcept;
    /// Gives the failure away.
    std::exception_ptr take_failure() noexcept;

private:
    void request_stop_locked() noexcept;

    std::mutex mutex_;
    std::condition_variable empty_;
    run_entry* first_ = nullptr;
    work* then_ = nullptr;
    bool ending_ = false;
    std::exception_ptr failure_;
};

} // namespace plait::detail
