#include <plait/actors/sync/waiter.hpp>

namespace plait::detail {

void waiter::claim::operator()() const noexcept
{
    {
        std::lock_guard lock(*self->mutex_);
        if (!self->list_->cancel(*self)) return;
    }
    self->post();
}

void waiter_list::push_back(waiter& w) noexcept
{
    w.next_ = nullptr;
    w.previous_ = last_;
    (last_ ? last_->next_ : first_) = &w;
    last_ = &w;
    w.linked_ = true;
}

void waiter_list::remove(waiter& w) noexcept
{
    (w.previous_ ? w.previous_->next_ : first_) = w.next_;
    (w.next_ ? w.next_->previous_ : last_) = w.previous_;
    w.linked_ = false;
}

bool waiter_list::cancel(waiter& w) noexcept
{
    if (!w.linked_) return false;
    remove(w);
    w.cancelled_ = true;
    return true;
}

waiter* waiter_list::pop_front() noexcept
{
    auto* w = first_;
    if (w) remove(*w);
    return w;
}

waiter* waiter_list::pop_all() noexcept
{
    auto* chain = first_;
    for (auto* w = chain; w; w = w->next_) {
        w->linked_ = false;
    }
    first_ = last_ = nullptr;
    return chain;
}

void waiter_list::resume_chain(waiter* first) noexcept
{
    while (first) {
        auto* next = first->next_;
        first->post();
        first = next;
    }
}

} // namespace plait::detail
