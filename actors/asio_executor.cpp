#include <plait/actors/asio_executor.hpp>

#include <asio/post.hpp>

#include <utility>

namespace plait {

asio_executor::asio_executor(asio::any_io_executor underlying)
    : underlying_(std::move(underlying))
{
}

asio_executor::~asio_executor() = default;

void asio_executor::post(work& w) noexcept
{
    if (mailbox_.push(w)) schedule();
}

void asio_executor::schedule() noexcept
{
    asio::post(underlying_, [this] { turn(); });
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
    detail::current_executor() = outer;
    if (!mailbox_.try_idle()) schedule();
}

} // namespace plait
