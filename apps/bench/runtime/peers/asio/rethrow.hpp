#pragma once

#include <exception>

namespace plait::bench::with_asio {

/// Throws out of the context's run() what a coroutine has thrown.
inline constexpr auto rethrow = [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
};

} // namespace plait::bench::with_asio
