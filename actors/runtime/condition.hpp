#pragma once

#include <condition_variable>

namespace plait::detail {

/// A condition variable under a name that other headers can declare: the library's header takes a tenth of the time
/// that compiling all of this folder's takes.
struct condition final : std::condition_variable {};

} // namespace plait::detail
