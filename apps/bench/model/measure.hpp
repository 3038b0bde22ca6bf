#pragma once

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/apps/bench/model/options.hpp>
#include <plait/apps/bench/report.hpp>
#include <plait/engine/engine.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plait::bench {

/// Prompts are the same in every run and on every machine; `which` tells those of one batch apart.
std::vector<std::int32_t> fixed_prompt(std::int64_t tokens, std::int64_t vocabulary, std::int64_t which);

/// When a request was sent and when each of its tokens came, by the runtime's clock, at the reader.
struct arrivals {
    time_point sent{};
    std::vector<time_point> tokens;
};

/// Sends a greedy request for `generate` tokens after a prompt of `prompt`, whatever the model makes of them, and reads
/// it.
task<arrivals> ask_and_read(runtime& home, engine running, std::int64_t prompt, std::int64_t generate,
                            std::int64_t which = 0);

/// Tokens per second of a prefill: the tokens of the prompt over the time from the request to its first token.
task<double> prefill_rate(runtime& home, engine running, std::int64_t prompt);

/// Tokens per second of all these answers together, while all of them decode: from when the last of them has its first
/// token to when the first of them has its last one. Where that is no time (a small model may end one answer before the
/// next begins), over the whole of it, from the first token to the last one. Each answer has a token at least.
double rate_together(std::span<arrivals const> answers);

/// rate_together() of `sequences` that decode `generate` tokens each after their first ones.
task<double> decode_rate(runtime& home, engine running, std::int64_t sequences, std::int64_t generate);

/// What was measured.
struct subject {
    std::string model;  ///< the file
    std::string device; ///< for people
    std::int64_t file_bytes = 0;
};
heading heading_of(subject const& what);

/// Every row, for every number of threads. `report` hears what is being measured, for people.
struct measured {
    subject what;
    std::vector<row> rows;
};
task<measured> measure(runtime& home, model_bench what, std::function<void(std::string const&)> report);

} // namespace plait::bench
