#include <plait/streams/host/host_stream.hpp>

namespace plait::host {

meeting::~meeting() = default;

ticket host_stream::put(operation_info const& info, std::shared_ptr<meeting> with)
{
    auto t = issue();
    if (failure()) {
        with->withdraw(failure());
        return t;
    }
    auto& e = add();
    e.info = info;
    e.step = step();
    e.with = std::move(with);
    e.value = t.value();
    return t;
}

void host_stream::put_wait(ticket t)
{
    auto value = issue().value();
    if (failure()) return;
    auto& e = add();
    e.after = t;
    e.value = value;
}

bool host_stream::runnable() const noexcept
{
    if (queue_.empty()) return false;
    auto const& head = queue_.front();
    return head.with ? !head.arrived || head.with->over() : head.after.over();
}

void host_stream::run_next(compute_pool& pool)
{
    auto& head = queue_.front();
    if (head.invoke != nullptr) head.invoke(head, pool);
    if (head.with && !std::exchange(head.arrived, true)) {
        head.with->arrive(pool);
        if (!head.with->over()) return;
    }
    skip_next();
}

void host_stream::skip_next() noexcept
{
    auto value = queue_.front().value;
    queue_.pop_front();
    advance(value);
}

head_kind host_stream::head() const noexcept
{
    auto const& head = queue_.front();
    if (head.invoke != nullptr) return head_kind::operation;
    return head.with ? head_kind::meeting : head_kind::wait;
}

void host_stream::record_in(trace_part& where, std::uint32_t track)
{
    record_ = std::make_unique<record>(record{where, track, {}, {}});
}

void host_stream::note_begin(time_point at) noexcept
{
    if (!record_ || record_->head.value > completed()) return;
    auto const& head = queue_.front();
    record_->head = {head.info, at, at, head.value, head.step};
    record_->after = head.invoke == nullptr && !head.with ? head.after : ticket();
}

void host_stream::note_end(time_point at) noexcept
{
    if (!record_ || record_->head.value > completed()) return; // it is in a meeting
    auto& done = record_->head;
    if (auto const* const other = record_->after.where()) {
        record_->where.followed(record_->track, done.value, static_cast<host_stream const*>(other)->record_->track,
                                record_->after.value());
    } else {
        done.end = at;
        record_->where.done(record_->track, done);
    }
}

void host_stream::drop() noexcept
{
    for (auto const& e : queue_)
        if (e.with) e.with->withdraw(failure());
    queue_.clear();
    bell_->tell_failure(failure());
}

} // namespace plait::host
