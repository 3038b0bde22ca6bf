#include <plait/apps/bench/runtime/peers/caf/caf.hpp>

#include <plait/apps/bench/runtime/peers/caf/system.hpp>

#include <optional>

namespace plait::bench::with_caf {

namespace {

using echo = caf::typed_actor<caf::replies_to<std::int64_t>::with<std::int64_t>>;

echo::behavior_type same()
{
    return {[](std::int64_t i) { return i; }};
}

/// Asks n times, one after the other.
class asker : public caf::event_based_actor {
public:
    asker(caf::actor_config& config, echo whom, sample* out)
        : caf::event_based_actor(config)
        , whom_(std::move(whom))
        , out_(out)
    {
    }

    caf::behavior make_behavior() override
    {
        return {[this](std::int64_t n) {
            done_ = make_response_promise();
            n_ = n;
            ask(0, warm_up(n));
            return done_;
        }};
    }

private:
    void ask(std::int64_t i, std::int64_t end)
    {
        request(whom_, caf::infinite, i).then([this, i, end](std::int64_t got) {
            sum_ += got;
            if (i + 1 < end) {
                ask(i + 1, end);
            } else {
                end_part();
            }
        });
    }

    void end_part()
    {
        if (times_) {
            times_->lap();
        } else {
            sum_ = 0;
            times_.emplace(n_);
        }
        if (times_->left()) {
            ask(0, times_->part());
        } else {
            *out_ = times_->over();
            done_.deliver(std::int64_t{sum_ == times_->sum()});
        }
    }

    echo whom_;
    sample* out_;
    caf::response_promise done_;
    std::optional<laps> times_; ///< none while it warms up
    std::int64_t n_ = 0, sum_ = 0;
};

template<caf::spawn_options Options = caf::no_spawn_options>
sample ask(settings& config, std::int64_t n)
{
    caf::actor_system system(config);
    sample out;
    auto whom = system.spawn<Options>(same);
    auto who = system.spawn<asker, Options>(whom, &out);
    check(run(system, who, n), 1, "ask");
    return out;
}

} // namespace

std::string version()
{
    return std::to_string(CAF_VERSION / 10'000) + "." + std::to_string(CAF_VERSION / 100 % 100) + "." +
           std::to_string(CAF_VERSION % 100);
}

sample ask_beside(std::int64_t n)
{
    settings config(1);
    return ask(config, n);
}

sample ask_across(std::int64_t n)
{
    settings config(2, true);
    return ask(config, n);
}

sample ask_asleep(std::int64_t n)
{
    settings config(1);
    return ask<caf::detached>(config, n);
}

} // namespace plait::bench::with_caf
