#include <plait/apps/bench/runtime/peers/caf/caf.hpp>

#include <plait/apps/bench/runtime/peers/caf/system.hpp>

#include <functional>

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
            begin(warm_up(n), [this, n] {
                meter_ = meter();
                begin(n, [this, n] {
                    *out_ = meter_.over(n);
                    done_.deliver(sum_);
                });
            });
            return done_;
        }};
    }

private:
    template<class Then>
    void begin(std::int64_t n, Then then)
    {
        sum_ = 0;
        n_ = n;
        then_ = std::move(then);
        ask(0);
    }

    void ask(std::int64_t i)
    {
        request(whom_, caf::infinite, i).then([this, i](std::int64_t got) {
            sum_ += got;
            if (i + 1 < n_) {
                ask(i + 1);
            } else {
                auto then = std::move(then_);
                then();
            }
        });
    }

    echo whom_;
    sample* out_;
    caf::response_promise done_;
    meter meter_;
    std::int64_t n_ = 0, sum_ = 0;
    std::function<void()> then_;
};

template<caf::spawn_options Options = caf::no_spawn_options>
sample ask(settings& config, std::int64_t n)
{
    caf::actor_system system(config);
    sample out;
    auto whom = system.spawn<Options>(same);
    auto who = system.spawn<asker, Options>(whom, &out);
    check(run(system, who, n), sum_below(n), "ask");
    return out;
}

} // namespace

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
