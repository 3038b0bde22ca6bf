#include <algorithm>
#include <set>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/streams/host/carry_out.hpp>
#include <plait/streams/host/group_core.hpp>
#include <plait/streams/host/wait_circle.hpp>

namespace plait::host {

namespace {

/// One rank's side of a collective, as its stream sees it.
class side_of final : public meeting {
public:
    side_of(std::shared_ptr<group_round> r, std::size_t index) noexcept
        : round_(std::move(r))
        , index_(index)
    {
    }

    void arrive(compute_pool& pool) noexcept override { round_->group->arrive(*round_, index_, pool); }
    bool over() const noexcept override
    {
        return round_->at.load(std::memory_order_acquire) == group_round::stage::over;
    }
    void withdraw(std::exception_ptr why) noexcept override { round_->group->withdraw(*round_, std::move(why)); }

private:
    std::shared_ptr<group_round> round_;
    std::size_t index_;
};

} // namespace

group_core::group_core(runtime& rt, int size, host_group_options options)
    : options_(std::move(options))
    , fabric_(options_.fabric ? options_.fabric : make_host_fabric())
    , clock_(rt.clock())
    , pool_(rt.pool())
    , members_(static_cast<std::size_t>(size))
    , present_(size)
    , watch_(clock_, pool_, [](alarm& rung) noexcept {
        auto& w = static_cast<watch&>(rung);
        auto const self = w.self; // goes after the lock
        std::lock_guard lock(self->fabric_->mutex);
        w.self = nullptr;
        self->look_for_hang();
    })
{
}

group_core::~group_core() = default;

template<class Visit>
void group_core::each_round(Visit visit)
{
    for (auto const& r : collectives_.rounds)
        visit(*r);
    for (auto const& [ranks, pair] : pairs_)
        for (auto const& r : pair.rounds)
            visit(*r);
}

group_core::round& group_core::round_of(int rank, collective_call const& call, std::size_t& side)
{
    auto const sends = call.kind == collective_kind::send;
    auto const paired = sends || call.kind == collective_kind::receive;
    auto const ranks = sends ? std::pair(rank, call.peer) : std::pair(call.peer, rank);
    auto& line = paired ? pairs_[ranks] : collectives_;
    auto const number = line.put[rank]++;
    auto const place = static_cast<std::size_t>(number - line.first);
    if (place == line.rounds.size()) {
        std::vector<int> all;
        if (paired) {
            all = {ranks.first, ranks.second};
        } else {
            for (int r = 0; r < size(); ++r)
                all.push_back(r);
        }
        line.rounds.push_back(std::make_shared<round>(shared_from_this(), all));
    }
    side = static_cast<std::size_t>(paired ? (sends ? 0 : 1) : rank);
    return *line.rounds[place];
}

void group_core::refuse(errc code, std::string const& why)
{
    fail(std::make_exception_ptr(error(code, why)));
    std::rethrow_exception(failure_);
}

std::shared_ptr<meeting> group_core::enter(int rank, host_stream const& on, collective_call const& call)
{
    std::shared_ptr<round> keep; // a failure takes it out of its queue
    std::lock_guard lock(fabric_->mutex);
    if (failure_) std::rethrow_exception(failure_);
    auto& me = members_[static_cast<std::size_t>(rank)];
    if (me.bell && me.bell != on.bell())
        throw error(errc::invalid_argument,
                    options_.name + ": rank " + std::to_string(rank) + " put its collectives on another device before");
    std::size_t side = 0;
    auto& r = round_of(rank, call, side);
    keep = r.shared_from_this();
    r.calls[side] = call;
    for (std::size_t other = 0; other < r.sides.size(); ++other) {
        auto const& theirs = r.sides[other];
        if (other == side) continue;
        if (!theirs.put) {
            fail_without(theirs.rank, r, side);
            if (failure_) std::rethrow_exception(failure_);
        } else if (options_.check) {
            agree(r, other, side);
        }
    }
    if (!me.bell) {
        me.bell = on.bell();
        me.bell->add(weak_from_this());
    }
    r.sides[side].put = true;
    r.sides[side].on = &on;
    if (options_.check && break_circle(r)) std::rethrow_exception(failure_);
    return std::make_shared<side_of>(std::move(keep), side);
}

/// Fails the group, and throws, where the two sides' calls differ.
void group_core::agree(round& r, std::size_t one, std::size_t other)
{
    if (auto const* const what = difference(r.calls[one], r.calls[other]))
        refuse(errc::invalid_argument,
               std::string(what) + " differ: " + text_of(r, one) + ", and " + text_of(r, other));
}

/// Fails the groups of a circle of waits through `r`, if there is one.
bool group_core::break_circle(round& r) noexcept
{
    auto const circle = find_wait_circle(*fabric_, r);
    if (circle.empty()) return false;
    auto const why = std::make_exception_ptr(error(errc::deadlock, text_of(circle)));
    std::vector<std::shared_ptr<group_core>> groups;
    groups.reserve(circle.size());
    for (auto const& step : circle)
        groups.push_back(step.waiting->group);
    for (auto const& group : groups)
        group->fail(why);
    return true;
}

void group_core::arrive(round& r, std::size_t side, compute_pool& pool) noexcept
{
    time_point due;
    {
        std::lock_guard lock(fabric_->mutex);
        if (r.at != round::stage::gathering) return; // it has failed, and the device is about to hear of it
        auto const now = clock_.now();
        r.sides[side].arrived = true;
        if (r.arrivals++ == 0) r.since = now;
        if (r.arrivals < r.sides.size()) {
            wait_for_others(r, side);
            return;
        }
        if (!options_.check && !agrees(r)) return;
        due = detail::later(now, options_.link.time_of(info_of(r.calls[0], size()).bytes));
        r.at = round::stage::running;
        r.carrying.lock();
    }
    carry_out(r.calls, pool);
    r.carrying.unlock();
    std::lock_guard lock(fabric_->mutex);
    if (failure_ || due <= clock_.now()) {
        complete(r, side);
    } else {
        r.at = round::stage::travelling;
        r.arrival.self = r.shared_from_this();
        r.arrival.set(due);
    }
}

void group_core::wait_for_others(round& r, std::size_t side) noexcept
{
    if (options_.check) {
        fabric_->heads[r.sides[side].on] = &r;
        if (break_circle(r)) return;
    }
    if (!watch_.self) watch_over(r);
}

/// Where nobody has compared them before.
bool group_core::agrees(round& r) noexcept
{
    try {
        for (std::size_t other = 1; other < r.sides.size(); ++other)
            agree(r, 0, other);
    } catch (error const&) {
        return false; // the group has failed with it
    }
    return true;
}

void group_core::landed(round& r) noexcept
{
    std::lock_guard lock(fabric_->mutex);
    if (r.at == round::stage::travelling) complete(r, r.sides.size());
}

/// `by`: the side on whose thread this is, or none of them.
void group_core::complete(round& r, std::size_t by) noexcept
{
    r.at.store(round::stage::over, std::memory_order_release);
    for (std::size_t i = 0; i < r.sides.size(); ++i) {
        if (options_.check) fabric_->heads.erase(r.sides[i].on);
        if (i != by) members_[static_cast<std::size_t>(r.sides[i].rank)].bell->ring();
    }
    forget_finished();
}

void group_core::forget_finished() noexcept
{
    auto const trim = [](queue& line) {
        while (!line.rounds.empty() && line.rounds.front()->at == round::stage::over) {
            line.rounds.pop_front();
            ++line.first;
        }
    };
    trim(collectives_);
    for (auto& [ranks, line] : pairs_)
        trim(line);
    stop_watching();
}

void group_core::fail(std::exception_ptr const& why) noexcept
{
    if (failure_) return;
    failure_ = why;
    each_round([&](round& r) {
        if (r.at != round::stage::gathering && r.at != round::stage::travelling) return; // nobody waits for ever
        if (r.arrival.cancel()) r.arrival.self = nullptr;
        r.at = round::stage::failed;
        for (auto const& side : r.sides) {
            if (!side.put) continue;
            if (side.arrived && options_.check) fabric_->heads.erase(side.on);
            members_[static_cast<std::size_t>(side.rank)].bell->fail(why);
        }
    });
    collectives_.rounds.clear();
    pairs_.clear();
    stop_watching();
}

void group_core::withdraw(round& r, std::exception_ptr why) noexcept
{
    {
        std::lock_guard lock(fabric_->mutex);
        if (r.at == round::stage::over || r.at == round::stage::failed) return;
        fail(why);
        if (r.at != round::stage::running) return;
    }
    // Another device's pool reads and writes this device's memory: a moment, since nothing waits in there.
    std::lock_guard until_carried_out(r.carrying);
}

void group_core::abort(std::exception_ptr why) noexcept
{
    if (!why) why = std::make_exception_ptr(error(errc::cancelled, options_.name + " was aborted"));
    std::lock_guard lock(fabric_->mutex);
    fail(why);
}

std::exception_ptr group_core::failure() const noexcept
{
    std::lock_guard lock(fabric_->mutex);
    return failure_;
}

void group_core::leave(int rank) noexcept
{
    std::lock_guard lock(fabric_->mutex);
    members_[static_cast<std::size_t>(rank)].left = true;
    --present_;
    fail_those_who_wait_for(rank);
    stop_watching();
}

void group_core::device_failed(doorbell const& of, std::exception_ptr why) noexcept
{
    std::lock_guard lock(fabric_->mutex);
    for (int rank = 0; rank < size(); ++rank) {
        auto& m = members_[static_cast<std::size_t>(rank)];
        if (m.bell.get() != &of) continue;
        m.lost = why;
        fail_those_who_wait_for(rank);
    }
}

/// Fails the group where a side was put that needs one of `rank`, which puts nothing more.
void group_core::fail_those_who_wait_for(int rank) noexcept
{
    std::vector<std::pair<round const*, std::size_t>> waiting;
    each_round([&](round const& r) {
        auto const missing = [rank](round::side const& s) { return s.rank == rank && !s.put; };
        if (!std::ranges::any_of(r.sides, missing)) return;
        auto const put = std::ranges::find_if(r.sides, [](round::side const& s) { return s.put; });
        waiting.emplace_back(&r, static_cast<std::size_t>(put - r.sides.begin()));
    });
    if (!waiting.empty()) fail_without(rank, *waiting[0].first, waiting[0].second);
}

/// Fails the group where `rank` puts nothing more: the side of `r` needs it.
void group_core::fail_without(int rank, round const& r, std::size_t side) noexcept
{
    auto const& m = members_[static_cast<std::size_t>(rank)];
    if (m.lost) {
        fail(m.lost);
    } else if (m.left) {
        fail(std::make_exception_ptr(error(errc::closed, text_of(r, side) + ", needs rank " + std::to_string(rank) +
                                                             ", whose communicator is gone")));
    }
}

/// Nothing of a group that has ended may ring: its runtime may be gone.
void group_core::stop_watching() noexcept
{
    bool const idle = collectives_.rounds.empty() &&
                      std::ranges::all_of(pairs_, [](auto const& pair) { return pair.second.rounds.empty(); });
    if ((failure_ || (present_ == 0 && idle)) && watch_.cancel()) watch_.self = nullptr;
}

/// One alarm for all: it is set anew only when it rings, so that a collective costs no alarm of its own.
void group_core::watch_over(round const& r) noexcept
{
    auto const due = detail::later(r.since, options_.hang_limit);
    if (due == time_point::max()) return;
    watch_.self = shared_from_this();
    watch_.set(due);
}

void group_core::look_for_hang() noexcept
{
    round const* oldest = nullptr;
    each_round([&](round const& r) {
        if (r.at != round::stage::gathering || r.arrivals == 0) return;
        if (oldest == nullptr || r.since < oldest->since) oldest = &r;
    });
    if (oldest == nullptr) return;
    if (detail::later(oldest->since, options_.hang_limit) > clock_.now()) {
        watch_over(*oldest);
    } else {
        fail(std::make_exception_ptr(error(errc::deadlock, hang_text(*oldest))));
    }
}

/// Who came, who did not, and what they put.
std::string group_core::hang_text(round const& r) const
{
    std::string text = "a collective hangs since " + detail::in_seconds(options_.hang_limit);
    for (std::size_t i = 0; i < r.sides.size(); ++i) {
        auto const& side = r.sides[i];
        text += i == 0 ? ": " : "; ";
        if (!side.put) {
            text += "rank " + std::to_string(side.rank) + " has not put it";
        } else {
            text += text_of(r, i) + (side.arrived ? ", waits" : ", has not come to it");
        }
    }
    std::set<round const*> others; // of whatever group: who has not come may wait there
    for (auto const& [stream, other] : fabric_->heads) {
        if (other == &r || !others.insert(other).second) continue;
        for (std::size_t i = 0; i < other->sides.size(); ++i)
            if (other->sides[i].arrived) text += "; " + text_of(*other, i) + ", waits too";
    }
    return text;
}

} // namespace plait::host
