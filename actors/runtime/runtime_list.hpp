#pragma once

#include <mutex>

namespace plait::detail {

class actor_registry;
class run_registry;

/// A runtime's place in the list of all that the process has. Nothing in plait reads the list: a debugger begins there
/// (plait_gdb.py).
class listed_runtime {
public:
    listed_runtime(actor_registry const& actors, run_registry const& tasks) noexcept;
    listed_runtime(listed_runtime const&) = delete;
    listed_runtime& operator=(listed_runtime const&) = delete;
    ~listed_runtime();

private:
    [[maybe_unused]] actor_registry const* actors_;
    [[maybe_unused]] run_registry const* tasks_;
    listed_runtime* next_ = nullptr;
    listed_runtime* previous_ = nullptr;
};

struct runtime_list {
    std::mutex mutex;
    listed_runtime* first = nullptr;
};
extern runtime_list all_runtimes;

} // namespace plait::detail
