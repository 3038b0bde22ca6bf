#include <plait/apps/bench/runtime/peers/caf/caf.hpp>

#include <plait/apps/bench/runtime/flood.hpp>
#include <plait/apps/bench/runtime/peers/caf/system.hpp>

#include <vector>

namespace plait::bench::with_caf {

namespace {

/// Answers a number of messages with itself when it has taken so many, whoever sent them.
class receiver : public caf::event_based_actor {
public:
    explicit receiver(caf::actor_config& config)
        : caf::event_based_actor(config)
    {
    }

    caf::behavior make_behavior() override
    {
        return {[this](std::int64_t from, std::int64_t number) {
                    order_.see(from, number);
                    answer();
                },
                [this](std::int64_t expected) {
                    expected_ = expected;
                    done_ = make_response_promise();
                    auto const out = done_;
                    answer();
                    return out;
                }};
    }

private:
    void answer()
    {
        if (order_.taken() == expected_) done_.deliver(order_.taken());
    }

    order_check order_;
    std::int64_t expected_ = -1;
    caf::response_promise done_;
};

class sender : public caf::event_based_actor {
public:
    sender(caf::actor_config& config, caf::actor to, std::int64_t number)
        : caf::event_based_actor(config)
        , to_(std::move(to))
        , number_(number)
    {
    }

    caf::behavior make_behavior() override
    {
        return {[this](std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
                send(to_, number_, next_++);
        }};
    }

private:
    caf::actor to_;
    std::int64_t number_;
    std::int64_t next_ = 0;
};

} // namespace

sample flood(std::int64_t n)
{
    settings config(2);
    caf::actor_system system(config);
    auto to = system.spawn<receiver>();
    std::vector<caf::actor> from;
    for (std::int64_t i = 0; i < senders; ++i)
        from.push_back(system.spawn<sender>(to, i));
    std::int64_t expected = 0;
    auto all = [&](std::int64_t each) {
        for (auto const& one : from)
            caf::anon_send(one, each);
        expected += each * senders;
        check(ask(system, to, expected), expected, "flood");
    };
    all(warm_up(n / senders));
    meter m;
    all(n / senders);
    auto out = m.over(n / senders * senders);
    caf::anon_send_exit(to, caf::exit_reason::user_shutdown);
    for (auto const& one : from)
        caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    return out;
}

} // namespace plait::bench::with_caf
