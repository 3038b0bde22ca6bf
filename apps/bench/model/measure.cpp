#include <plait/apps/bench/model/measure.hpp>

#include <plait/actors/tasks/scope.hpp>
#include <plait/apps/bench/process.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/model_files.hpp>
#include <plait/model/weights.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace plait::bench {

namespace {

constexpr std::int64_t short_prompt = 20; // of the "first token" row

double seconds(duration d) noexcept
{
    return std::chrono::duration<double>(d).count();
}

double mebibytes(double bytes) noexcept
{
    return bytes / (1 << 20);
}

/// An engine with room for the rows and no more.
engine_options options_for(model_bench const& what, unsigned threads)
{
    auto const most = std::ranges::max(what.batches);
    auto const decode = what.generate + 2;
    engine_options out;
    out.model = what.model;
    out.threads = threads;
    out.mode = what.mode;
    out.kv = what.kv;
    out.spread = what.spread;
    out.replicas = what.replicas;
    out.record = what.record;
    out.context = std::max({what.prompt + 1, decode, short_prompt + 1});
    out.sequences = most;
    out.step_tokens = std::max<std::int64_t>(out.step_tokens, what.prompt);
    auto const pages = pages_of(decode);
    out.kv_tokens = std::max(out.context, most * pages * page_tokens);
    return out;
}

/// What the plan gives to the KV cache and to activations.
std::int64_t planned_beside_weights(model_bench const& what, memory_plan const& plan)
{
    auto const files = open_model(what.model);
    auto bytes = plan.total;
    auto const model = describe(files);
    auto const parts = divide(what.spread, model.spec);
    for (auto const& line : model_weights::plan(files.tensors(), model, what.mode, parts.front()))
        bytes -= line.bytes;
    return bytes * what.spread.ranks() * what.replicas;
}

task<> read_into(runtime& home, engine running, std::int64_t generate, std::int64_t which, arrivals& out)
{
    out = co_await ask_and_read(home, std::move(running), 1, generate, which);
}

/// Milliseconds from nothing to the first token.
task<double> first_token_time(runtime& home, engine_options options)
{
    auto const began = home.clock().now();
    auto running = co_await open(home, std::move(options));
    auto const read = co_await ask_and_read(home, running, short_prompt, 1);
    co_await running.close();
    co_return seconds(read.tokens.front() - began) * 1e3;
}

/// The rows of one number of threads.
class bench_run {
public:
    bench_run(runtime& home, model_bench const& what, unsigned threads, measured& out,
              std::function<void(std::string const&)> const& report)
        : home_(home)
        , what_(what)
        , threads_(threads)
        , out_(out)
        , report_(report)
    {
    }

    task<> all()
    {
        forget_peak();
        auto running = co_await open(home_, options_for(what_, threads_));
        out_.what.device = running.info().device;
        co_await rates(running);
        memory(running);
        if (what_.idle > duration{}) co_await idle();
        co_await running.close();
        co_await loads();
    }

private:
    row& begin(std::string name, std::string unit)
    {
        if (report_) report_(name + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads"));
        auto& r = out_.rows.emplace_back();
        r.name = std::move(name);
        r.unit = std::move(unit);
        r.threads = threads_;
        return r;
    }

    /// The repetitions of a row, by turns: plait, then whoever is beside it. The goal is a multiple of the first's.
    template<class Own, class Others>
    task<> repeat(row& r, std::optional<double> goal, Own own, Others others)
    {
        co_await own(); // warms up
        for (auto const& who : what_.beside)
            r.beside.push_back({who.name, {}, r.beside.empty() ? goal : std::nullopt});
        for (int i = 0; i < what_.repetitions; ++i) {
            r.samples.push_back(co_await own());
            for (std::size_t p = 0; p < what_.beside.size(); ++p)
                r.beside[p].samples.push_back(others(what_.beside[p]));
        }
    }

    task<> rates(engine running)
    {
        auto& prefill = begin("pp" + std::to_string(what_.prompt), "tok/s");
        auto own = [&] { return prefill_rate(home_, running, what_.prompt); };
        auto others = [&](peer const& p) { return peer_prefill_rate(p, what_.model, threads_, what_.prompt); };
        co_await repeat(prefill, 3, own, others);
        for (auto const sequences : what_.batches) {
            auto name = "tg" + std::to_string(what_.generate);
            if (sequences > 1) name += " x " + std::to_string(sequences);
            auto& decode = begin(std::move(name), "tok/s");
            auto own_batch = [&] { return decode_rate(home_, running, sequences, what_.generate); };
            auto other_batch = [&](peer const& p) {
                return peer_decode_rate(p, what_.model, threads_, sequences, what_.generate);
            };
            co_await repeat(decode, goal(sequences), own_batch, other_batch);
        }
    }

    std::optional<double> goal(std::int64_t sequences) const
    {
        if (sequences == 1) return threads_ == 1 ? 1.5 : 1.2;
        if (sequences == 8) return 3;
        return std::nullopt;
    }

    void memory(engine const& running)
    {
        auto const file = static_cast<double>(out_.what.file_bytes);
        auto const planned = static_cast<double>(planned_beside_weights(what_, running.info().memory));
        auto& now = begin("resident", "MiB");
        now.samples.push_back(mebibytes(static_cast<double>(resident_bytes())));
        now.target = mebibytes(1.3 * file + planned);
        now.more_is_better = false;
        auto& peak = begin("peak", "MiB");
        peak.samples.push_back(mebibytes(static_cast<double>(peak_resident_bytes())));
        peak.more_is_better = false;
    }

    task<> idle()
    {
        auto& r = begin("idle", "ms CPU");
        auto const before = processor_time();
        co_await home_.clock().sleep_for(what_.idle);
        r.samples.push_back(seconds(processor_time() - before) * 1e3);
        r.target = seconds(what_.idle); // a millisecond a second
        r.more_is_better = false;
    }

    task<> loads()
    {
        auto& r = begin("first token", "ms");
        r.target = 1000;
        r.more_is_better = false;
        for (int i = 0; i < what_.repetitions; ++i)
            r.samples.push_back(co_await first_token_time(home_, options_for(what_, threads_)));
    }

    runtime& home_;
    model_bench const& what_;
    unsigned threads_;
    measured& out_;
    std::function<void(std::string const&)> const& report_;
};

} // namespace

std::vector<std::int32_t> fixed_prompt(std::int64_t tokens, std::int64_t vocabulary, std::int64_t which)
{
    // A multiplicative congruence: spread over the vocabulary, so that no row of the embedding stays in the cache.
    std::vector<std::int32_t> out;
    std::uint64_t state = 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(which);
    for (std::int64_t i = 0; i < tokens; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out.push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(vocabulary)));
    }
    return out;
}

task<arrivals> ask_and_read(runtime& home, engine running, std::int64_t prompt, std::int64_t generate,
                            std::int64_t which)
{
    request what;
    what.tokens = fixed_prompt(prompt, running.info().spec.vocabulary, which);
    what.max_tokens = generate;
    what.sampling.temperature = 0;
    what.ignore_end = true;
    arrivals out;
    out.sent = home.clock().now();
    auto answer = co_await running.submit(std::move(what));
    for (;;) {
        auto got = co_await answer.next();
        if (!got) break;
        out.tokens.insert(out.tokens.end(), got->tokens.size(), home.clock().now());
    }
    if (out.tokens.size() != static_cast<std::size_t>(generate))
        throw error(errc::engine_failed, "an answer has " + std::to_string(out.tokens.size()) + " tokens instead of " +
                                             std::to_string(generate));
    co_return out;
}

task<double> prefill_rate(runtime& home, engine running, std::int64_t prompt)
{
    auto const read = co_await ask_and_read(home, std::move(running), prompt, 1);
    co_return static_cast<double>(prompt) / seconds(read.tokens.front() - read.sent);
}

double rate_together(std::span<arrivals const> answers)
{
    auto begins = [](arrivals const& one) { return one.tokens.front(); };
    auto ends = [](arrivals const& one) { return one.tokens.back(); };
    auto first = std::ranges::max(answers, {}, begins).tokens.front();
    auto last = std::ranges::min(answers, {}, ends).tokens.back();
    if (first >= last) {
        first = std::ranges::min(answers, {}, begins).tokens.front();
        last = std::ranges::max(answers, {}, ends).tokens.back();
    }
    std::int64_t tokens = 0;
    for (auto const& one : answers)
        tokens += std::ranges::count_if(one.tokens, [&](time_point at) { return at > first && at <= last; });
    return static_cast<double>(tokens) / seconds(last - first);
}

task<double> decode_rate(runtime& home, engine running, std::int64_t sequences, std::int64_t generate)
{
    std::vector<arrivals> read(static_cast<std::size_t>(sequences));
    auto body = [&](scope& all) -> task<> {
        for (std::size_t i = 0; i < read.size(); ++i)
            all.start(read_into(home, running, generate + 1, static_cast<std::int64_t>(i), read[i]));
        co_return;
    };
    co_await with_scope(body);
    co_return rate_together(read);
}

heading heading_of(subject const& what)
{
    return {{{"model", what.model}, {"device", what.device}}, {{"file_bytes", what.file_bytes}}};
}

task<measured> measure(runtime& home, model_bench what, std::function<void(std::string const&)> report)
{
    measured out;
    out.what.model = what.model.string();
    std::error_code failed;
    out.what.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(what.model, failed));
    if (failed) throw error(errc::not_found, what.model.string());
    for (auto const threads : what.threads) {
        bench_run run(home, what, threads, out, report);
        co_await run.all();
    }
    co_return out;
}

} // namespace plait::bench
