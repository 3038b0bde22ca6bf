#include <plait/actors/runtime/run_registry.hpp>

#include <plait/actors/runtime/condition.hpp>
#include <plait/actors/runtime/machine.hpp>

#include <utility>

namespace plait::detail {

run_registry::run_registry()
    : empty_(std::make_unique<condition>())
{
}

run_registry::~run_registry() = default;

void run_registry::add(run_entry& e) noexcept
{
    std::lock_guard lock(mutex_);
    e.number = ++added_;
    e.next = first_;
    e.previous = nullptr;
    if (first_) first_->previous = &e;
    first_ = &e;
    if (ending_) e.source->request_stop();
}

void run_registry::ended(run_entry& e) noexcept
{
    std::lock_guard lock(mutex_);
    e.place = nullptr;
}

void run_registry::for_each(std::function<void(run_entry&)> const& f)
{
    std::lock_guard lock(mutex_);
    for (auto* e = first_; e; e = e->next) {
        if (e->place) f(*e);
    }
}

void run_registry::with(std::uint64_t number, std::function<void(run_entry&)> const& f)
{
    for_each([&](run_entry& e) {
        if (e.number == number) f(e);
    });
}

void run_registry::remove(run_entry& e) noexcept
{
    work* then = nullptr;
    {
        std::lock_guard lock(mutex_);
        (e.previous ? e.previous->next : first_) = e.next;
        if (e.next) e.next->previous = e.previous;
        if (first_) return;
        empty_->notify_all();
        then = std::exchange(then_, nullptr);
    }
    if (then) then->run(*then);
}

void run_registry::request_stop_locked() noexcept
{
    // Under the mutex, so that no source goes meanwhile; callbacks only enqueue.
    for (auto* e = first_; e; e = e->next) {
        e->source->request_stop();
    }
}

void run_registry::stop_all(machine& below) noexcept
{
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
        request_stop_locked();
    }
    below.wait(mutex_, *empty_, [&] { return !first_; });
}

void run_registry::stop_all(work& then) noexcept
{
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
        if (first_) {
            then_ = &then;
            request_stop_locked();
            return;
        }
    }
    then.run(then);
}

void run_registry::fail(std::exception_ptr failure) noexcept
{
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    request_stop_locked();
}

std::exception_ptr run_registry::take_failure() noexcept
{
    std::lock_guard lock(mutex_);
    return std::exchange(failure_, nullptr);
}

} // namespace plait::detail
