#include <plait/actors/simulation/simulation.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/machine.hpp>
#include <plait/actors/simulation/split_mix.hpp>

#include <algorithm>
#include <cassert>
#include <list>
#include <optional>
#include <string>
#include <thread>

namespace plait {

namespace {

class seeded_chooser final : public chooser {
public:
    explicit seeded_chooser(std::uint64_t seed) noexcept
        : numbers_(seed)
    {
    }
    std::uint32_t choose(std::uint32_t n) noexcept override { return numbers_.below(n); }

private:
    detail::split_mix numbers_;
};

/// Follows a list of choices, then always takes the first; remembers what it was asked.
class scripted_chooser final : public chooser {
public:
    explicit scripted_chooser(std::vector<std::uint32_t> script) noexcept
        : taken_(std::move(script))
    {
    }

    std::uint32_t choose(std::uint32_t n) noexcept override
    {
        if (at_ == taken_.size()) taken_.push_back(0);
        of_.resize(taken_.size());
        of_[at_] = n;
        auto chosen = taken_[at_++];
        fits_ = fits_ && chosen < n;
        return chosen < n ? chosen : 0;
    }

    /// Whether every choice was one of those that there were.
    bool fits() const noexcept { return fits_ && at_ == taken_.size(); }

    std::vector<std::uint32_t> const& taken() const noexcept { return taken_; }

    /// The next script in depth-first order; false after the last.
    bool advance()
    {
        taken_.resize(at_);
        while (!taken_.empty() && taken_.back() + 1 >= of_[taken_.size() - 1])
            taken_.pop_back();
        if (taken_.empty()) return false;
        ++taken_.back();
        at_ = 0;
        return true;
    }

private:
    std::vector<std::uint32_t> taken_;
    std::vector<std::uint32_t> of_; ///< how many there were to choose from
    std::size_t at_ = 0;
    bool fits_ = true;
};

/// So many of the oldest works of a pool are what a step chooses from: a crowd costs no more than that.
constexpr std::uint32_t most_ways = 256;

/// Works that are ready at one place.
class place final : public event_loop {
public:
    place(std::uint32_t number, bool serial) noexcept
        : number_(number)
        , serial_(serial)
    {
    }

    std::uint32_t number() const noexcept { return number_; }
    /// Ways to go on here: the oldest work, or any where nothing keeps them in order; and the devices.
    std::uint32_t ways() const noexcept { return held_until_ ? 0 : works() + (asked_ && !pollers_.empty() ? 1 : 0); }

    void go(std::uint32_t way, bool direct_calls)
    {
        auto* outer = std::exchange(detail::current_executor(), direct_calls ? this : nullptr);
        if (way < works()) {
            run_work(way);
        } else {
            poll();
        }
        detail::current_executor() = outer;
    }

    void post(work& w) noexcept override
    {
        assert(thread_ == std::this_thread::get_id() && "something came into a simulation from another thread");
        works_.push_back(w);
        ++ready_;
    }

    /// Does not go that way until a time: all of it waits where order is kept, else only that work.
    void hold(std::uint32_t way, time_point until)
    {
        if (serial_) {
            held_until_ = until;
        } else {
            held_.push_back({until, take(way)});
        }
    }
    /// When something that is held may go on.
    std::optional<time_point> next_release() const noexcept
    {
        auto first = held_until_;
        for (auto const& h : held_)
            first = std::min(first.value_or(h.until), h.until);
        return first;
    }
    void release(time_point now) noexcept
    {
        if (held_until_ && *held_until_ <= now) held_until_.reset();
        std::erase_if(held_, [&](held const& h) {
            if (h.until > now) return false;
            post(*h.what);
            return true;
        });
    }

    /// Runs what is queued, for the last time.
    void run_out() noexcept
    {
        release(time_point::max());
        while (ready_ > 0)
            run_work(0);
    }

    /// So that each work of an actor is a step.
    unsigned patience() const noexcept override { return 1; }
    bool serial() const noexcept override { return serial_; }

    void attach(poller& p) override
    {
        pollers_.push_back(&p);
        asked_ = true;
    }
    void detach(poller& p) noexcept override { std::erase(pollers_, &p); }

private:
    std::uint32_t works() const noexcept { return std::min(ready_, serial_ ? 1 : most_ways); }

    work* take(std::uint32_t which) noexcept
    {
        detail::work_list before;
        for (; which > 0; --which)
            before.push_back(*works_.pop_front());
        auto* w = works_.pop_front();
        works_.prepend(before);
        --ready_;
        return w;
    }

    void run_work(std::uint32_t which) noexcept
    {
        auto* w = take(which);
        asked_ = true;
        w->run(*w);
    }

    void poll()
    {
        bool busy = false;
        for (std::size_t i = 0; i < pollers_.size(); ++i)
            busy |= pollers_[i]->poll();
        asked_ = busy;
    }

    std::uint32_t const number_;
    bool const serial_;
    std::thread::id const thread_ = std::this_thread::get_id();
    detail::work_list works_;
    std::uint32_t ready_ = 0;
    std::vector<poller*> pollers_;
    bool asked_ = false; ///< the devices may have something to do

    struct held {
        time_point until;
        work* what;
    };
    std::vector<held> held_;
    std::optional<time_point> held_until_;
};

/// Virtual time. Some of those who are due may be let sleep on.
class virtual_clock final : public clock {
public:
    time_point now() const noexcept override { return now_; }

    /// Moves on to `t`; `late` gives how late each is who is due then.
    template<class Late>
    void pass(time_point t, Late late) noexcept
    {
        now_ = std::max(now_, t);
        detail::work_list due;
        take_due(now_, due);
        while (auto* w = due.pop_front()) {
            auto& sleeper = static_cast<detail::timer&>(*w);
            auto const by = sleeper.late ? duration::zero() : late();
            if (by > duration::zero()) {
                put_off(sleeper, detail::later(now_, by));
            } else {
                sleeper.post();
            }
        }
    }

private:
    void earliest_changed() noexcept override {}

    time_point now_;
};

} // namespace

chooser::~chooser() = default;

class simulation::world final : public detail::machine {
public:
    explicit world(simulation_options const& options)
        : slowness_(options.slowness)
        , longest_stall_(options.longest_stall)
        , direct_calls_(options.direct_calls)
        , late_timers_(options.late_timers)
        , latest_(options.latest)
        , held_places_(options.held_places)
        , longest_hold_(options.longest_hold)
        , most_steps_(options.most_steps)
        , seeded_(options.seed)
        , random_(~options.seed)
        , chooser_(options.chooser ? *options.chooser : seeded_)
        , pool_(new_place(options.threads <= 1))
    {
    }

    bool simulated() const noexcept override { return true; }
    plait::clock& clock() noexcept override { return clock_; }
    std::uint64_t random_seed() override { return random_.next(); }
    executor& pool() noexcept override { return pool_; }
    event_loop& start_loop(loop_options const&) override { return new_place(true); }

    void end_loop(event_loop& loop) noexcept override
    {
        // Not now: one of its works may be what lets go of it.
        ended_.push_back(&loop);
    }

    bool owns(executor const& where) noexcept override
    {
        return std::ranges::any_of(places_, [&](place const& p) { return &p == &where; });
    }

    std::unique_ptr<guest> come() override { return std::make_unique<here>(*this); }

    void wait(std::mutex& mutex, detail::condition&, std::function<bool()> const& done) noexcept override
    {
        for (auto const last = steps_ + most_steps_;;) {
            {
                std::lock_guard lock(mutex);
                if (done()) return;
            }
            if (steps_ == last || !step()) std::terminate();
        }
    }

    void end() noexcept override
    {
        for (auto const last = steps_ + most_steps_; steps_ < last && step();) {
        }
    }

    std::shared_ptr<void const> sometimes(std::uint32_t one_in, std::function<void()> action)
    {
        auto what = std::make_shared<occasion>(occasion{one_in, std::move(action)});
        occasions_.push_back(what);
        return what;
    }

    std::uint32_t choose(std::uint32_t n) noexcept { return n == 1 ? 0 : chooser_.choose(n); }

    /// Whether something in it can't be ended.
    bool left_behind() const noexcept { return left_behind_; }

    time_point now() const noexcept { return clock_.now(); }
    std::uint64_t steps() const noexcept { return steps_; }
    std::uint64_t trace() const noexcept { return trace_; }

private:
    class here final : public guest {
    public:
        explicit here(world& all)
            : all_(all)
            , place_(all.new_place(true))
        {
        }
        ~here() override { all_.end_loop(place_); }
        executor& place() noexcept override { return place_; }
        outcome run() override
        {
            auto const last = all_.steps_ + all_.most_steps_;
            while (!ended_) {
                bool const endless = all_.steps_ == last;
                if (!endless && all_.step()) continue;
                // The second time the stop has not helped.
                all_.left_behind_ = std::exchange(failed_before_, true);
                return endless ? outcome::endless : outcome::stuck;
            }
            return outcome::ended;
        }
        void end() noexcept override { ended_ = true; }

    private:
        world& all_;
        plait::place& place_;
        bool ended_ = false;
        bool failed_before_ = false;
    };

    place& new_place(bool serial) { return places_.emplace_back(next_place_++, serial); }

    void note(std::uint64_t what) noexcept
    {
        trace_ = (trace_ ^ what) * 0x100000001b3U; // FNV-1a, eight bytes at a time
        trace_ ^= trace_ >> 29;
    }

    /// Something that happens now and then. Where all orders are run, the first are those without it.
    bool happens(std::uint32_t one_in) noexcept { return one_in > 0 && choose(one_in) == one_in - 1; }

    /// Some part of `longest`, all of it at most.
    duration part(duration longest) noexcept
    {
        auto const n = static_cast<std::int64_t>(choose(1000)) + 1;
        return longest / 1000 * n + longest % 1000 * n / 1000;
    }

    void let_happen() noexcept
    {
        for (std::size_t i = 0; i < occasions_.size(); ++i) {
            auto const what = occasions_[i].lock();
            if (!what || !happens(what->one_in)) continue;
            note(~std::uint64_t{i});
            what->action();
        }
        std::erase_if(occasions_, [](auto const& o) { return o.expired(); });
    }

    /// When something happens by itself.
    std::optional<time_point> next_time() noexcept
    {
        auto next = clock_.next_due();
        if (held_places_ == 0) return next;
        for (auto const& p : places_)
            if (auto const at = p.next_release()) next = std::min(next.value_or(*at), *at);
        return next;
    }

    void pass(time_point t) noexcept
    {
        clock_.pass(t, [&] { return happens(late_timers_) ? part(latest_) : duration::zero(); });
        if (held_places_ > 0)
            for (auto& p : places_)
                p.release(clock_.now());
        note(static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()));
    }

    /// Does one thing. False when there is nothing, now or later.
    bool step() noexcept
    {
        for (auto* loop : std::exchange(ended_, {})) {
            auto const over = std::ranges::find_if(places_, [&](place const& p) { return &p == loop; });
            over->run_out();
            places_.erase(over);
        }
        let_happen();
        std::uint32_t ways = 0;
        for (auto const& p : places_)
            ways += p.ways();
        auto const due = next_time();
        bool const sleeps = due && *due != time_point::max(); // that is how long those sleep who wait for a stop only
        bool const may_be_late = ways > 0 && slowness_ > 0 && sleeps && *due - clock_.now() <= longest_stall_;
        if (ways == 0 || (may_be_late && choose(slowness_) == 0)) {
            if (!sleeps) return false;
            ++steps_;
            pass(*due);
            return true;
        }
        ++steps_;
        bool const held = happens(held_places_);
        auto way = choose(ways);
        auto& p = place_of(way);
        if (held) {
            auto const until = detail::later(clock_.now(), part(longest_hold_));
            note(~(std::uint64_t{p.number()} << 32 | way));
            p.hold(way, until);
            return true;
        }
        auto const direct = direct_calls_ && choose(2) == 0;
        note(std::uint64_t{p.number()} << 32 | std::uint64_t{way} << 1 | (direct ? 1 : 0));
        p.go(way, direct);
        return true;
    }

    /// The place of one of all the ways to go on, which is then one of its own.
    place& place_of(std::uint32_t& way) noexcept
    {
        auto p = places_.begin();
        for (; way >= p->ways(); ++p)
            way -= p->ways();
        return *p;
    }

    struct occasion {
        std::uint32_t one_in;
        std::function<void()> action;
    };

    std::uint32_t const slowness_;
    duration const longest_stall_;
    bool const direct_calls_;
    std::uint32_t const late_timers_;
    duration const latest_;
    std::uint32_t const held_places_;
    duration const longest_hold_;
    std::uint64_t const most_steps_;
    virtual_clock clock_;
    seeded_chooser seeded_;
    detail::split_mix random_;
    plait::chooser& chooser_;
    std::list<place> places_;
    std::uint32_t next_place_ = 0;
    std::vector<event_loop*> ended_;
    std::vector<std::weak_ptr<occasion const>> occasions_;
    place& pool_;
    bool left_behind_ = false;
    std::uint64_t steps_ = 0;
    std::uint64_t trace_ = 0xcbf29ce484222325U;
};

simulation::simulation(simulation_options options)
    : world_(nullptr)
{
    auto below = std::make_unique<world>(options);
    world_ = below.get();
    home_ = std::make_unique<runtime>(std::move(below), std::move(options));
}

simulation::~simulation()
{
    // What can't be ended can't be destroyed either.
    if (world_->left_behind()) detail::keep_for_good(home_.release());
}

simulation::fault simulation::sometimes(std::uint32_t one_in, std::function<void()> action)
{
    return fault(world_->sometimes(one_in, std::move(action)));
}

std::uint32_t simulation::choose(std::uint32_t n) noexcept
{
    return world_->choose(n);
}

time_point simulation::now() const noexcept
{
    return world_->now();
}

std::uint64_t simulation::steps() const noexcept
{
    return world_->steps();
}

std::uint64_t simulation::trace() const noexcept
{
    return world_->trace();
}

namespace {

/// The order is the script's alone: time passes when nothing else can happen, and asks are messages.
void follow(scripted_chooser& script, simulation_options& options)
{
    options.chooser = &script;
    options.slowness = 0;
    options.direct_calls = false;
    options.late_timers = 0;
    options.held_places = 0;
}

std::string text_of(std::exception_ptr const& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (std::exception const& e) {
        return e.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

/// What `body` throws in a simulation of `options`, or null.
std::exception_ptr failure_of(std::function<void(simulation&)> const& body, simulation_options const& options)
{
    try {
        simulation all(options);
        body(all);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

} // namespace

exploration explore_seeds(std::function<void(simulation&)> const& body, std::uint64_t first, std::uint64_t count,
                          simulation_options options)
{
    exploration found;
    for (; found.runs < count && !found.failure; ++found.runs) {
        options.seed = found.seed = first + found.runs;
        found.failure = failure_of(body, options);
    }
    return found;
}

exploration explore_all(std::function<void(simulation&)> const& body, std::uint64_t most, simulation_options options)
{
    exploration found;
    found.orders = true;
    scripted_chooser script({});
    follow(script, options);
    while (found.runs < most && !found.complete && !found.failure) {
        found.failure = failure_of(body, options);
        ++found.runs;
        if (!script.fits())
            found.failure = std::make_exception_ptr(
                error(errc::invalid_argument, "the body's runs differ by more than the order of its steps"));
        if (found.failure) {
            found.choices = script.taken();
        } else {
            found.complete = !script.advance();
        }
    }
    return found;
}

std::string describe(exploration const& found)
{
    auto const runs = std::to_string(found.runs);
    if (!found.failure) {
        if (!found.orders) return "no seed of " + runs + " failed";
        return (found.complete ? "none of the " : "none of the first ") + runs + " orders failed";
    }
    if (!found.orders) {
        auto const seed = std::to_string(found.seed);
        return "seed " + seed + " failed: " + text_of(found.failure) + "\nagain: explore_seeds(body, " + seed + ", 1)";
    }
    std::string choices;
    for (auto c : found.choices)
        choices += (choices.empty() ? "" : ", ") + std::to_string(c);
    return "order " + runs + " failed: " + text_of(found.failure) + "\nagain: replay(body, {" + choices + "})";
}

void replay(std::function<void(simulation&)> const& body, std::vector<std::uint32_t> choices,
            simulation_options options)
{
    scripted_chooser script(std::move(choices));
    follow(script, options);
    auto const failure = failure_of(body, options);
    if (!script.fits()) throw error(errc::invalid_argument, "a replay of another program, or of other options");
    if (failure) std::rethrow_exception(failure);
}

} // namespace plait
