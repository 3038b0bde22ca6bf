#include <plait/actors/executor.hpp>

namespace plait {

executor::~executor() = default;

namespace detail {

executor*& current_executor() noexcept
{
    static constinit thread_local executor* current = nullptr;
    return current;
}

} // namespace detail

} // namespace plait
