#include <plait/engine/generation.hpp>

namespace plait {

generation& generation::operator=(generation&& other) noexcept
{
    if (this != &other) {
        cancel();
        channel_ = std::move(other.channel_);
    }
    return *this;
}

namespace {

task<std::optional<piece>> next_of(std::shared_ptr<answer_channel> from)
{
    auto got = co_await from->pieces.receive();
    // Half of them read: the engine may go on. Waking it for every piece would only find it still behind.
    if (from->parked.load(std::memory_order_seq_cst) && from->pieces.size() <= from->resume_at &&
        from->parked.exchange(false))
        from->bell->ring();
    co_return got;
}

} // namespace

task<std::optional<piece>> generation::next()
{
    return next_of(channel_);
}

void generation::cancel() noexcept
{
    if (channel_ == nullptr || channel_->cancelled.exchange(true, std::memory_order_acq_rel)) return;
    channel_->bell->ring();
}

} // namespace plait
