#include <plait/actors/asio/asio_executor.hpp>

#include <asio/post.hpp>

#include <utility>

namespace plait {

namespace {

/// Turns before the devices are served although more works are ready.
constexpr unsigned turns_between_polls = 64;

} // namespace

asio_executor::asio_executor(asio::any_io_executor underlying)
    : asio_executor(std::move(underlying), nullptr)
{
}

asio_executor::asio_executor(asio::any_io_executor underlying, std::atomic<std::size_t>* handlers)
    : underlying_(std::move(underlying))
    , handlers_(handlers)
{
}

asio_executor::~asio_executor() = default;

void asio_executor::post(work& w) noexcept
{
    if (mailbox_.push(w)) wake();
}

void asio_executor::post_all(detail::work_list& works) noexcept
{
    auto* const oldest = works.take_all();
    if (oldest && mailbox_.push_all(*oldest)) wake();
}

void asio_executor::attach(poller& p)
{
    pollers_.push_back(&p);
    if (mailbox_.try_wake()) wake(); // not in a turn, which would serve it at its end
}

void asio_executor::detach(poller& p) noexcept
{
    std::erase(pollers_, &p);
}

void asio_executor::dispose_after_turn(void (*dispose)(void*) noexcept, void* owner) noexcept
{
    dispose_ = dispose;
    owner_ = owner;
}

void asio_executor::wake() noexcept
{
    if (handlers_) handlers_->fetch_add(1, std::memory_order_relaxed);
    schedule();
}

void asio_executor::schedule() noexcept
{
    asio::post(underlying_, [this] { turn(); });
}

bool asio_executor::poll_all()
{
    bool busy = false;
    for (std::size_t i = 0; i < pollers_.size(); ++i) {
        busy |= pollers_[i]->poll();
    }
    return busy;
}

void asio_executor::turn() noexcept
{
    // One chain of works, then the context's other handlers: those that are posted meanwhile come in the next turn.
    auto* outer = std::exchange(detail::current_executor(), this);
    auto* w = mailbox_.take_all();
    while (w) {
        auto* next = w->next_work;
        w->run(*w);
        w = next;
    }
    bool again = true;
    if (mailbox_.empty() || ++turns_since_poll_ == turns_between_polls) {
        turns_since_poll_ = 0;
        again = poll_all();
    }
    detail::current_executor() = outer;
    auto* const handlers = handlers_;
    if (dispose_ && !again && mailbox_.empty()) {
        dispose_(owner_);
    } else if (again || !mailbox_.try_idle()) {
        schedule();
        return;
    }
    if (handlers) handlers->fetch_sub(1, std::memory_order_release);
}

} // namespace plait
