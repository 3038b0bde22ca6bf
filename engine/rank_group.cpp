#include <algorithm>

#include <plait/actors/ask.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/engine/rank_group.hpp>
#include <plait/engine/shared_progress.hpp>
#include <plait/streams/host/compute_pool.hpp>
#include <plait/streams/host/host_device.hpp>
#include <plait/streams/host/host_group.hpp>

namespace plait {

namespace {

device_maker maker_of(runtime& home, std::optional<simulated_devices> const& simulated)
{
    if (simulated)
        return [&home, how = simulated->each](std::size_t, std::shared_ptr<host::compute_pool> const&,
                                              std::size_t memory) -> std::unique_ptr<device> {
            return std::make_unique<sim::sim_device>(home, memory, how);
        };
    return [](std::size_t, std::shared_ptr<host::compute_pool> pool, std::size_t memory) -> std::unique_ptr<device> {
        return std::make_unique<host::host_device>(std::move(pool), memory);
    };
}

} // namespace

rank_group::rank_group(runtime& home, settings what)
    : home_(home)
    , what_(std::move(what))
{
    if (!what_.make_device) what_.make_device = maker_of(home, what_.simulated);
    make();
}

/// Replicas have devices of the same numbers, and after a failure they are made anew.
std::string rank_group::name_in_record(std::size_t device) const
{
    auto out = "device " + std::to_string(device);
    if (what_.replicas > 1) out += " of replica " + std::to_string(what_.replica);
    if (made_ > 1) out += ", made " + std::to_string(made_) + " times";
    return out;
}

void rank_group::make()
{
    ++made_;
    auto const& spread = what_.spread;
    host::host_group_options how;
    how.hang_limit = what_.hang_limit;
    how.check = what_.check_collectives;
    if (what_.simulated) how.link = what_.simulated->link;
    how.fabric = host::make_host_fabric();
    auto group = [&](std::string name, std::int32_t size) {
        how.name = std::move(name);
        return host::make_host_group(home_, size, how);
    };
    // Group s of `tensor` has the ranks that share the layers of stage s.
    std::vector<std::vector<std::unique_ptr<communicator>>> tensor;
    for (std::int32_t stage = 0; spread.tensor > 1 && stage < spread.pipeline; ++stage)
        tensor.push_back(group("the ranks of stage " + std::to_string(stage), spread.tensor));
    // Group r of `stages` has rank r of every stage.
    std::vector<std::vector<std::unique_ptr<communicator>>> stages;
    for (std::int32_t rank = 0; spread.pipeline > 1 && rank < spread.tensor; ++rank)
        stages.push_back(group("the stages of rank " + std::to_string(rank), spread.pipeline));
    for (std::size_t i = 0; i < what_.parts.size(); ++i) {
        auto const& part = what_.parts[i];
        auto device = what_.make_device(i, what_.pool, static_cast<std::size_t>(what_.memory));
        if (what_.record)
            device->record_in(what_.record->add(name_in_record(i) + ": " + device->description(), home_.clock()));
        if (description_.empty()) description_ = device->description();
        rank_membership member;
        if (!tensor.empty())
            member.tensor =
                std::move(tensor[static_cast<std::size_t>(part.stage)][static_cast<std::size_t>(part.rank)]);
        if (!stages.empty())
            member.stages =
                std::move(stages[static_cast<std::size_t>(part.rank)][static_cast<std::size_t>(part.stage)]);
        auto loop = home_.new_loop("plait-gpu-" + std::to_string(i));
        ranks_.push_back(home_.spawn_on<rank>(loop, std::ref(*loop), std::move(device), std::move(member)));
    }
    if (what_.parts.size() > 1 && !description_.starts_with(std::to_string(what_.parts.size()) + " × "))
        description_ = std::to_string(what_.parts.size()) + " × " + description_;
}

task<> rank_group::load(std::function<void(double)> report)
{
    auto const heard = share_progress(ranks_.size(), report);
    auto one = [&](std::size_t i) -> task<> {
        auto options = what_.rank;
        options.part = what_.parts[i];
        co_await ask<&rank::prepare>(ranks_[i], std::move(options));
        for (double done = 0; done < 1;) {
            done = co_await ask<&rank::load_next>(ranks_[i]);
            if (heard[i]) heard[i](done);
        }
    };
    std::vector<task<>> all;
    all.reserve(ranks_.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        all.push_back(one(i));
    co_await when_all(std::move(all));
}

task<step_result> rank_group::run(step_batch batch)
{
    // A step that some ranks have is not taken from the others: no stop is seen here.
    // The first rank of the last stage: all ranks of that stage have the same result.
    auto answering = ranks_.size() - static_cast<std::size_t>(what_.spread.tensor);
    std::vector<task<step_result>> all;
    all.reserve(ranks_.size());
    for (std::size_t i = 0; i + 1 < ranks_.size(); ++i)
        all.push_back(shield(ask<&rank::run>(ranks_[i], step_batch(batch))));
    all.push_back(shield(ask<&rank::run>(ranks_.back(), std::move(batch))));
    auto results = co_await when_all(std::move(all));
    co_return std::move(results[answering]);
}

task<> rank_group::abandon(std::exception_ptr why)
{
    for (auto const& r : ranks_)
        (void)co_await as_result(tell<&rank::abandon>(r, why)); // one that has gone needs no telling
}

task<> rank_group::restart()
{
    co_await stop();
    make();
    std::function<void(double)> nobody;
    co_await load(std::move(nobody));
}

task<> rank_group::stop()
{
    for (auto const& r : ranks_)
        co_await plait::stop(r);
    ranks_.clear();
}

} // namespace plait
