#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/attention_split.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

struct shape {
    std::int32_t heads = 3;
    std::int32_t kv_heads = 1;
    std::int32_t dims = 64;
    kv_type type = kv_type::f16;
    std::int32_t window = 0;
    float soft_cap = 0;
    bool sinks = false;
    std::int32_t prefix = 0; ///< of each sequence, or all of a shorter one

    std::int64_t q_cols() const { return std::int64_t{heads} * dims; }
    std::int64_t cols() const { return (std::int64_t{heads} + 2 * kv_heads) * dims; }
};

/// The queries, keys and values of some sequences, and their pages: in no order, and full of NaN where nothing is
/// stored.
class batch {
public:
    batch(shape s, std::vector<std::int32_t> lengths, unsigned seed = 1)
        : s_(s)
        , lengths_(std::move(lengths))
    {
        auto total = std::accumulate(lengths_.begin(), lengths_.end(), 0);
        inputs_ = random_floats(static_cast<std::size_t>(total * s.cols()), seed, 1.5f);
        sinks_ = random_floats(static_cast<std::size_t>(s.heads), seed + 1, 3);
        std::int32_t pages = 0;
        for (auto length : lengths_)
            pages += (length + 15) / 16;
        std::vector<std::int32_t> ids(static_cast<std::size_t>(pages + 2));
        std::iota(ids.begin(), ids.end(), 0);
        std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
        auto next = ids.begin();
        for (auto length : lengths_) {
            tables_.emplace_back(next, next + (length + 15) / 16);
            next += (length + 15) / 16;
        }
        page_count_ = ids.size();
    }

    /// Runs every sequence from its start in steps of at most `step` tokens, all sequences in the same steps.
    /// `also_q8` checks the quantised output of each step, too.
    buffer<float> run(isa set, unsigned workers, std::int32_t step, bool also_q8 = false) const
    {
        auto stride = page_bytes(s_.type, s_.kv_heads, s_.dims);
        buffer<std::byte> pages(page_count_ * stride, std::byte{0xff});
        paged_kv kv{s_.type, s_.kv_heads, s_.dims, pages.data(), stride};
        std::vector<std::int32_t> done(lengths_.size());
        buffer<float> out(inputs_.size() / static_cast<std::size_t>(s_.cols()) * static_cast<std::size_t>(s_.q_cols()));
        for (;;) {
            std::vector<sequence_chunk> chunks;
            std::vector<std::size_t> sources; // rows of inputs_
            for (std::size_t i = 0, start = 0; i < lengths_.size(); start += static_cast<std::size_t>(lengths_[i++])) {
                auto rows = std::min(step, lengths_[i] - done[i]);
                if (rows == 0) continue;
                // A prefix is seen as a whole, so it is stored as a whole.
                auto prefix = std::min(s_.prefix, lengths_[i]);
                rows = std::max(rows, prefix - done[i]);
                chunks.push_back({static_cast<std::int32_t>(sources.size()), rows, done[i], tables_[i].data(), prefix});
                for (std::int32_t r = 0; r < rows; ++r)
                    sources.push_back(start + static_cast<std::size_t>(done[i] + r));
                done[i] += rows;
            }
            if (chunks.empty()) return out;
            run_step(set, workers, kv, chunks, sources, out, also_q8);
        }
    }

    shape const& form() const { return s_; }
    std::vector<std::int32_t> const& lengths() const { return lengths_; }
    buffer<float> const& inputs() const { return inputs_; }
    buffer<float> const& sinks() const { return sinks_; }

private:
    void run_step(isa set, unsigned workers, paged_kv const& kv, std::vector<sequence_chunk> const& chunks,
                  std::vector<std::size_t> const& sources, buffer<float>& out, bool also_q8) const
    {
        auto cols = static_cast<std::size_t>(s_.cols());
        auto q_cols = static_cast<std::size_t>(s_.q_cols());
        auto rows = sources.size();
        buffer<float> qkv(rows * cols);
        for (std::size_t r = 0; r < rows; ++r)
            std::copy_n(inputs_.begin() + static_cast<std::ptrdiff_t>(sources[r] * cols), cols,
                        qkv.begin() + static_cast<std::ptrdiff_t>(r * cols));
        rope_args store;
        store.qkv = qkv.data();
        store.stride = s_.cols();
        store.heads = s_.heads;
        store.kv = kv;
        store.chunks = chunks;
        run_all(attention_ops(set).rope_and_store, store, workers);

        buffer<float> part(rows * q_cols);
        buffer<std::int8_t> q8(part.size());
        buffer<float> scales(part.size() / 32);
        buffer<float> sums(part.size() / 32);
        attention_args args;
        args.queries = qkv.data();
        args.stride = s_.cols();
        args.heads = s_.heads;
        args.kv = kv;
        args.chunks = chunks;
        args.scale = 1 / std::sqrt(static_cast<float>(s_.dims));
        args.soft_cap = s_.soft_cap;
        args.window = s_.window;
        if (s_.sinks) args.sinks = sinks_.data();
        args.out = {static_cast<std::int64_t>(rows), s_.q_cols(), part.data(), nullptr, nullptr, nullptr};
        run_all(attention_ops(set).attention, args, workers);
        if (also_q8) {
            auto f32 = part;
            for (bool with_f32 : {true, false}) {
                args.out.f32 = with_f32 ? part.data() : nullptr;
                args.out.q8 = q8.data();
                args.out.scales = scales.data();
                args.out.sums = sums.data();
                std::fill(q8.begin(), q8.end(), std::int8_t{99});
                run_all(attention_ops(set).attention, args, workers);
                for (std::size_t r = 0; r < rows; ++r) {
                    std::vector<std::int8_t> expected(q_cols);
                    std::vector<float> expected_scales(q_cols / 32);
                    std::vector<float> expected_sums(q_cols / 32);
                    products(isa::scalar)
                        .quantise_row(f32.data() + r * q_cols, s_.q_cols(), expected.data(), expected_scales.data(),
                                      expected_sums.data());
                    REQUIRE(std::memcmp(q8.data() + r * q_cols, expected.data(), q_cols) == 0);
                    REQUIRE(std::memcmp(scales.data() + r * (q_cols / 32), expected_scales.data(), q_cols / 8) == 0);
                    REQUIRE(std::memcmp(sums.data() + r * (q_cols / 32), expected_sums.data(), q_cols / 8) == 0);
                }
            }
            REQUIRE(same_bits(part, f32));
        }
        for (std::size_t r = 0; r < rows; ++r)
            std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(r * q_cols), q_cols,
                        out.begin() + static_cast<std::ptrdiff_t>(sources[r] * q_cols));
    }

    shape s_;
    std::vector<std::int32_t> lengths_;
    buffer<float> inputs_;
    buffer<float> sinks_;
    std::vector<std::vector<std::int32_t>> tables_;
    std::size_t page_count_ = 0;
};

// A stored number, read back.
double stored(double x, double largest, kv_type type)
{
    if (type == kv_type::f32) return x;
    if (type == kv_type::f16) return f16_to_f32(f32_to_f16(static_cast<float>(x)));
    auto most = static_cast<float>(largest);
    return static_cast<double>(std::nearbyint(static_cast<float>(x) * (127.0f / most))) * (most / 127.0f);
}

// Compares with softmax attention in F64. The bound follows the roundings: each score's error is at most
// (dims + 3) 2^-24 of the sum of its absolute terms, and moves its weight by as much; exp and the sums add a few 2^-22.
void check_reference(batch const& b, buffer<float> const& out)
{
    auto const& s = b.form();
    auto cols = static_cast<std::size_t>(s.cols());
    auto dims = static_cast<std::size_t>(s.dims);
    double const scale = 1 / std::sqrt(static_cast<double>(s.dims));
    std::size_t start = 0;
    double worst = 0;
    int wrong = 0;
    for (auto length : b.lengths()) {
        auto count = static_cast<std::size_t>(length);
        for (std::size_t head = 0; head < static_cast<std::size_t>(s.heads); ++head) {
            auto kv_head = head / static_cast<std::size_t>(s.heads / s.kv_heads);
            auto number = [&](std::size_t row, std::size_t column) {
                return static_cast<double>(b.inputs()[(start + row) * cols + column]);
            };
            std::vector<double> keys(count * dims);
            std::vector<double> values(count * dims);
            for (std::size_t k = 0; k < count; ++k)
                for (bool value : {false, true}) {
                    auto column = (static_cast<std::size_t>(s.heads + (value ? s.kv_heads : 0)) + kv_head) * dims;
                    double largest = 0;
                    for (std::size_t d = 0; d < dims; ++d)
                        largest = std::max(largest, std::fabs(number(k, column + d)));
                    for (std::size_t d = 0; d < dims; ++d)
                        (value ? values : keys)[k * dims + d] = stored(number(k, column + d), largest, s.type);
                }
            for (std::size_t p = 0; p < count; ++p) {
                auto window = static_cast<std::size_t>(s.window);
                auto first = window > 0 && p + 1 > window ? p + 1 - window : 0;
                std::vector<double> scores;
                double most_terms = 0;
                auto const end = std::max(p + 1, static_cast<std::size_t>(std::min(s.prefix, length)));
                for (auto k = first; k < end; ++k) {
                    double sum = 0;
                    double terms = 0;
                    for (std::size_t d = 0; d < dims; ++d) {
                        sum += number(p, head * dims + d) * keys[k * dims + d];
                        terms += std::fabs(number(p, head * dims + d) * keys[k * dims + d]);
                    }
                    sum *= scale;
                    most_terms = std::max(most_terms, terms * scale);
                    scores.push_back(s.soft_cap > 0 ? s.soft_cap * std::tanh(sum / s.soft_cap) : sum);
                }
                double largest = *std::max_element(scores.begin(), scores.end());
                double total = 0;
                for (auto& score : scores)
                    total += score = std::exp(score - largest);
                if (s.sinks) total += std::exp(b.sinks()[head] - largest);
                for (std::size_t d = 0; d < dims; ++d) {
                    double expected = 0;
                    double terms = 0;
                    for (auto k = first; k < end; ++k) {
                        expected += scores[k - first] / total * values[k * dims + d];
                        terms += scores[k - first] / total * std::fabs(values[k * dims + d]);
                    }
                    double bound = 0x1p-24 * (2 * static_cast<double>(dims + 3) * most_terms + 64) * terms;
                    double actual = out[(start + p) * static_cast<std::size_t>(s.q_cols()) + head * dims + d];
                    worst = std::max(worst, std::fabs(actual - expected));
                    wrong += !(std::fabs(actual - expected) <= bound);
                }
            }
        }
        start += count;
    }
    CHECK(wrong == 0);
    CHECK(worst < 2e-5);
}

std::vector<shape> shapes()
{
    std::vector<shape> all;
    for (auto type : {kv_type::f32, kv_type::f16, kv_type::q8}) {
        all.push_back({3, 1, 64, type, 0, 0});
        all.push_back({4, 4, 32, type, 20, 0});
        all.push_back({8, 1, 96, type, 0, 30});
        all.push_back({10, 2, 20, type, 70, 5}); // a head size that fills no register
        all.push_back({40, 2, 16, type, 0, 0});  // more heads on a KV head than one item takes
        all.push_back({22, 2, 48, type, 1, 0});  // sees itself only
        all.push_back({7, 1, 8, type, 0, 0});
        all.push_back({6, 2, 64, type, 0, 0, true});
        all.push_back({4, 1, 32, type, 30, 20, true});
        all.push_back({4, 2, 32, type, 0, 0, false, 90});
        all.push_back({3, 3, 20, type, 25, 0, true, 70});
    }
    all.push_back({4, 1, 256, kv_type::f16, 40, 0});
    all.push_back({2, 2, 512, kv_type::q8, 0, 0}); // the largest head
    return all;
}

} // namespace

TEST_CASE("attention agrees with softmax in F64")
{
    for (auto const& s : shapes()) {
        batch b(s, {1, 70, 150});
        check_reference(b, b.run(isa::scalar, 1, 1000));
    }
}

TEST_CASE("attention has the same bits in every instruction set, for any number of workers and any chunks")
{
    for (auto const& s : shapes()) {
        CAPTURE(s.heads);
        CAPTURE(s.dims);
        CAPTURE(static_cast<int>(s.type));
        batch b(s, {5, 150, 33});
        auto expected = b.run(isa::scalar, 1, 1000);
        CHECK(std::none_of(expected.begin(), expected.end(), [](float x) { return std::isnan(x); }));
        for (auto set : available_isas()) {
            CAPTURE(name(set));
            for (std::int32_t step : {1000, 64, 7, 1})
                REQUIRE(same_bits(b.run(set, 1, step), expected));
            for (unsigned workers : {2u, 3u, 8u}) {
                REQUIRE(same_bits(b.run(set, workers, 1000), expected));
                REQUIRE(same_bits(b.run(set, workers, 11), expected));
            }
        }
    }
}

TEST_CASE("a sequence's attention does not depend on its batch")
{
    shape s{6, 2, 64, kv_type::f16, 0, 0};
    batch together(s, {40, 90}, 5);
    batch alone(s, {40}, 5); // the same seed: the same first rows
    auto both = together.run(best_isa(), 2, 16);
    auto one = alone.run(best_isa(), 1, 40);
    CHECK(std::memcmp(both.data(), one.data(), one.size() * sizeof(float)) == 0);
}

TEST_CASE("attention quantises its output as it would be quantised afterwards")
{
    for (auto type : {kv_type::f32, kv_type::f16, kv_type::q8})
        for (auto set : available_isas()) {
            batch b({6, 2, 64, type, 0, 0}, {3, 40});
            b.run(set, 2, 30, true);
        }
}

TEST_CASE("a later token with NaN keys and values leaves the earlier ones as they were")
{
    for (auto const& s : shapes()) {
        batch clean(s, {100});
        if (s.prefix > 77) continue; // the earlier ones see some of the later
        batch poisoned = clean;
        auto& inputs = const_cast<buffer<float>&>(poisoned.inputs());
        auto cols = static_cast<std::size_t>(s.cols());
        for (std::size_t row = 77; row < 100; ++row)
            for (auto c = static_cast<std::size_t>(s.q_cols()); c < cols; ++c)
                inputs[row * cols + c] = std::numeric_limits<float>::quiet_NaN();
        for (auto set : available_isas()) {
            auto a = clean.run(set, 1, 100);
            auto b = poisoned.run(set, 1, 100);
            auto before = 77 * static_cast<std::size_t>(s.q_cols());
            CHECK(std::memcmp(a.data(), b.data(), before * sizeof(float)) == 0);
            CHECK(std::isnan(b[before]));
        }
    }
}

TEST_CASE("a sink far above the scores leaves nothing of the values, one far below leaves them all")
{
    shape s{2, 1, 32, kv_type::f32};
    s.sinks = true;
    batch with(s, {70}), without({2, 1, 32, kv_type::f32}, {70});
    auto& sinks = const_cast<buffer<float>&>(with.sinks());
    sinks[0] = 1000;
    sinks[1] = -1000;
    for (auto set : available_isas()) {
        auto a = with.run(set, 1, 70), b = without.run(set, 1, 70);
        int wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            wrong += i % 64 < 32 ? a[i] != 0 : a[i] != b[i];
        CHECK(wrong == 0);
    }
}

TEST_CASE("a large score overwhelms the others without overflow")
{
    batch b({1, 1, 32, kv_type::f32, 0, 0}, {130});
    auto& inputs = const_cast<buffer<float>&>(b.inputs());
    for (std::size_t d = 0; d < 32; ++d) {
        inputs[129 * 96 + d] = 100.0f;     // the last query
        inputs[65 * 96 + 32 + d] = 200.0f; // a key in the second tile
    }
    for (auto set : available_isas()) {
        auto out = b.run(set, 1, 130);
        for (std::size_t d = 0; d < 32; ++d)
            CHECK(out[129 * 32 + d] == inputs[65 * 96 + 64 + d]);
    }
}

TEST_CASE("the work of an attention is dealt out whole, once, and evenly")
{
    std::int32_t const pages[] = {0};
    struct plan {
        std::vector<sequence_chunk> chunks;
        std::int32_t heads;
        std::int32_t kv_heads;
    };
    plan const plans[] = {
        {{{0, 1, 5000, pages}}, 9, 3},
        {{{0, 512, 0, pages}}, 9, 3},
        {{{0, 100, 31, pages}, {100, 1, 7, pages}, {101, 0, 0, pages}, {101, 1, 4000, pages}}, 8, 8},
        {{{0, 1, 100, pages}}, 1, 1},
    };
    for (auto const& p : plans)
        for (unsigned workers : {1u, 2u, 3u, 4u, 16u})
            for (std::int32_t tile : {16, 4}) {
                attention_args args;
                args.heads = p.heads;
                args.kv.kv_heads = p.kv_heads;
                args.kv.head_dim = 64;
                args.chunks = p.chunks;
                std::vector<std::vector<int>> times(102, std::vector<int>(static_cast<std::size_t>(p.heads)));
                times.resize(512, times[0]);
                std::vector<std::int64_t> keys(workers);
                for (unsigned w = 0; w < workers; ++w) {
                    attention_split split(args, tile, 2, share{w, workers, {}});
                    attention_item item;
                    while (split.next(item)) {
                        CHECK(item.heads <= 2);
                        CHECK(item.rows <= tile);
                        for (auto r = item.first; r < item.first + item.rows; ++r)
                            for (auto h = item.first_head; h < item.first_head + item.heads; ++h) {
                                CHECK(h / (p.heads / p.kv_heads) == item.kv_head);
                                ++times[static_cast<std::size_t>(item.chunk->first_row + r)]
                                       [static_cast<std::size_t>(h)];
                                keys[w] += item.chunk->first_position + r + 1;
                            }
                    }
                }
                for (auto const& chunk : p.chunks)
                    for (auto r = chunk.first_row; r < chunk.first_row + chunk.rows; ++r)
                        for (int count : times[static_cast<std::size_t>(r)])
                            CHECK(count == 1);
                if (p.heads == 9 && workers == 2) {
                    auto [least, most] = std::minmax_element(keys.begin(), keys.end());
                    CHECK(static_cast<double>(*most) <= 1.26 * static_cast<double>(*least)); // 5 heads to 4
                }
            }
}
