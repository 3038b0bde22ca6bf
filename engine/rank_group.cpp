#include <algorithm>

#include <plait/actors/ask.hpp>
#include <plait/actors/when_all.hpp>
#include <plait/engine/rank_group.hpp>
#include <plait/streams/host/compute_pool.hpp>
#include <plait/streams/host/host_device.hpp>
#include <plait/streams/host/host_group.hpp>

namespace plait {

rank_group::rank_group(runtime& home, settings what)
    : what_(std::move(what))
{
    auto const& spread = what_.spread;
    auto pool = std::make_shared<host::compute_pool>(home, what_.threads);
    // Group s of `tensor` has the ranks that share the layers of stage s.
    std::vector<std::vector<std::unique_ptr<communicator>>> tensor;
    for (std::int32_t stage = 0; spread.tensor > 1 && stage < spread.pipeline; ++stage)
        tensor.push_back(host::make_host_group(home, spread.tensor));
    // Group r of `stages` has rank r of every stage.
    std::vector<std::vector<std::unique_ptr<communicator>>> stages;
    for (std::int32_t rank = 0; spread.pipeline > 1 && rank < spread.tensor; ++rank)
        stages.push_back(host::make_host_group(home, spread.pipeline));
    for (std::size_t i = 0; i < what_.parts.size(); ++i) {
        auto const& part = what_.parts[i];
        auto device = std::make_unique<host::host_device>(pool, static_cast<std::size_t>(what_.memory));
        if (description_.empty()) description_ = device->description();
        rank_membership member;
        if (!tensor.empty())
            member.tensor =
                std::move(tensor[static_cast<std::size_t>(part.stage)][static_cast<std::size_t>(part.rank)]);
        if (!stages.empty())
            member.stages =
                std::move(stages[static_cast<std::size_t>(part.rank)][static_cast<std::size_t>(part.stage)]);
        auto loop = home.new_loop("plait-gpu-" + std::to_string(i));
        ranks_.push_back(home.spawn_on<rank>(loop, std::ref(*loop), std::move(device), std::move(member)));
    }
    if (what_.parts.size() > 1) description_ = std::to_string(what_.parts.size()) + " × " + description_;
}

task<> rank_group::load(std::function<void(double)> report)
{
    std::vector<double> done(ranks_.size(), 0);
    auto one = [&](std::size_t i) -> task<> {
        auto options = what_.rank;
        options.part = what_.parts[i];
        co_await ask<&rank::prepare>(ranks_[i], std::move(options));
        while (done[i] < 1) {
            done[i] = co_await ask<&rank::load_next>(ranks_[i]);
            double sum = 0;
            for (auto part : done)
                sum += part;
            if (report) report(sum / static_cast<double>(done.size()));
        }
    };
    std::vector<task<>> all;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        all.push_back(one(i));
    co_await when_all(std::move(all));
}

task<step_result> rank_group::run(step_batch batch)
{
    // The first rank of the last stage: all ranks of that stage have the same result.
    auto answering = ranks_.size() - static_cast<std::size_t>(what_.spread.tensor);
    std::vector<task<step_result>> all;
    for (std::size_t i = 0; i + 1 < ranks_.size(); ++i)
        all.push_back(ask<&rank::run>(ranks_[i], step_batch(batch)));
    all.push_back(ask<&rank::run>(ranks_.back(), std::move(batch)));
    auto results = co_await when_all(std::move(all));
    co_return std::move(results[answering]);
}

task<> rank_group::stop()
{
    for (auto const& r : ranks_)
        co_await plait::stop(r);
}

} // namespace plait
