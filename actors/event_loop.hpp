#pragma once

#include <plait/actors/mailbox.hpp>

#include <atomic>
#include <cstdint>
#include <vector>

namespace plait {

/// A serial executor that is one thread's loop. Parks when there is nothing to do; never spins while idle.
class event_loop final : public executor {
public:
    event_loop();
    ~event_loop() override;

    void post(work& w) noexcept override;

    /// Something that needs the loop's thread whenever no work is ready, such as a device.
    struct poller {
        /// Does one piece of what there is to do. False when there is nothing: the loop may park, and a later post to
        /// the loop has it asked again. Must not throw.
        virtual bool poll() = 0;

    protected:
        ~poller() = default;
    };
    /// On the loop's thread, or before it runs.
    void attach(poller& p);
    void detach(poller& p) noexcept;

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
        event_loop* loop;
    } stop_;
    std::vector<poller*> pollers_;
};

} // namespace plait
