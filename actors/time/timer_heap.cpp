#include <plait/actors/time/timer_heap.hpp>

#include <utility>

namespace plait::detail {

namespace {

bool before(timer const& a, timer const& b) noexcept
{
    return a.due != b.due ? a.due < b.due : a.number < b.number;
}

} // namespace

timer* timer_heap::meld(timer* a, timer* b) noexcept
{
    if (!a) return b;
    if (!b) return a;
    if (before(*b, *a)) std::swap(a, b);
    b->previous = a;
    b->next = a->child;
    if (a->child) a->child->previous = b;
    a->child = b;
    return a;
}

timer* timer_heap::merge_children(timer* first) noexcept
{
    // Pairs from left to right, kept in a stack through `next`; then one by one from right to left.
    timer* stack = nullptr;
    while (first) {
        auto* a = first;
        auto* b = a->next;
        first = b ? b->next : nullptr;
        a->next = a->previous = nullptr;
        if (b) b->next = b->previous = nullptr;
        auto* pair = meld(a, b);
        pair->next = stack;
        stack = pair;
    }
    timer* root = nullptr;
    while (stack) {
        auto* next = stack->next;
        stack->next = nullptr;
        root = meld(root, stack);
        stack = next;
    }
    return root;
}

void timer_heap::push(timer& t) noexcept
{
    t.number = pushed_++;
    t.child = t.next = t.previous = nullptr;
    root_ = meld(root_, &t);
}

void timer_heap::remove(timer& t) noexcept
{
    if (&t != root_) {
        (t.previous->child == &t ? t.previous->child : t.previous->next) = t.next;
        if (t.next) t.next->previous = t.previous;
    }
    auto* rest = merge_children(std::exchange(t.child, nullptr));
    root_ = &t == root_ ? rest : meld(root_, rest);
    if (root_) root_->previous = root_->next = nullptr;
}

} // namespace plait::detail
