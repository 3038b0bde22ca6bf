#include <plait/apps/inspect/perplexity.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/apps/chat/printable.hpp>
#include <plait/engine/engine.hpp>
#include <plait/streams/trace_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace plait::inspecting {
namespace {

/// Windows that are under way at a time: one is computed while the scores of another come back.
constexpr std::size_t together = 4;

/// The engine makes as many logits at a time as it has sequences.
constexpr std::int64_t logits_together = 64;

std::string line_of(tokenizer const& text, std::size_t place, std::int32_t id, float logprob)
{
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "%zu\t%d\t%.6f\t", place, static_cast<int>(id),
                  static_cast<double>(logprob));
    return numbers + chat::printable_line(text.piece(id)) + "\n";
}

} // namespace

perplexity::perplexity(std::vector<std::int32_t> tokens, std::int64_t length, std::optional<std::int32_t> begin)
    : tokens_(std::move(tokens))
    , length_(static_cast<std::size_t>(length))
    , begin_(begin)
{
    if (length < 4) throw error(errc::invalid_argument, "context: " + std::to_string(length));
    if (windows() == 0)
        throw error(errc::invalid_argument, "the text's " + std::to_string(tokens_.size()) +
                                                " tokens do not fill a window of " + std::to_string(length));
}

std::vector<std::int32_t> perplexity::window(std::size_t index) const
{
    auto const start = tokens_.begin() + static_cast<std::ptrdiff_t>(index * length_);
    std::vector<std::int32_t> out(start, start + static_cast<std::ptrdiff_t>(length_));
    if (begin_) out.front() = *begin_;
    return out;
}

void perplexity::add(std::span<float const> logprobs)
{
    for (auto const logprob : logprobs.subspan(first() - 1)) {
        auto const surprise = -static_cast<double>(logprob);
        sum_ += surprise;
        squares_ += surprise * surprise;
        ++counted_;
    }
}

double perplexity::value() const
{
    return std::exp(sum_ / static_cast<double>(counted_));
}

double perplexity::deviation() const
{
    auto const count = static_cast<double>(counted_);
    auto const mean = sum_ / count;
    auto const variance = std::max(0.0, squares_ / count - mean * mean);
    return counted_ > 1 ? value() * std::sqrt(variance / (count - 1)) : 0;
}

task<> score_text(runtime& home, settings how, std::string text, std::function<void(std::string const&)> print)
{
    engine_options options;
    trace_file trace(how.trace);
    options.model = how.model;
    options.record = trace.record();
    options.threads = how.threads;
    options.mode = how.mode;
    options.overrides = how.overrides;
    options.context = how.context;
    options.sequences = logits_together;
    options.kv_tokens = static_cast<std::int64_t>(together) * how.context;
    auto running = co_await open(home, std::move(options));
    auto const& tokens = *running.info().text;
    auto ids = tokens.encode(text, {.add_special = true});
    if (tokens.adds_eos() && !ids.empty()) ids.pop_back();
    auto const begin = tokens.adds_bos() ? tokens.bos() : std::nullopt;
    perplexity all(std::move(ids), how.context, begin);

    for (std::size_t next = 0; next < all.windows();) {
        auto const last = std::min(next + together, all.windows());
        std::vector<task<std::vector<float>>> scoring;
        scoring.reserve(last - next);
        for (auto i = next; i < last; ++i) {
            request what;
            what.tokens = all.window(i);
            scoring.push_back(running.score(std::move(what)));
        }
        auto const scores = co_await when_all(std::move(scoring));
        for (auto const& window : scores) {
            auto const seen = all.window(next);
            all.add(window);
            for (auto place = all.first(); how.per_token && place < seen.size(); ++place)
                print(line_of(tokens, next * seen.size() + place, seen[place], window[place - 1]));
            ++next;
        }
    }
    co_await running.close();
    trace.write();
    char result[160];
    std::snprintf(result, sizeof result, "perplexity %.4f +/- %.4f: %lld tokens of %zu windows of %lld\n", all.value(),
                  all.deviation(), static_cast<long long>(all.counted()), all.windows(),
                  static_cast<long long>(how.context));
    print(result);
}

} // namespace plait::inspecting
