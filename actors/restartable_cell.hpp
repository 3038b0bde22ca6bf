#pragma once

#include <plait/actors/actor.hpp>

#include <tuple>
#include <utility>

namespace plait::detail {

/// An actor that can be made again from the arguments that it was made from.
template<class A, class... Args>
class restartable_cell final : public actor_cell<A> {
public:
    template<class... From>
    restartable_cell(executor& place, std::shared_ptr<actor_registry> home, std::uint64_t bound, From&&... arguments)
        : actor_cell<A>(place, std::move(home), bound)
        , arguments_(std::forward<From>(arguments)...)
    {
    }

    template<class... More>
    A& construct_with(More&&... more)
    {
        return std::apply(
            [&](Args const&... arguments) -> A& { return this->construct(arguments..., std::forward<More>(more)...); },
            arguments_);
    }

private:
    void rebuild(bool there_is_one) override
    {
        if (!there_is_one) {
            construct_with();
        } else if constexpr (requires(A& a) { a.hand_over(); }) {
            auto kept = last_will();
            construct_with(std::move(kept));
        } else {
            this->destroy_object();
            construct_with();
        }
        if constexpr (requires(A& a) { a.restarted(); }) this->object().restarted();
    }

    /// What the object hands over; it is gone after this, whatever happens.
    auto last_will()
    {
        struct destroy {
            restartable_cell* self;
            ~destroy() { self->destroy_object(); }
        } after{this};
        return this->object().hand_over();
    }

    std::tuple<Args...> arguments_;
};

} // namespace plait::detail
