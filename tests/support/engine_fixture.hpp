#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <plait/actors/tasks/scope.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/tiny_model.hpp>

/// What tests of the engine and of the apps share: a small model, a small engine on it, and readers of answers.
namespace plait::test {

/// A tiny model in a file that goes with this object.
class tiny_file {
public:
    explicit tiny_file(tiny_model_options const& shape = {})
        : file_(tiny_model_bytes(shape))
    {
    }
    explicit tiny_file(gguf_writer const& changed)
        : file_(changed.bytes())
    {
    }
    std::filesystem::path const& path() const noexcept { return file_.path(); }

private:
    temporary_file file_;
};

inline engine_options tiny_engine(std::filesystem::path const& model)
{
    engine_options options;
    options.model = model;
    options.threads = 1;
    options.sequences = 8;
    options.memory = std::int64_t(256) << 20;
    return options;
}

/// A greedy request for exactly `tokens` tokens.
inline request ask_for(std::string text, std::int64_t tokens)
{
    request what;
    what.text = std::move(text);
    what.max_tokens = tokens;
    what.sampling.temperature = 0;
    what.ignore_end = true;
    return what;
}

/// Four that differ in length, sampling and choices, of so many tokens each.
inline std::vector<request> some_requests(std::int64_t tokens)
{
    std::vector<request> out;
    for (int i = 0; i < 4; ++i) {
        auto r = ask_for(std::string(static_cast<std::size_t>(5 + 21 * i), static_cast<char>('a' + i)), tokens);
        r.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
        r.sampling.seed = 7 + static_cast<std::uint64_t>(i);
        r.choices = 1 + i % 2;
        r.logprobs = 1;
        out.push_back(std::move(r));
    }
    return out;
}

/// A whole answer. Equal when every token, log-probability and character is.
struct collected {
    std::string text;                                        ///< of choice 0
    std::vector<std::pair<std::int32_t, token_info>> tokens; ///< choice, token
    summary result;

    std::vector<std::int32_t> of_choice(std::int32_t choice) const
    {
        std::vector<std::int32_t> ids;
        for (auto const& [c, token] : tokens)
            if (c == choice) ids.push_back(token.id);
        return ids;
    }

    friend bool operator==(collected const& a, collected const& b)
    {
        if (a.text != b.text || a.result.choices.size() != b.result.choices.size()) return false;
        for (std::size_t choice = 0; choice < a.result.choices.size(); ++choice) {
            auto const& x = a.result.choices[choice];
            auto const& y = b.result.choices[choice];
            if (x.finish != y.finish || x.tokens != y.tokens || x.stopped_by != y.stopped_by) return false;
            if (a.of(choice) != b.of(choice)) return false;
        }
        return true;
    }

private:
    using exact = std::tuple<std::int32_t, float, std::vector<std::pair<std::int32_t, float>>>;
    std::vector<exact> of(std::size_t choice) const
    {
        std::vector<exact> out;
        for (auto const& [c, token] : tokens)
            if (static_cast<std::size_t>(c) == choice) out.emplace_back(token.id, token.logprob, token.top);
        return out;
    }
};

inline task<collected> collect(generation from)
{
    collected out;
    for (;;) {
        auto got = co_await from.next();
        if (!got) break;
        if (got->choice == 0) out.text += got->text;
        for (auto& token : got->tokens)
            out.tokens.emplace_back(got->choice, std::move(token));
    }
    out.result = from.result();
    co_return out;
}

inline task<collected> collect_from(engine running, request what)
{
    auto answer = co_await running.submit(std::move(what));
    auto out = co_await collect(std::move(answer));
    co_return out;
}

inline task<> collect_into(engine running, request what, collected& out)
{
    out = co_await collect_from(running, std::move(what));
}

/// The answers to requests that run side by side.
inline task<std::vector<collected>> collect_together(engine running, std::vector<request> requests)
{
    std::vector<collected> out(requests.size());
    auto body = [&](scope& all) -> task<> {
        for (std::size_t i = 0; i < requests.size(); ++i)
            all.start(collect_into(running, requests[i], out[i]));
        co_return;
    };
    co_await with_scope(body);
    co_return out;
}

/// Sends a request and reads some of its answer; a third of the visitors leaves early.
inline task<> visit(engine running, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    auto what = ask_for(std::string(1 + random() % 60, static_cast<char>('a' + random() % 26)),
                        1 + static_cast<std::int64_t>(random() % 40));
    what.sampling.temperature = 1;
    what.choices = 1 + static_cast<std::int32_t>(random() % 3);
    auto leaves_after = random() % 3 == 0 ? random() % 8 : 1000;
    auto answer = co_await running.submit(std::move(what));
    for (std::uint64_t pieces = 0; pieces < leaves_after; ++pieces) {
        auto got = co_await answer.next();
        if (!got) co_return;
    }
}

/// Returns when every page of the engine is free and nothing runs: cancelled requests give back what they held when the
/// device is done with it, which is before an answer to a later request ends.
inline task<> drained(engine running)
{
    for (;;) {
        auto stats = co_await running.stats();
        if (stats.free_pages == stats.pages && stats.running == 0 && stats.waiting == 0) co_return;
        co_await this_task::yield();
    }
}

} // namespace plait::test
