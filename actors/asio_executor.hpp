#pragma once

#include <plait/actors/mailbox.hpp>

#include <asio/any_io_executor.hpp>

namespace plait {

/// Runs works on an Asio executor: actors and tasks can live in somebody else's io_context, without a thread of
/// plait's own. Serial whatever the executor is, since it keeps a queue of its own; no strand is needed.
///
/// It must outlive what runs on it, and the context must run until then.
class asio_executor final : public executor {
public:
    explicit asio_executor(asio::any_io_executor underlying);
    ~asio_executor() override;

    void post(work& w) noexcept override;

    asio::any_io_executor const& underlying() const noexcept { return underlying_; }

private:
    void turn() noexcept;
    void schedule() noexcept;

    asio::any_io_executor const underlying_;
    detail::mailbox mailbox_;
};

} // namespace plait
