#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sched.h>

/// Which processors the threads of a workload run on.
namespace plait::bench {

/// The first or the second of the processors that this process may use, for threads that must not share one; nothing
/// where there are not two.
std::optional<unsigned> processor(std::size_t which);

/// While one lives, the calling thread runs on that processor; without one, where the system likes.
class on_processor {
public:
    explicit on_processor(std::optional<unsigned> which);
    on_processor(on_processor const&) = delete;
    on_processor& operator=(on_processor const&) = delete;
    ~on_processor();

private:
    std::optional<::cpu_set_t> before_;
};

/// What the machine's processors call themselves.
std::string processor_name();

} // namespace plait::bench
