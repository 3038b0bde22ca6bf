#pragma once

#include <plait/engine/engine.hpp>
#include <plait/engine/request.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace plait::chat {

/// What was computed so far.
struct totals {
    std::int64_t answers = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t generated_tokens = 0;

    void add(summary const& answer) noexcept;
};

/// Tokens per second of a prompt: its tokens over the time from the first step to the first token. 0 where nothing was
/// computed.
double prefill_rate(summary const& answer) noexcept;

/// Tokens per second after the first one.
double decode_rate(summary const& answer) noexcept;

/// What /stats shows: the last answer, all answers, the memory. `resident` is the process's resident set in bytes,
/// where the system tells.
std::string statistics(std::optional<summary> const& last, totals const& all, engine_info const& model,
                       engine_stats const& now, std::optional<std::int64_t> resident);

/// The process's resident set in bytes.
std::optional<std::int64_t> resident_bytes();

} // namespace plait::chat
