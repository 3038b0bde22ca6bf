#pragma once

#include <plait/actors/tasks/frame.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace plait::detail {

class machine;
struct condition;

/// A task that the outside of the runtime has started.
struct run_entry {
    stop_source* source = nullptr;
    executor* place = nullptr; ///< where it runs; null once it has ended
    chain_list chains;
    std::uint64_t number = 0; ///< of all that were started, from 1
    run_entry* next = nullptr;
    run_entry* previous = nullptr;
};

/// The tasks that run in a runtime and were started from outside, and the first failure that nobody handled.
class run_registry {
public:
    run_registry();
    ~run_registry();

    void add(run_entry& e) noexcept;
    /// It has ended, on its place, which may go soon: nothing is posted there any more.
    void ended(run_entry& e) noexcept;
    void remove(run_entry& e) noexcept;

    /// Calls `f` with every one that has not ended; it is short and takes no lock of the registry.
    void for_each(std::function<void(run_entry&)> const& f);
    /// Calls `f` with the one of that number, if it has not ended; on its place.
    void with(std::uint64_t number, std::function<void(run_entry&)> const& f);

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
    std::unique_ptr<condition> const empty_;
    run_entry* first_ = nullptr;
    std::uint64_t added_ = 0;
    work* then_ = nullptr;
    bool ending_ = false;
    std::exception_ptr failure_;
};

} // namespace plait::detail
