#pragma once

#include <plait/actors/tasks/scope.hpp>
#include <plait/streams/communicator.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace plait::test {

/// What a rank of a group does, on its own gpu.
using rank_body = std::function<task<>(test_gpu&, int rank)>;

/// Runs `body` on `size` gpus that share a compute pool of `workers`, or, for 0, have one of one worker each; all at
/// once. Gives how each has ended, when all gpus are gone.
inline task<std::vector<result<void>>> outcomes_on_ranks(runtime& rt, int size, unsigned workers, rank_body body)
{
    auto const shared = workers > 0 ? std::make_shared<host::compute_pool>(rt, workers) : nullptr;
    std::vector<ref<test_gpu>> gpus;
    for (int rank = 0; rank < size; ++rank) {
        auto pool = shared ? shared : std::make_shared<host::compute_pool>(rt, 1);
        auto owned = std::make_unique<host::host_device>(std::move(pool), std::size_t(64) << 20);
        auto loop = rt.new_loop("plait-rank-" + std::to_string(rank));
        gpus.push_back(rt.spawn_on<test_gpu>(loop, std::ref(*loop), std::move(owned)));
    }
    std::vector<result<void>> outcomes(gpus.size());
    auto one = [&](std::size_t rank) -> task<> {
        test_gpu::body part = [&body, rank](test_gpu& g) { return body(g, static_cast<int>(rank)); };
        outcomes[rank] = co_await as_result(ask<&test_gpu::run>(gpus[rank], std::move(part)));
    };
    auto all = [&](scope& s) -> task<> {
        for (std::size_t rank = 0; rank < gpus.size(); ++rank)
            s.start(one(rank));
        co_return;
    };
    co_await with_scope(all);
    for (auto const& g : gpus)
        co_await stop(g);
    co_return outcomes;
}

/// The same where all are to end well; throws what the first that does not has thrown.
inline task<> on_ranks(runtime& rt, int size, unsigned workers, rank_body body)
{
    auto outcomes = co_await outcomes_on_ranks(rt, size, workers, std::move(body));
    for (auto& outcome : outcomes)
        std::move(outcome).value();
}

/// The text of a failure; "" for a success.
inline std::string text_of(result<void> const& outcome)
{
    if (outcome) return "";
    try {
        std::rethrow_exception(outcome.failure());
    } catch (std::exception const& e) {
        return e.what();
    }
}

} // namespace plait::test
