#pragma once

#include <plait/actors/runtime/mailbox.hpp>

namespace plait::detail {

/// A serial executor on top of any executor, also of one that several threads serve.
class serial_executor final : public executor, private work {
public:
    explicit serial_executor(executor& underlying) noexcept;

    void post(work& w) noexcept override;

    /// On this executor, when nobody will post to it again: ends the turn by calling `dispose(owner)`, which may
    /// destroy this.
    void dispose_after_turn(void (*dispose)(void*) noexcept, void* owner) noexcept;

private:
    void turn() noexcept;

    executor& underlying_;
    mailbox mailbox_;
    work_list inbox_;
    void (*dispose_)(void*) noexcept = nullptr;
    void* owner_ = nullptr;
};

} // namespace plait::detail
