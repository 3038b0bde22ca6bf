#include <plait/actors/asio/asio_clock.hpp>

#include <asio/steady_timer.hpp>

#include <mutex>

namespace plait::detail {

/// The timer, shared with its handlers: the context may call one after the clock has gone.
struct asio_clock::alarm : std::enable_shared_from_this<alarm> {
    static constexpr time_point never = time_point::max();

    alarm(asio_clock& clock, asio::any_io_executor const& where)
        : owner(&clock)
        , timer(where)
    {
    }

    /// Sets the timer to the earliest sleeper. Under the mutex.
    void set()
    {
        auto const due = owner->next_due().value_or(never);
        if (due == set_to) return;
        set_to = due;
        if (due == never) {
            timer.cancel();
            return;
        }
        timer.expires_at(std::chrono::steady_clock::time_point(due.time_since_epoch()));
        timer.async_wait([self = shared_from_this()](std::error_code code) {
            if (!code) self->rings();
        });
    }

    void rings()
    {
        // Under the mutex to the end, so that the clock does not go meanwhile: what is woken here may end the runtime.
        std::lock_guard lock(mutex);
        if (!owner) return;
        auto const now = owner->now();
        if (set_to <= now) set_to = never; // or it was set anew when this handler was already on its way
        owner->fire(now, some);
        set();
    }

    std::mutex mutex;
    asio_clock* owner; ///< null when it has gone
    asio::steady_timer timer;
    time_point set_to = never;
};

asio_clock::asio_clock(asio::any_io_executor const& where)
    : alarm_(std::make_shared<alarm>(*this, where))
{
}

asio_clock::~asio_clock()
{
    std::lock_guard lock(alarm_->mutex);
    alarm_->owner = nullptr;
    alarm_->timer.cancel();
}

time_point asio_clock::now() const noexcept
{
    return machine_.now();
}

std::chrono::sys_seconds asio_clock::date() const noexcept
{
    return machine_.date();
}

void asio_clock::earliest_changed() noexcept
{
    std::lock_guard lock(alarm_->mutex);
    alarm_->set();
}

void asio_clock::earliest_cancelled() noexcept
{
    earliest_changed();
}

} // namespace plait::detail
