#include <plait/apps/bench/runtime/peers/caf/caf.hpp>

#include <plait/apps/bench/runtime/peers/caf/system.hpp>
#include <plait/apps/bench/runtime/tree.hpp>

namespace plait::bench::with_caf {

namespace {

/// One for each node and each leaf of the tree; the inner ones make the next.
class node : public caf::event_based_actor {
public:
    explicit node(caf::actor_config& config)
        : caf::event_based_actor(config)
    {
    }

    caf::behavior make_behavior() override
    {
        return {[this](std::int64_t first, std::int64_t leaves) -> caf::result<std::int64_t> {
            if (leaves == 1) return first;
            done_ = make_response_promise();
            left_ = branches;
            for (std::int64_t i = 0; i < branches; ++i) {
                request(spawn<node>(), caf::infinite, first + i * (leaves / branches), leaves / branches)
                    .then([this](std::int64_t sum) {
                        sum_ += sum;
                        if (--left_ == 0) done_.deliver(sum_);
                    });
            }
            return done_;
        }};
    }

private:
    caf::response_promise done_;
    std::int64_t left_ = 0, sum_ = 0;
};

} // namespace

sample tree_of_actors(std::int64_t n)
{
    settings config(1);
    caf::actor_system system(config);
    auto const leaves = leaves_of(n);
    auto add = [&](std::int64_t count) {
        std::int64_t out = -1;
        caf::scoped_actor self(system);
        self->request(system.spawn<node>(), caf::infinite, std::int64_t{0}, count)
            .receive([&](std::int64_t sum) { out = sum; }, [](caf::error const&) {});
        return out;
    };
    add(leaves_of(warm_up(n)));
    meter m;
    auto const sum = add(leaves);
    auto out = m.over(leaves);
    check(sum, sum_below(leaves), "tree");
    return out;
}

} // namespace plait::bench::with_caf
