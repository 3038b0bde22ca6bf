#pragma once

#include <plait/actors/ref.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/task.hpp>

#include <memory>

namespace plait {

namespace detail {

/// An event that is set when the object of `core` has been destroyed; set already for a null core.
std::shared_ptr<event> when_gone(actor_core* core);

} // namespace detail

/// `co_await gone(r)`: waits until the actor of `r` has been destroyed, for whatever reason; a stop ends the wait. The
/// handle does not keep the actor meanwhile.
template<class A>
task<> gone(weak_ref<A> watched)
{
    auto end = detail::when_gone(detail::ref_access::core(watched));
    co_await end->wait();
}

} // namespace plait
