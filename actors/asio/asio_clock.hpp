#pragma once

#include <plait/actors/time/clock.hpp>

#include <asio/any_io_executor.hpp>

#include <memory>

namespace plait::detail {

/// The machine's monotonic time, in an Asio context: one timer there instead of a thread. While somebody sleeps whose
/// time will come the context has something to do; otherwise it has not.
class asio_clock final : public clock {
public:
    explicit asio_clock(asio::any_io_executor const& where);
    ~asio_clock() override;

    time_point now() const noexcept override;
    std::chrono::sys_seconds date() const noexcept override;

private:
    struct alarm;
    void earliest_changed() noexcept override;
    void earliest_cancelled() noexcept override;

    monotonic_clock machine_; ///< nobody sleeps on it
    std::shared_ptr<alarm> alarm_;
};

} // namespace plait::detail
