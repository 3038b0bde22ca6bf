#pragma once

#include <plait/actors/runtime/event_loop.hpp>
#include <plait/actors/runtime/mailbox.hpp>

#include <asio/any_io_executor.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

namespace plait {

namespace detail {
class asio_machine;
}

/// Runs works, and serves devices, on an Asio executor: actors and tasks can live in somebody else's io_context,
/// without a thread of plait's own. Serial whatever the executor is, since it keeps a queue of its own; no strand is
/// needed. Between two works or two pieces of a device's work the context's other handlers have their turn.
///
/// It must outlive what runs on it, and the context must run until then.
class asio_executor final : public event_loop {
public:
    explicit asio_executor(asio::any_io_executor underlying);
    ~asio_executor() override;

    void post(work& w) noexcept override;
    void post_all(detail::work_list& works) noexcept override;
    void attach(poller& p) override;
    void detach(poller& p) noexcept override;

    asio::any_io_executor const& underlying() const noexcept { return underlying_; }

private:
    friend detail::asio_machine;

    /// `handlers` counts those that wait in the context, or run.
    asio_executor(asio::any_io_executor underlying, std::atomic<std::size_t>* handlers);
    /// On this executor, when nobody will post to it again: ends the turn by calling `dispose(owner)`, which may
    /// destroy this.
    void dispose_after_turn(void (*dispose)(void*) noexcept, void* owner) noexcept;

    void wake() noexcept;
    void schedule() noexcept;
    void turn() noexcept;
    bool poll_all();

    asio::any_io_executor const underlying_;
    std::atomic<std::size_t>* const handlers_ = nullptr;
    detail::mailbox mailbox_;
    std::vector<poller*> pollers_;
    unsigned turns_since_poll_ = 0;
    void (*dispose_)(void*) noexcept = nullptr;
    void* owner_ = nullptr;
};

} // namespace plait
