#pragma once

#include <string>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace plait::detail {

/// What debuggers and `top` call the calling thread.
inline void name_this_thread([[maybe_unused]] std::string const& name) noexcept
{
#if defined(__linux__)
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); // the kernel's limit
#endif
}

} // namespace plait::detail
