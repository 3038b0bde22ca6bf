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
    auto& e = queue_.emplace_back();
    e.info = info;
    e.with = std::move(with);
    e.value = t.value();
    return t;
}

void host_stream::put_wait(ticket t)
{
    auto value = issue().value();
    if (failure()) return;
    auto& e = queue_.emplace_back();
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

void host_stream::drop() noexcept
{
    for (auto const& e : queue_)
        if (e.with) e.with->withdraw(failure());
    queue_.clear();
    bell_->tell_failure(failure());
}

} // namespace plait::host
