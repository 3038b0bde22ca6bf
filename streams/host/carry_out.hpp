#pragma once

#include <plait/streams/communicator.hpp>

#include <span>

namespace plait::host {

class compute_pool;

/// Does what a collective is, at once, over the memory of all who take part: `calls` are those of the ranks in their
/// order, or of a sender and its receiver, and they agree. Returns when all of every `out` is written.
void carry_out(std::span<collective_call const> calls, compute_pool& pool) noexcept;

} // namespace plait::host
