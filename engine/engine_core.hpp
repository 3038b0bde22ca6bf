#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <plait/actors/actor.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/time/clock.hpp>
#include <plait/engine/answer.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/load_balance.hpp>
#include <plait/engine/rank_group.hpp>
#include <plait/engine/scheduler.hpp>

namespace plait {

/// The actor behind an engine. serve() runs for the engine's whole life: it issues a step, and while the device works
/// on that and the next one, hands out the tokens of the one before.
class engine_core final : public actor {
public:
    struct parts {
        runtime* home = nullptr;
        std::shared_ptr<rank_group> ranks;
        std::shared_ptr<engine_info const> info;
        engine_options options;
        scheduler_options schedule;
        doorbell bell;
        trace_part* record = nullptr;        ///< steps and requests, or null
        std::shared_ptr<load_balance> loads; ///< of all replicas
        std::size_t replica = 0;             ///< which of them this is
    };
    explicit engine_core(parts from);

    /// `place`: what the request counts for among the replicas.
    std::shared_ptr<answer_channel> submit(request what, reading read, load_balance::place place);
    task<> close(bool drain);
    engine_stats stats() const;

    /// Runs until the engine is closed and everything is given back.
    task<> serve();

private:
    struct flight;

    task<> steps(scope& running);
    task<> watch();
    task<> expire(std::shared_ptr<answer> late, time_point at);
    task<> progress_of(flight& oldest, event& what);
    task<> run_step(std::shared_ptr<flight> step);
    bool issue(scope& running);
    task<> retire(flight& step);
    void take_reads(flight const& step);
    task<> recover(std::exception_ptr why);
    void sweep();
    void fail_all(std::exception_ptr why);
    void end_answer(answer& a, finish_reason why);
    time_point now() const { return home_.clock().now(); }

    runtime& home_;
    std::shared_ptr<rank_group> ranks_;
    std::shared_ptr<engine_info const> info_;
    engine_options options_;
    std::shared_ptr<load_balance> loads_;
    std::size_t replica_;
    doorbell bell_; ///< rung by readers, and by whatever here changes what could run next
    /// Steps that are issued before the oldest of them must be done: one on each stage, and one whose tokens are handed
    /// out meanwhile, so that no device waits for the host.
    std::size_t depth_;
    scheduler scheduler_;
    std::deque<std::shared_ptr<flight>> in_flight_;
    event work_; ///< something changed: serve() looks again
    event closed_;
    scope* scope_ = nullptr;
    bool closing_ = false;
    bool draining_ = false;
    std::int32_t restarts_ = 0; ///< since the last step that was done
    std::exception_ptr failed_;
    engine_stats counters_;
    trace_part* record_;
    std::int64_t recorded_steps_ = 0;
    std::int64_t recorded_requests_ = 0;
};

} // namespace plait
