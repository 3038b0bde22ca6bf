#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/options.hpp>
#include <plait/engine/rank.hpp>
#include <plait/engine/simulated_devices.hpp>

namespace plait {

/// The devices of an engine and the ranks that live on them: one actor a device, all of which run every step.
/// Used by one task at a time, except for run().
class rank_group {
public:
    struct settings {
        std::shared_ptr<host::compute_pool> pool; ///< that the host's devices share; null where they are simulated
        std::int64_t memory = 0;                  ///< bytes of each device
        parallelism spread;
        std::vector<shard> parts;                   ///< one a rank: divide(spread, …)
        rank_options rank;                          ///< of every rank; `part` is filled in
        duration hang_limit{};                      ///< of the groups
        bool check_collectives = false;             ///< in them
        std::optional<simulated_devices> simulated; ///< instead of the host's
        device_maker make_device;                   ///< null: host devices, or simulated ones
        std::shared_ptr<trace> record;              ///< of the devices, or null
        std::int32_t replica = 0;                   ///< which of the engine's, in the record
        std::int32_t replicas = 1;
    };

    /// Makes the devices and the actors. Throws error(errc::invalid_argument) for threads that the runtime can't have.
    rank_group(runtime& home, settings what);

    /// Opens the model on every rank and loads it; `report` hears the part that is done, 0 … 1.
    task<> load(std::function<void(double)> report);

    /// Runs a step on every rank; gives the result of the last stage's. Throws the first failure once all have ended.
    task<step_result> run(step_batch batch);

    /// Gives up what is in flight: every device fails with `why`, and every run() throws it or what it led to.
    task<> abandon(std::exception_ptr why);

    /// Makes everything anew and loads it, after a device was lost: what was there is stopped first. No run() is under
    /// way.
    task<> restart();

    /// Stops the actors; returns when they and their devices are gone.
    task<> stop();

    /// For people: the kind of device, and how many.
    std::string const& description() const noexcept { return description_; }

private:
    void make();
    std::string name_in_record(std::size_t device) const;

    runtime& home_;
    settings what_;
    std::vector<ref<rank>> ranks_;
    std::string description_;
    std::int32_t made_ = 0; ///< how often
};

} // namespace plait
