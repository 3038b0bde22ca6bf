#include <plait/actors/runtime/runtime.hpp>

#include <plait/actors/runtime/runtime_list.hpp>
#include <plait/actors/runtime/runtime_threads.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace plait {

namespace {

/// Processors that the cgroup's quota allows; 0 when there is no quota.
unsigned cgroup_cpus()
{
    auto rounded = [](double quota, double period) {
        return quota > 0 && period > 0 ? static_cast<unsigned>(std::max(1L, std::lround(quota / period))) : 0U;
    };
    // Version 2: "<quota or max> <period>".
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
        std::string quota;
        double period = 0;
        file >> quota >> period;
        return rounded(quota == "max" ? 0 : std::strtod(quota.c_str(), nullptr), period);
    }
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    double quota = 0;
    double period = 0;
    if (quota_file >> quota && period_file >> period) return rounded(quota, period);
    return 0;
}

} // namespace

struct runtime::state final : detail::actor_registry {
    state(runtime& owner, std::unique_ptr<detail::machine> below, runtime_hooks given)
        : actor_registry(owner, given.find_ask_cycles)
        , below(std::move(below))
        , hooks(std::move(given))
    {
    }

    plait::clock& clock() noexcept override { return below->clock(); }

    void unhandled(failure const& f) noexcept override
    {
        if (hooks.on_unhandled) {
            hooks.on_unhandled(f);
            return;
        }
        runs.fail(f.exception);
    }

    std::unique_ptr<detail::machine> const below;
    runtime_hooks const hooks;
    detail::run_registry runs;
    std::optional<detail::listed_runtime> listed{std::in_place, *this, runs}; ///< none once the runtime has ended
};

runtime::runtime(runtime_options const& options)
    : runtime(detail::make_thread_machine(options), options)
{
}

runtime::runtime(std::unique_ptr<detail::machine> below, runtime_hooks hooks)
    : state_(std::make_shared<state>(*this, std::move(below), std::move(hooks)))
{
}

runtime::~runtime()
{
    auto& below = *state_->below;
    state_->runs.stop_all(below);
    state_->stop_all(below);
    below.end();
    state_->listed.reset();
    state_->orphan_all();
}

void runtime::wind_down(work& then) noexcept
{
    struct actors_next : work {
        state* all = nullptr;
        work* then = nullptr;
    };
    auto* next = new actors_next;
    next->all = state_.get();
    next->then = &then;
    next->run = [](work& self) noexcept {
        std::unique_ptr<actors_next> next(&static_cast<actors_next&>(self));
        next->all->stop_all(*next->then);
    };
    state_->runs.stop_all(*next);
}

void runtime::drive(job_base& job, stop_token stop)
{
    using outcome = detail::machine::outcome;
    struct running {
        running(std::unique_ptr<detail::machine::guest> place, detail::run_registry& runs, job_base& j)
            : here(std::move(place))
            , all(runs)
            , job(j)
        {
            entry.source = &source;
            entry.place = &here->place();
            context.exec = entry.place;
            context.chains = &entry.chains;
            context.stop = source.token();
            start.self = this;
        }
        struct start_work : work {
            running* self;
        };

        std::unique_ptr<detail::machine::guest> here;
        detail::run_registry& all;
        job_base& job;
        stop_source source;
        detail::run_entry entry;
        task_context context;
        start_work start;
    };

    if (auto failure = state_->runs.take_failure()) std::rethrow_exception(failure);
    auto r = std::make_unique<running>(state_->below->come(), state_->runs, job);
    r->start.run = [](work& self) noexcept {
        auto& r = *static_cast<running::start_work&>(self).self;
        r.job.start(
            r.context,
            [](void* owner) noexcept {
                auto& r = *static_cast<running*>(owner);
                r.job.finish();
                r.all.ended(r.entry);
                r.here->end();
            },
            &r);
    };
    state_->runs.add(r->entry);
    auto how = outcome::ended;
    {
        auto pass_on = [source = &r->source] { source->request_stop(); };
        stop_callback on_stop(stop, pass_on);
        r->here->place().post(r->start);
        how = r->here->run();
        if (how != outcome::ended) {
            r->source.request_stop();
            if (r->here->run() != outcome::ended) {
                // What waits although it was asked to stop can't be destroyed under whoever it waits for: it is left as
                // it is, for good.
                job.abandon();
                state_->runs.remove(r->entry);
                detail::keep_for_good(r.release());
                throw error(errc::deadlock, how == outcome::stuck ? "it waits for ever, and a stop does not end it"
                                                                  : "it goes on for ever, and a stop does not end it");
            }
        }
    }
    state_->runs.remove(r->entry);
    auto const why = r->here->why();
    r.reset();
    if (auto failure = state_->runs.take_failure()) std::rethrow_exception(failure);
    if (how == outcome::interrupted) std::rethrow_exception(why);
    if (how == outcome::stuck) throw error(errc::deadlock, "every task waits for another one");
    if (how == outcome::endless) throw error(errc::deadlock, "it goes on and gets nowhere");
}

std::shared_ptr<event_loop> runtime::new_loop(std::string name)
{
    return new_loop(loop_options{std::move(name)});
}

std::shared_ptr<event_loop> runtime::new_loop(loop_options const& options)
{
    auto& loop = state_->below->start_loop(options);
    return {&loop, [home = std::weak_ptr(state_)](event_loop* unowned) {
                if (auto state = home.lock()) state->below->end_loop(*unowned);
            }};
}

executor& runtime::pool() noexcept
{
    return state_->below->pool();
}

bool runtime::simulated() const noexcept
{
    return state_->below->simulated();
}

bool runtime::has_threads() const noexcept
{
    return state_->below->has_threads();
}

plait::clock& runtime::clock() noexcept
{
    return state_->below->clock();
}

std::uint64_t runtime::random_seed()
{
    return state_->below->random_seed();
}

std::size_t runtime::actors() const noexcept
{
    return state_->living();
}

lifecycle_subscription runtime::on_lifecycle(std::function<void(lifecycle_event const&)> hook)
{
    return {state_->lifecycle, std::move(hook)};
}

std::vector<actor_activity> runtime::activity() const
{
    std::vector<actor_activity> all;
    state_->for_each([&](detail::actor_core& core) {
        if (auto const* c = core.counters()) {
            auto const relaxed = std::memory_order_relaxed;
            all.push_back({core.label(), c->messages.load(relaxed), std::chrono::nanoseconds(c->queued.load(relaxed)),
                           std::chrono::nanoseconds(c->ran.load(relaxed))});
        }
    });
    return all;
}

bool runtime::counts() const noexcept
{
    return state_->hooks.counters;
}

detail::run_registry& runtime::runs() noexcept
{
    return state_->runs;
}

std::shared_ptr<detail::actor_registry> runtime::registry() noexcept
{
    return state_;
}

bool runtime::owns(executor const& place) noexcept
{
    return state_->below->owns(place);
}

unsigned runtime::available_cpus() noexcept
{
    unsigned cpus = std::thread::hardware_concurrency();
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<unsigned>(CPU_COUNT(&set));
#endif
    try {
        if (auto quota = cgroup_cpus()) cpus = std::min(cpus, quota);
    } catch (...) {
        // An unreadable quota is no quota.
    }
    return std::max(1U, cpus);
}

} // namespace plait
