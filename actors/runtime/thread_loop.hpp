#pragma once

#include <plait/actors/runtime/counters.hpp>
#include <plait/actors/runtime/event_loop.hpp>
#include <plait/actors/runtime/mailbox.hpp>
#include <plait/actors/runtime/parking_spot.hpp>
#include <plait/actors/time/clock.hpp>

#include <vector>

namespace plait {

/// A loop on the thread that calls `run`.
class alignas(64) thread_loop final : public event_loop {
public:
    /// `spin`: how long it goes on looking for works before it parks.
    explicit thread_loop(duration spin = {});
    ~thread_loop() override;

    void post(work& w) noexcept override;
    void post_all(detail::work_list& works) noexcept override;
    bool look_after(work& w, detail::mailbox& queue) noexcept override;
    void attach(poller& p) override;
    void detach(poller& p) noexcept override;

    /// Runs works and pollers on this thread until `stop`, and then what is still queued.
    void run();
    /// Ends `run`, or the next one; from any thread.
    void stop() noexcept;

private:
    work* next() noexcept;
    void look_no_longer() noexcept;
    bool poll_all();
    bool something_came() const noexcept;
    bool spin() const noexcept;
    void park() noexcept;

    detail::mailbox mailbox_;
    /// What works on the loop have posted while the mailbox was empty, so that it is older than all that is there; and
    /// the work that was looked after, which may come to its queue before what was posted to the loop earlier.
    detail::work_list own_;
    detail::parking_spot<> parking_;
    duration const spin_;
    /// While it spins it looks into the queue of the work that ran last as well: what comes there, such as a message
    /// for an actor, is one cache line nearer than if it came by way of the loop's mailbox.
    struct looked_after {
        work* owner = nullptr;
        detail::mailbox* queue = nullptr;
        bool has_more() const noexcept { return owner && !queue->empty(); }
    } last_;
    bool nothing_follows_ = false; ///< the work that runs is the last that is known
    bool stopping_ = false;        ///< seen by the loop
    detail::claim<> stop_asked_;   ///< of stop_
    struct stop_work : work {
        thread_loop* loop;
    } stop_;
    std::vector<poller*> pollers_;
};

} // namespace plait
