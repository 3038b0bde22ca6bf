#include <plait/streams/weave.hpp>

#include <cassert>
#include <utility>

namespace plait {

wait_kind const collective::its_turn{"its turn in a weave"};

bool collective::alone() const noexcept
{
    return lane_->owner.live_ <= 1;
}

/// The lane's coroutine is suspended. The loop in pump() goes on with the next lane when control is back there; where
/// it is not on the stack, because the lane had waited for the device, a work of its own begins it again.
void collective::park() noexcept
{
    auto& owner = lane_->owner;
    lane_->now = detail::lane::state::parked;
    lane_->waiting = &resumption_;
    owner.pass_turn();
    if (!owner.pumping_) owner.pump_later();
}

int flow::ranks() const noexcept
{
    auto* group = lane_ == nullptr ? nullptr : lane_->owner.groups().tensor;
    return group == nullptr ? 1 : group->size();
}

/// A collective goes to a stream of its own kind, after what this flow has issued; its ticket is taken before the turn
/// passes. What this flow issues next follows it, and the wait for it is put then: put now, it would hold up what other
/// flows issue on the compute stream meanwhile.
collective flow::issue(communicator& among, stream_role on, collective_call const& call)
{
    auto& other = lane_->owner.on().stream_of(on);
    put_waits_on(other);
    other.wait(last_);
    last_ = among.put(other, call);
    follows_.add(last_);
    return collective(lane_);
}

/// A collective of the ranks that share layers.
collective flow::among_ranks(collective_call call, site where)
{
    if (ranks() == 1) {
        assert(call.in == call.out && call.parts == 1);
        return turn();
    }
    call.where = where;
    return issue(*lane_->owner.groups().tensor, stream_role::communication, call);
}

collective flow::all_reduce(float const* in, float* out, std::int64_t count, std::int32_t parts, site where)
{
    return among_ranks({collective_kind::all_reduce, element_kind::f32, in, out, count, parts}, where);
}

collective flow::all_gather(element_kind element, void const* in, void* out, std::int64_t count, site where)
{
    return among_ranks({collective_kind::all_gather, element, in, out, count}, where);
}

collective flow::all_to_all(element_kind element, void const* in, void* out, std::int64_t count, site where)
{
    return among_ranks({collective_kind::all_to_all, element, in, out, count}, where);
}

/// One of two ranks of different stages.
collective flow::among_stages(stream_role on, collective_call call, site where)
{
    call.where = where;
    return issue(*lane_->owner.groups().stages, on, call);
}

collective flow::send(element_kind element, void const* in, std::int64_t count, int stage, site where)
{
    return among_stages(stream_role::copy_out, {collective_kind::send, element, in, nullptr, count, 1, stage}, where);
}

collective flow::receive(element_kind element, void* out, std::int64_t count, int stage, site where)
{
    return among_stages(stream_role::copy_in, {collective_kind::receive, element, nullptr, out, count, 1, stage},
                        where);
}

collective flow::turn() noexcept
{
    return collective(lane_);
}

weave::weave(device& on, std::size_t lanes, rank_groups groups)
    : weave(on, std::vector<stream_role>(lanes, stream_role::compute), groups)
{
}

weave::weave(device& on, std::span<stream_role const> lanes, rank_groups groups)
    : device_(on)
    , groups_(groups)
{
    if (lanes.empty()) throw error(errc::invalid_argument, "a weave of no lanes");
    for (auto role : lanes) {
        auto& added = lanes_.emplace_back(*this, on.stream_of(role));
        added.strand.lane_ = &added;
        added.strand.last_ = {}; // what others have put on the stream is not this flow's
    }
    pump_.self = this;
    pump_.run = [](work& w) noexcept { static_cast<pump_work&>(w).self->pump(); };
}

void weave::begin(detail::lane& l) noexcept
{
    l.now = detail::lane::state::runs;
    l.body = std::move(l.bodies.front());
    l.bodies.pop_front();
    auto end = [](void* at) noexcept {
        auto& ended = *static_cast<detail::lane*>(at);
        ended.owner.ended(ended);
    };
    detail::task_access::start(l.body, context_, end, &l);
}

void weave::ended(detail::lane& l) noexcept
{
    auto outcome = detail::task_access::take(l.body);
    l.body = {};
    l.now = detail::lane::state::idle;
    if (outcome.failure()) {
        l.bodies.clear();
        if (!failure_) failure_ = outcome.failure();
        if (groups_.tensor != nullptr) groups_.tensor->abort(failure_);
        if (groups_.stages != nullptr) groups_.stages->abort(failure_);
    }
    if (l.bodies.empty()) {
        --live_;
        pass_turn();
    }
    if (!pumping_) pump_later();
}

void weave::pass_turn() noexcept
{
    if (live_ == 0) return;
    do
        turn_ = (turn_ + 1) % lanes_.size();
    while (!has_work(lanes_[turn_]));
}

/// Gives the turn to whom it belongs, until that one waits for something else, or none is left.
void weave::pump() noexcept
{
    pumping_ = true;
    while (live_ > 0 && lanes_[turn_].now != detail::lane::state::runs) {
        auto& l = lanes_[turn_];
        if (l.now == detail::lane::state::idle) {
            begin(l);
        } else {
            l.now = detail::lane::state::runs;
            auto& waiting = *std::exchange(l.waiting, nullptr);
            waiting.run(waiting);
        }
    }
    pumping_ = false;
    if (live_ == 0 && all_ended_ != nullptr) std::exchange(all_ended_, nullptr)->post();
}

void weave::pump_later() noexcept
{
    pump_.owner = context_.owner;
    context_.exec->post(pump_);
}

/// Runs the lanes; suspends only if one of them waits for the device.
class weave::end_of_all {
public:
    explicit end_of_all(weave& of) noexcept
        : of_(of)
    {
    }
    bool await_ready() noexcept
    {
        of_.pump();
        return of_.live_ == 0;
    }
    template<class P>
    void await_suspend(std::coroutine_handle<P> h) noexcept
    {
        static constexpr wait_kind kind{"the lanes of a weave"};
        resumption_.bind(h, kind);
        of_.all_ended_ = &resumption_;
    }
    void await_resume() const noexcept {}

private:
    weave& of_;
    resumption resumption_;
};

task<> weave::run(std::vector<task<>> tasks)
{
    if (live_ > 0) throw error(errc::invalid_argument, "a weave that runs already");
    for (auto const& t : tasks)
        if (!t) throw error(errc::invalid_argument, "a weave was given a task that is empty or was awaited before");
    auto& mine = co_await detail::current_context();
    context_ = mine;
    context_.stop = {};
    failure_ = {};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        auto& l = lanes_[i < lanes_.size() ? i : lanes_.size() - 1];
        if (l.bodies.empty()) ++live_;
        l.bodies.push_back(std::move(tasks[i]));
    }
    turn_ = 0;
    if (live_ > 0 && lanes_[0].bodies.empty()) pass_turn();
    co_await end_of_all(*this);
    if (failure_) std::rethrow_exception(failure_);
}

} // namespace plait
