#include <plait/actors/asio/asio_machine.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/condition.hpp>
#include <plait/actors/runtime/runtime_threads.hpp>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>
#include <utility>

namespace plait::detail {

namespace {

/// While this thread runs the context, another one may make true what it waits for; nothing wakes it for that, so it
/// looks by itself: soon, and then ever more rarely while nothing happens.
constexpr auto first_look = std::chrono::milliseconds(1);
constexpr auto rarest_look = std::chrono::milliseconds(1024);

template<class Executor>
bool runs_here(asio::any_io_executor const& where) noexcept
{
    auto const* plain = where.target<Executor>();
    if (plain) return plain->running_in_this_thread();
    auto const* strand = where.target<asio::strand<Executor>>();
    return strand && strand->get_inner_executor().running_in_this_thread();
}

} // namespace

asio_pool::asio_pool(asio::any_io_executor const& underlying, std::atomic<std::size_t>& handlers) noexcept
    : underlying_(underlying)
    , handlers_(handlers)
{
}

void asio_pool::post(work& w) noexcept
{
    handlers_.fetch_add(1, std::memory_order_relaxed);
    asio::post(underlying_, [this, &w] {
        auto& handlers = handlers_;
        auto* outer = std::exchange(current_executor(), this);
        w.run(w);
        current_executor() = outer;
        handlers.fetch_sub(1, std::memory_order_release);
    });
}

struct asio_machine::loop {
    explicit loop(asio_machine& machine)
        : all(machine)
        , place(machine.where_, &machine.handlers_)
    {
        last.self = this;
        last.run = [](work& w) noexcept {
            auto& self = *static_cast<last_work&>(w).self;
            self.place.dispose_after_turn([](void* self) noexcept { static_cast<loop*>(self)->gone(); }, &self);
        };
    }

    /// After its last turn.
    void gone() noexcept
    {
        std::list<loop> over;
        std::lock_guard lock(all.mutex_);
        auto const self = std::ranges::find_if(all.loops_, [this](loop const& l) { return &l == this; });
        over.splice(over.end(), all.loops_, self);
    }

    asio_machine& all;
    asio_executor place;
    bool ending = false;
    struct last_work : work {
        loop* self;
    } last;
};

/// A place whose task some thread waits for.
class asio_machine::visitor final : public guest {
public:
    explicit visitor(asio_machine& all)
        : all_(all)
        , place_(all.where_, &all.handlers_)
    {
    }

    executor& place() noexcept override { return place_; }

    outcome run() override
    {
        if (all_.context_) {
            auto const over = [this] {
                std::lock_guard lock(mutex_);
                return over_;
            };
            return all_.run_context(over, &why_) ? outcome::ended : outcome::interrupted;
        }
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return over_; });
        return outcome::ended;
    }

    std::exception_ptr why() const noexcept override { return why_; }

    void end() noexcept override
    {
        place_.dispose_after_turn(
            [](void* self) noexcept {
                auto& v = *static_cast<visitor*>(self);
                // Most likely wakes the other thread, where that one runs the context as well.
                if (v.all_.context_ && v.waiting_ != std::this_thread::get_id()) asio::post(v.all_.where_, [] {});
                std::lock_guard lock(v.mutex_);
                v.over_ = true;
                v.changed_.notify_one();
            },
            this);
    }

private:
    asio_machine& all_;
    asio_executor place_;
    std::thread::id const waiting_ = std::this_thread::get_id();
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::exception_ptr why_;
};

asio_machine::asio_machine(asio::io_context& context, plait::clock* clock)
    : context_(&context)
    , where_(context.get_executor())
    , own_clock_(where_)
    , clock_(clock ? clock : &*own_clock_)
    , pool_(where_, handlers_)
{
}

asio_machine::asio_machine(asio::any_io_executor where, plait::clock* clock)
    : context_(nullptr)
    , where_(std::move(where))
    , own_clock_(where_)
    , clock_(clock ? clock : &*own_clock_)
    , pool_(where_, handlers_)
{
}

asio_machine::~asio_machine() = default;

std::uint64_t asio_machine::random_seed()
{
    return unpredictable_bits();
}

event_loop& asio_machine::start_loop(loop_options const& options)
{
    if (options.cpu)
        throw error(errc::invalid_argument,
                    "loop_options::cpu: this loop runs on the threads of somebody else's context");
    std::lock_guard lock(mutex_);
    return loops_.emplace_back(*this).place;
}

void asio_machine::end_loop(event_loop& ended) noexcept
{
    std::lock_guard lock(mutex_);
    for (auto& l : loops_) {
        if (&l.place == &ended && !std::exchange(l.ending, true)) {
            l.place.post(l.last);
            return;
        }
    }
}

bool asio_machine::owns(executor const& place) noexcept
{
    if (&place == &pool_) return true;
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(loops_, [&](loop const& l) { return &l.place == &place; });
}

bool asio_machine::inside() noexcept
{
    auto const* here = current_executor();
    return (here && owns(*here)) || runs_here<asio::io_context::executor_type>(where_) ||
           runs_here<asio::thread_pool::executor_type>(where_);
}

std::unique_ptr<machine::guest> asio_machine::come()
{
    if (inside())
        throw error(errc::invalid_argument, "run() within the Asio context that it would wait for: use async_start");
    return std::make_unique<visitor>(*this);
}

void asio_machine::check_can_wait()
{
    if (inside())
        throw error(errc::invalid_argument,
                    "an asio_runtime was destroyed within its own context: wait for async_end first");
    auto const* in = where_.target<asio::io_context::executor_type>();
    if (!context_ && in && in->context().stopped())
        throw error(errc::invalid_argument,
                    "an asio_runtime waits for an io_context that nobody runs: give it the context, not its executor");
}

void asio_machine::wait(std::mutex& mutex, condition& changed, std::function<bool()> const& done) noexcept
{
    auto const holds = [&] {
        std::lock_guard lock(mutex);
        return done();
    };
    if (holds()) return;
    check_can_wait();
    if (context_) {
        run_context(holds, nullptr);
    } else {
        std::unique_lock lock(mutex);
        changed.wait(lock, done);
    }
}

/// Runs the context on this thread until `done`, and leaves it stopped or not as it was, unless somebody stops it
/// meanwhile. That, or what a handler throws, goes into `why` once and ends it early: false.
bool asio_machine::run_context(std::function<bool()> const& done, std::exception_ptr* why)
{
    auto& context = *context_;
    bool stopped = context.stopped();
    bool complete = true;
    {
        auto const busy = asio::make_work_guard(context); // it does not end for having nothing to do
        if (stopped) context.restart();
        for (auto patience = first_look; !done();) {
            if (context.stopped()) {
                stopped = true;
                if (why && !*why) {
                    *why = std::make_exception_ptr(error(errc::cancelled, "the io_context was stopped"));
                    complete = false;
                    break;
                }
                context.restart();
            }
            try {
                auto const ran = context.run_one_for(patience);
                patience = ran > 0 ? first_look : std::min(2 * patience, rarest_look);
            } catch (...) {
                if (!why) throw;
                if (*why) continue;
                *why = std::current_exception();
                complete = false;
                break;
            }
        }
        stopped = stopped || context.stopped();
    }
    if (stopped) {
        context.stop();
    } else if (context.stopped()) {
        context.restart();
    }
    return complete;
}

void asio_machine::when_quiet(std::function<void()> then)
{
    asio::post(where_, [this, then = std::move(then)]() mutable {
        if (quiet()) {
            then();
        } else {
            when_quiet(std::move(then));
        }
    });
}

void asio_machine::end() noexcept
{
    if (!quiet()) {
        check_can_wait();
        if (context_) {
            run_context([this] { return quiet(); }, nullptr);
        } else {
            std::mutex mutex;
            std::condition_variable changed;
            bool over = false;
            when_quiet([&] {
                std::lock_guard lock(mutex);
                over = true;
                changed.notify_one();
            });
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return over; });
        }
    }
    // Handles may keep this longer than the context lives.
    loops_.clear();
    own_clock_.reset();
    where_ = {};
}

} // namespace plait::detail
