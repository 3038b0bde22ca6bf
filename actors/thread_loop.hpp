#pragma once

#include <plait/actors/event_loop.hpp>
#include <plait/actors/mailbox.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

namespace plait {

/// A loop on the thread that calls `run`.
class thread_loop final : public event_loop {
public:
    thread_loop();
    ~thread_loop() override;

    void post(work& w) noexcept override;
    void attach(poller& p) override;
    void detach(poller& p) noexcept override;

    /// Runs works and pollers on this thread until `stop`, and then what is still queued.
    void run();
    /// Ends `run`, or the next one; from any thread.
    void stop() noexcept;

private:
    bool poll_all();
    void park() noexcept;

    detail::mailbox mailbox_;
    /// 0 while the loop may sleep on it; 1 when a post to the idle loop has woken it. The loop waits for the 1, not for
    /// the mailbox: so when the loop goes on, the poster touches nothing of it any more.
    std::atomic<std::uint32_t> woken_{0};
    bool stopping_ = false; ///< seen by the loop
    std::atomic<bool> stop_asked_{false};
    struct stop_work : work {
        thread_loop* loop;
    } stop_;
    std::vector<poller*> pollers_;
};

} // namespace plait
