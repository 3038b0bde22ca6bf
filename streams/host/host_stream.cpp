#include <plait/streams/host/host_stream.hpp>

namespace plait::host {

void host_stream::put_wait(ticket t)
{
    auto& e = queue_.emplace_back();
    e.after = t;
    e.value = issue().value();
}

void host_stream::run_next(compute_pool& pool)
{
    auto& head = queue_.front();
    auto value = head.value;
    if (head.invoke != nullptr) head.invoke(head, pool);
    queue_.pop_front();
    advance(value);
}

} // namespace plait::host
