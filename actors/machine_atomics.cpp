#include <plait/actors/machine_atomics.hpp>

#include <thread>

namespace plait::detail {

void machine_atomics::yield() noexcept
{
    std::this_thread::yield();
}

void const* machine_atomics::this_thread() noexcept
{
    static constinit thread_local char mark = 0;
    return &mark;
}

} // namespace plait::detail
