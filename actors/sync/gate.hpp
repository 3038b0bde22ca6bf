#pragma once

#include <plait/actors/runtime/counters.hpp>
#include <plait/actors/sync/event.hpp>

#include <cstddef>

namespace plait {

/// Counts what is under way inside something, so that it can be closed: whoever wants to begin enters, and closing
/// refuses new ones and waits until all have left (Seastar's gate). All of it may be used from any thread; only waiting
/// for the close is for coroutines. Outlives those inside and its waiters; the last of these to be resumed by it may
/// destroy it.
class gate {
public:
    gate() = default;
    gate(gate const&) = delete;
    gate& operator=(gate const&) = delete;
    ~gate();

    class holder;

    /// Enters, and leaves when the holder goes. Throws `errc::closed` when the gate was closed.
    holder hold();

    /// The same without a holder: each `enter`, and each `try_enter` that was true, is paired with a `leave`.
    void enter();
    bool try_enter() noexcept { return count_.try_enter(); }
    void leave() noexcept;

    /// Closes now: nobody enters any more. `co_await g.close()` also waits until all have left; after a stop that
    /// throws `errc::cancelled`, and the gate stays closed. May be called again, by anybody.
    [[nodiscard]] event::wait_operation close() noexcept;

    bool closed() const noexcept { return count_.closed(); }
    /// How many are inside.
    std::size_t inside() const noexcept { return count_.inside(); }

private:
    /// Whoever is told that it is closed and empty sets `empty_`; nobody may take the gate for empty before that, since
    /// that thread still touches it.
    detail::gate_count<> count_;
    event empty_;
};

/// A stay inside a gate.
class [[nodiscard]] gate::holder {
public:
    /// Holds nothing.
    holder() noexcept = default;
    holder(holder&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr))
    {
    }
    holder& operator=(holder&& other) noexcept
    {
        holder old(std::move(*this)); // left now, not when `other` goes
        std::swap(gate_, other.gate_);
        return *this;
    }
    ~holder() { release(); }

    explicit operator bool() const noexcept { return gate_ != nullptr; }
    /// Leaves now.
    void release() noexcept
    {
        if (auto* g = std::exchange(gate_, nullptr)) g->leave();
    }

private:
    friend gate;
    explicit holder(gate& g) noexcept
        : gate_(&g)
    {
    }

    gate* gate_ = nullptr;
};

inline gate::holder gate::hold()
{
    enter();
    return holder(*this);
}

} // namespace plait
