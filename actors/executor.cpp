#include <plait/actors/executor.hpp>

namespace plait {

executor::~executor() = default;

unsigned executor::patience() const noexcept
{
    return 128;
}

bool executor::serial() const noexcept
{
    return true;
}

namespace detail {

executor*& current_executor() noexcept
{
    static constinit thread_local executor* current = nullptr;
    return current;
}

} // namespace detail

} // namespace plait
