#pragma once

#include <plait/actors/ref.hpp>

#include <string>

namespace plait {

namespace detail {

bool post_crash(actor_core& core, std::string why, site where);

} // namespace detail

/// Has the actor fail when it has taken what it was sent before, as if a method that it was told had thrown
/// std::runtime_error(`why`): a supervisor restarts it, and without one it is an unhandled failure. For tests of what
/// stands around an actor. False when it has stopped; from any thread, and whatever the mailbox's bound.
template<class A>
bool crash(ref<A> const& target, std::string why = "crashed on purpose", site where = here())
{
    auto* core = detail::ref_access::core(target);
    return core && detail::post_crash(*core, std::move(why), where);
}

} // namespace plait
