#pragma once

#include <algorithm>

namespace plait::detail {

/// How often who finds nothing to do looks again before it sleeps: longer where something came soon, which saves both
/// sides the system calls.
template<class Atomics>
class look_limit {
public:
    static constexpr unsigned fewest = Atomics::looks_before_sleep;
    static constexpr unsigned most = 16 * fewest;

    unsigned value() const noexcept { return value_; }
    /// The last looking found something, or nothing.
    void learn(bool found) noexcept { value_ = found ? std::min(2 * value_, most) : std::max(value_ / 2, fewest); }

private:
    unsigned value_ = fewest;
};

} // namespace plait::detail
