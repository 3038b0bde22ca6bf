#pragma once

#include <plait/actors/machine.hpp>

#include <memory>

namespace plait {

struct runtime_options;

namespace detail {

/// A machine of real threads, as `options` say.
std::unique_ptr<machine> make_thread_machine(runtime_options const& options);

} // namespace detail

} // namespace plait
