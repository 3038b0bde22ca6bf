#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/paths.hpp>

using namespace plait;
using namespace plait::test;

namespace {

char const* const prompts[] = {"short", "question", "code", "chinese", "prose"};

std::optional<std::filesystem::path> real_model()
{
    return model_file("smollm2-135m-instruct-q4_1.gguf");
}

std::int32_t argmax(std::span<float const> logits)
{
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double log_sum_exp(std::span<float const> logits)
{
    double most = *std::max_element(logits.begin(), logits.end()), sum = 0;
    for (auto l : logits)
        sum += std::exp(l - most);
    return most + std::log(sum);
}

/// KL(p ‖ q) in nats.
double divergence(std::span<float const> p, std::span<float const> q)
{
    auto p_lse = log_sum_exp(p), q_lse = log_sum_exp(q);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        auto log_p = p[i] - p_lse;
        sum += std::exp(log_p) * (log_p - (q[i] - q_lse));
    }
    return sum;
}

/// How close a quantised path stays to the F32 path, and how often it chooses as llama.cpp does.
struct closeness {
    std::size_t positions = 0, agree = 0;
    double kl = 0; ///< summed

    /// True where both choose the same.
    bool add(std::span<float const> reference, std::span<float const> ours, std::int32_t theirs)
    {
        ++positions;
        kl += divergence(reference, ours);
        bool const same = argmax(ours) == theirs;
        if (same) ++agree;
        return same;
    }
    double mean_kl() const { return kl / double(positions); }
    double agreement() const { return double(agree) / double(positions); }
};

task<std::vector<float>> logits_of(ref<model_probe> probe, int sequence, std::vector<std::int32_t> tokens)
{
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size(); at += 256) {
        auto end = std::min(tokens.size(), at + 256);
        std::vector<probe_chunk> step;
        step.emplace_back(sequence, static_cast<std::int32_t>(at),
                          std::vector<std::int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                                    tokens.begin() + static_cast<std::ptrdiff_t>(end)));
        auto some = co_await ask<&model_probe::run>(probe, std::move(step));
        all.insert(all.end(), some.begin(), some.end());
    }
    co_return all;
}

/// The highest logit each time, for all prompts side by side.
task<std::vector<std::vector<std::int32_t>>> greedy(ref<model_probe> probe,
                                                    std::vector<std::vector<std::int32_t>> starts, std::size_t length)
{
    auto vocabulary = co_await ask<&model_probe::vocabulary>(probe);
    std::vector<std::vector<std::int32_t>> out(starts.size());
    for (std::size_t step = 0; step < length; ++step) {
        std::vector<probe_chunk> chunks;
        for (std::size_t s = 0; s < starts.size(); ++s) {
            auto position = step == 0 ? 0 : static_cast<std::int32_t>(starts[s].size() + step - 1);
            chunks.emplace_back(static_cast<int>(s), position, step == 0 ? starts[s] : std::vector{out[s].back()},
                                false);
        }
        if (step == 0) {
            // The prompts together are longer than a step.
            for (std::size_t s = 0; s < chunks.size(); ++s) {
                std::vector<probe_chunk> one{chunks[s]};
                auto logits = co_await ask<&model_probe::run>(probe, std::move(one));
                out[s].push_back(argmax(logits));
            }
            continue;
        }
        auto logits = co_await ask<&model_probe::run>(probe, std::move(chunks));
        for (std::size_t s = 0; s < starts.size(); ++s)
            out[s].push_back(argmax(std::span(logits).subspan(s * static_cast<std::size_t>(vocabulary),
                                                              static_cast<std::size_t>(vocabulary))));
    }
    co_return out;
}

} // namespace

CO_TEST_CASE("the F32 path has the reference's logits at every position and its greedy tokens")
{
    auto file = real_model();
    if (!file) {
        MESSAGE("skipped: not found: the small model");
        co_return;
    }
    golden_file golden(test_data("real/f64.golden"));
    auto probe = make_probe(rt, runtime::available_cpus());
    auto how = exactly(*file);
    co_await ask<&model_probe::load>(probe, std::move(how));
    auto vocabulary = static_cast<std::size_t>(co_await ask<&model_probe::vocabulary>(probe));
    auto probes = golden.values<std::int32_t>("probe_ids");

    double worst = 0, sum = 0;
    std::size_t positions = 0;
    std::vector<std::vector<std::int32_t>> starts;
    for (std::string prompt : prompts) {
        auto tokens = golden.values<std::int32_t>(prompt + "/tokens");
        auto probe_logits = golden.values<float>(prompt + "/probe_logits");
        auto top_ids = golden.values<std::int32_t>(prompt + "/top_ids");
        auto top_logits = golden.values<double>(prompt + "/top_logits");
        auto lse = golden.values<double>(prompt + "/lse");
        auto logits = co_await logits_of(probe, 0, tokens);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            std::span<float const> ours(logits.data() + i * vocabulary, vocabulary);
            double error = 0, power = 0;
            auto add = [&](std::int32_t id, double reference) {
                auto d = ours[static_cast<std::size_t>(id)] - reference;
                error += d * d;
                power += reference * reference;
            };
            for (std::size_t k = 0; k < probes.size(); ++k)
                add(probes[k], probe_logits[i * probes.size() + k]);
            for (std::size_t k = 0; k < 16; ++k)
                add(top_ids[i * 16 + k], top_logits[i * 16 + k]);
            worst = std::max(worst, error / power);
            sum += error / power;
            ++positions;
            CHECK(std::abs(log_sum_exp(ours) - lse[i]) < 1e-3);
        }
        starts.push_back(std::move(tokens));
    }
    MESSAGE("NMSE of the F32 path over " << positions << " positions: worst " << worst << ", mean "
                                         << sum / double(positions));
    CHECK(worst <= 1e-8);
    CHECK(sum / double(positions) <= 1e-10);

    auto answers = co_await greedy(probe, starts, 256);
    for (std::size_t p = 0; p < std::size(prompts); ++p) {
        CAPTURE(prompts[p]);
        CHECK(answers[p] == golden.values<std::int32_t>(std::string(prompts[p]) + "/greedy"));
    }
    co_await stop(probe);
}

CO_TEST_CASE("the quantised path stays as close to the F32 path as llama.cpp does, along llama.cpp's tokens")
{
    auto file = real_model();
    if (!file) {
        MESSAGE("skipped: not found: the small model");
        co_return;
    }
    golden_file golden(test_data("real/llama.golden"));
    auto exact = make_probe(rt, runtime::available_cpus());
    auto how = exactly(*file);
    co_await ask<&model_probe::load>(exact, std::move(how));
    auto fast = make_probe(rt, runtime::available_cpus());
    co_await ask<&model_probe::load>(fast, model_probe::options(*file));
    auto vocabulary = static_cast<std::size_t>(co_await ask<&model_probe::vocabulary>(exact));

    closeness close;
    double worst = 0;
    for (std::string prompt : prompts) {
        auto tokens = golden.values<std::int32_t>(prompt + "/tokens");
        auto first = static_cast<std::size_t>(golden.values<std::int32_t>(prompt + "/prompt_tokens")[0]) - 1;
        auto theirs = golden.values<std::int32_t>(prompt + "/argmax");
        auto top_ids = golden.values<std::int32_t>(prompt + "/ref_top_ids");
        auto top_logits = golden.values<double>(prompt + "/ref_top_logits");
        tokens.pop_back();
        auto p = co_await logits_of(exact, 0, tokens);
        auto q = co_await logits_of(fast, 0, tokens);
        for (auto i = first; i < tokens.size(); ++i) {
            std::span<float const> reference(p.data() + i * vocabulary, vocabulary);
            std::span<float const> ours(q.data() + i * vocabulary, vocabulary);
            if (close.add(reference, ours, theirs[i])) continue;
            auto best = argmax(ours);
            auto reference_of = [&](std::int32_t id) {
                for (std::size_t k = 0; k < 16; ++k)
                    if (top_ids[i * 16 + k] == id) return top_logits[i * 16 + k];
                return top_logits[i * 16 + 15];
            };
            worst = std::max(worst, std::abs(reference_of(best) - reference_of(theirs[i])));
        }
    }
    auto llama_kl = golden.values<double>("mean_kl_generated")[0];
    MESSAGE("quantised path over " << close.positions << " positions: top-1 agreement " << close.agreement()
                                   << ", largest disagreement " << worst << " nats, mean KL " << close.mean_kl()
                                   << " (llama.cpp " << llama_kl << ")");
    CHECK(close.agreement() >= 0.95);
    CHECK(worst <= 1.0);
    CHECK(close.mean_kl() <= 1.25 * llama_kl);
    co_await stop(fast);
    co_await stop(exact);
}

CO_TEST_CASE("a second family in mixed K-quants stays as close to its F32 path as llama.cpp does")
{
    auto file = model_file("gemma3-270m-q4_k_m.gguf");
    if (!file) {
        MESSAGE("skipped: not found: Gemma 3 270M");
        co_return;
    }
    golden_file golden(test_data("real/gemma.golden"));
    auto exact = make_probe(rt, runtime::available_cpus());
    auto how = exactly(*file);
    how.sequences = 1;
    co_await ask<&model_probe::load>(exact, how);
    auto fast = make_probe(rt, runtime::available_cpus());
    model_probe::options native(*file);
    native.sequences = 1;
    co_await ask<&model_probe::load>(fast, native);
    auto vocabulary = static_cast<std::size_t>(co_await ask<&model_probe::vocabulary>(exact));

    closeness close;
    std::size_t positions = 0;
    double error = 0, worst_lse = 0;
    for (std::string prompt : {"short", "code", "chinese", "prose"}) {
        auto tokens = golden.values<std::int32_t>(prompt + "/tokens");
        auto first = static_cast<std::size_t>(golden.values<std::int32_t>(prompt + "/prompt_tokens")[0]) - 1;
        auto theirs = golden.values<std::int32_t>(prompt + "/argmax");
        auto lse = golden.values<double>(prompt + "/ref_lse");
        auto top_ids = golden.values<std::int32_t>(prompt + "/ref_top_ids");
        auto top_logits = golden.values<double>(prompt + "/ref_top_logits");
        tokens.pop_back();
        auto p = co_await logits_of(exact, 0, tokens);
        auto q = co_await logits_of(fast, 0, tokens);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            std::span<float const> reference(p.data() + i * vocabulary, vocabulary);
            // The F32 path is the reference: transformers in double, at its sixteen highest logits.
            double apart = 0, power = 0;
            for (std::size_t k = 0; k < 16; ++k) {
                auto const wanted = top_logits[i * 16 + k];
                auto const d = reference[static_cast<std::size_t>(top_ids[i * 16 + k])] - wanted;
                apart += d * d;
                power += wanted * wanted;
            }
            error = std::max(error, apart / power);
            worst_lse = std::max(worst_lse, std::abs(log_sum_exp(reference) - lse[i]));
            ++positions;
            if (i < first) continue;
            std::span<float const> ours(q.data() + i * vocabulary, vocabulary);
            close.add(reference, ours, theirs[i]);
        }
    }
    auto llama_kl = golden.values<double>("mean_kl_generated")[0];
    MESSAGE("Gemma 3: F32 path's worst NMSE over " << positions << " positions " << error << "; quantised path over "
                                                   << close.positions << ": top-1 agreement " << close.agreement()
                                                   << ", mean KL " << close.mean_kl() << " (llama.cpp " << llama_kl
                                                   << ")");
    CHECK(error <= 1e-8);
    CHECK(worst_lse < 1e-3);
    CHECK(close.agreement() >= 0.95);
    CHECK(close.mean_kl() <= 1.25 * llama_kl);
    co_await stop(fast);
    co_await stop(exact);
}
