#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace plait::bench {

constexpr std::int64_t senders = 4;

/// Whether what each sender sends comes in its order.
class order_check {
public:
    void see(std::int64_t from, std::int64_t number)
    {
        if (number != next_[static_cast<std::size_t>(from)]++) throw std::logic_error("flood: out of order");
        ++taken_;
    }
    std::int64_t taken() const noexcept { return taken_; }

private:
    std::array<std::int64_t, senders> next_{};
    std::int64_t taken_ = 0;
};

} // namespace plait::bench
