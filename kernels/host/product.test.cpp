#include <plait/kernels/host/gate.hpp>
#include <plait/kernels/host/product.hpp>

#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/tests/support/random_weights.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <new>
#include <random>
#include <vector>

using namespace plait;
using namespace plait::host;

namespace {

constexpr auto formats = test::all_weight_formats;

template<class T>
struct aligned {
    using value_type = T;
    aligned() = default;
    template<class U>
    aligned(aligned<U> const&) noexcept
    {
    }
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(aligned const&) const noexcept { return true; }
};
template<class T>
using buffer = std::vector<T, aligned<T>>;

template<class T>
bool bytes_equal(buffer<T> const& a, buffer<T> const& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

/// Tokens with their quantised form.
struct activations {
    std::int64_t rows, cols;
    buffer<float> f32;
    buffer<std::int8_t> q8;
    buffer<float> scales, sums;

    activations(std::int64_t tokens, std::int64_t columns)
        : rows(tokens)
        , cols(columns)
        , f32(at(tokens * columns))
        , q8(at(tokens * columns))
        , scales(at(tokens * (columns / 32)))
        , sums(scales.size())
    {
    }

    void quantise()
    {
        for (std::int64_t t = 0; t < rows; ++t)
            products(isa::scalar)
                .quantise_row(f32.data() + t * cols, cols, q8.data() + t * cols, scales.data() + t * (cols / 32),
                              sums.data() + t * (cols / 32));
    }

    activation_view view(weight_format format, std::int64_t first, std::int64_t tokens)
    {
        activation_view v;
        v.rows = tokens;
        v.cols = cols;
        if (takes_q8(format)) {
            v.q8 = q8.data() + first * cols;
            v.scales = scales.data() + first * (cols / 32);
            v.sums = sums.data() + first * (cols / 32);
        } else {
            v.f32 = f32.data() + first * cols;
        }
        return v;
    }
};

activations random_activations(std::int64_t rows, std::int64_t cols, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    activations x(rows, cols);
    for (auto& value : x.f32)
        value = normal(random);
    if (cols % 32 == 0) x.quantise();
    return x;
}

std::vector<std::byte> random_file(weight_format format, std::int64_t rows, std::int64_t cols, unsigned seed)
{
    return test::random_weights(format, rows, cols, seed);
}

/// `file` with one of its blocks' scales (places_of_scales) set to zero.
std::vector<std::byte> without(std::vector<std::byte> file, weight_format format, int scale_at)
{
    auto block = file_row_bytes(format, columns_of_block(format));
    for (auto i = at(scale_at); i < file.size(); i += block)
        file[i] = file[i + 1] = std::byte{0};
    return file;
}

struct matrix {
    buffer<std::byte> panels;
    weight_view view;

    matrix(weight_format format, std::int64_t rows, std::int64_t cols, std::byte const* file)
        : panels(packed_bytes(format, rows, cols))
    {
        pack_rows(format, format, rows, cols, file, panels.data(), 0);
        view = {format, rows, cols, panels.data()};
    }

    matrix(weight_format format, std::int64_t rows, std::int64_t cols, unsigned seed)
        : matrix(format, rows, cols, random_file(format, rows, cols, seed).data())
    {
    }
};

/// Runs every worker's part, the last first: parts don't depend on each other.
template<class Op, class Args>
void run(Op op, Args const& args, unsigned workers = 1)
{
    static buffer<std::byte> scratch(1 << 20);
    for (auto i = workers; i-- > 0;) {
        std::memset(scratch.data(), 0xab, 4096);
        op(args, share{i, workers, scratch});
    }
}

buffer<float> multiply(isa set, weight_view const& w, activation_view const& x, unsigned workers = 1)
{
    buffer<float> out(at(x.rows * w.rows), -1.0f);
    product_args args;
    args.w = w;
    args.x = x;
    args.out = out.data();
    args.out_stride = w.rows;
    run(products(set).product, args, workers);
    return out;
}

buffer<float> rows_of(buffer<float> const& all, std::int64_t first, std::int64_t count, std::int64_t width)
{
    return {all.begin() + first * width, all.begin() + (first + count) * width};
}

constexpr activation functions[] = {activation::silu, activation::gelu_tanh,    activation::gelu_erf,
                                    activation::relu, activation::relu_squared, activation::swiglu_clamped};

float relu(float x)
{
    return 0 > x ? 0.0f : x;
}

/// Of a function that has one argument.
float activated(activation function, float x)
{
    switch (function) {
    case activation::silu:
        return silu(x);
    case activation::gelu_tanh:
        return gelu_tanh(x);
    case activation::gelu_erf:
        return gelu_erf(x);
    case activation::relu:
        return relu(x);
    case activation::relu_squared:
        return relu(x) * relu(x);
    case activation::swiglu_clamped:
        break;
    }
    return x;
}

/// With alpha 1.702 and limit 0.5.
float clamped_swiglu(float gate, float up)
{
    float g = std::min(gate, 0.5f);
    float u = std::clamp(up, -0.5f, 0.5f);
    return g / (1.0f + host::exp(-(1.702f * g))) * (u + 1.0f);
}

/// Calls f with the functions of an instruction set.
template<class F>
void with_set(isa set, F f)
{
#if defined(__x86_64__)
    if (set == isa::avx512) return f(avx512::gate, avx512::activate);
    if (set == isa::avx2) return f(avx2::gate, avx2::activate);
#endif
    (void)set;
    f(scalar::gate, scalar::activate);
}

struct shape {
    std::int64_t rows, cols;
};

} // namespace

TEST_CASE("every instruction set, batch and number of workers gives the bits of the scalar definition")
{
    shape const shapes[] = {{1, 32}, {16, 64}, {17, 96}, {48, 576}, {100, 320}, {33, 1536}};
    for (auto format : formats)
        for (auto [rows, least_cols] : shapes) {
            auto cols = test::columns_from(format, least_cols);
            CAPTURE(name(format));
            CAPTURE(rows);
            CAPTURE(cols);
            matrix w(format, rows, cols, 1u);
            auto x = random_activations(64, cols, 2);
            auto expected = multiply(isa::scalar, w.view, x.view(format, 0, 64));
            for (auto set : available_isas())
                for (std::int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33, 64}) {
                    if (set == isa::scalar && tokens > 9) continue;
                    auto first = tokens == 64 ? 0 : 64 % tokens;
                    unsigned workers = tokens % 4 == 0 ? 5 : static_cast<unsigned>(tokens % 4);
                    auto out = multiply(set, w.view, x.view(format, first, tokens), workers);
                    CHECK_MESSAGE(bytes_equal(out, rows_of(expected, first, tokens, rows)), name(set), ", ", tokens,
                                  " tokens, ", workers, " workers");
                }
        }
}

TEST_CASE("float weights take any number of columns")
{
    for (auto format : {weight_format::f32, weight_format::f16, weight_format::bf16})
        for (std::int64_t cols : {1, 7, 45}) {
            matrix w(format, 30, cols, 3u);
            auto x = random_activations(19, cols, 4);
            auto expected = multiply(isa::scalar, w.view, x.view(format, 0, 19));
            for (auto set : available_isas())
                for (std::int64_t tokens : {1, 2, 19})
                    CHECK(bytes_equal(multiply(set, w.view, x.view(format, 0, tokens)),
                                      rows_of(expected, 0, tokens, 30)));
        }
}

TEST_CASE("long rows and large batches are split without changing a bit")
{
    auto check = [](weight_format format, std::int64_t rows, std::int64_t cols, std::int64_t tokens) {
        CAPTURE(name(format));
        matrix w(format, rows, cols, 5u);
        auto x = random_activations(tokens, cols, 6);
        auto set = best_isa();
        buffer<float> expected;
        for (std::int64_t t = 0; t < tokens; ++t) {
            auto one = multiply(set, w.view, x.view(format, t, 1));
            expected.insert(expected.end(), one.begin(), one.end());
        }
        for (unsigned workers : {1u, 3u, 64u})
            CHECK_MESSAGE(bytes_equal(multiply(set, w.view, x.view(format, 0, tokens), workers), expected), workers,
                          " workers");
    };
    check(weight_format::f32, 20, 40'000, 17); // a full tile of tokens exceeds the scratch memory
    check(weight_format::f32, 3, 300'000, 3);  // and so does one token
    check(weight_format::q8_0, 20, 65'536, 19);
    check(weight_format::q4_1, 40, 1536, 700); // several chunks
    check(weight_format::q4_0, 16, 32, 1500);
    check(weight_format::q2_k, 20, 65'536, 19);
    check(weight_format::q6_k, 40, 1536, 300);
    check(weight_format::q4_k, 16, 256, 1500);
}

TEST_CASE("a product of a slice of columns is that of a copy of the slice")
{
    for (auto format : formats)
        for (std::int64_t tokens : {1, 5, 40}) {
            CAPTURE(name(format));
            CAPTURE(tokens);
            auto cols = test::columns_from(format, 96), all = cols + 224;
            auto whole = random_activations(tokens, all, 7);
            matrix w(format, 40, cols, 8u);
            for (std::int64_t first : {0, 32, 224}) {
                activations copy(tokens, cols);
                for (std::int64_t t = 0; t < tokens; ++t)
                    std::copy_n(whole.f32.data() + t * all + first, cols, copy.f32.data() + t * cols);
                copy.quantise();
                for (auto set : available_isas())
                    CHECK(bytes_equal(multiply(set, w.view, columns(whole.view(format, 0, tokens), first, cols)),
                                      multiply(set, w.view, copy.view(format, 0, tokens))));
            }
        }
}

TEST_CASE("the definition agrees with a sum in F64 over the same quantised inputs")
{
    for (auto format : formats)
        for (std::int64_t least_cols : {32, 576, 1536}) {
            CAPTURE(name(format));
            auto cols = test::columns_from(format, least_cols);
            std::int64_t const rows = 40, tokens = 5;
            auto file = random_file(format, rows, cols, 7);
            matrix w(format, rows, cols, file.data());
            auto x = random_activations(tokens, cols, 8);
            auto out = multiply(isa::scalar, w.view, x.view(format, 0, tokens));
            // Dequantised, a weight with a minimum is a rounded sum; each of its terms alone is exact.
            auto places = test::places_of_scales(format);
            bool minima = places.minimum >= 0;
            matrix scaled(format, rows, cols, (minima ? without(file, format, places.minimum) : file).data());
            matrix minimum(format, rows, cols, (minima ? without(file, format, places.d) : file).data());
            std::vector<float> scaled_row(at(cols)), minimum_row(at(cols));
            double worst = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                unpack_row(scaled.view, r, scaled_row.data());
                if (minima) unpack_row(minimum.view, r, minimum_row.data());
                for (std::int64_t t = 0; t < tokens; ++t) {
                    double sum = 0, magnitude = 0;
                    for (std::int64_t k = 0; k < cols; ++k) {
                        auto i = t * cols + k;
                        double value = takes_q8(format) ? static_cast<double>(x.scales[at(i / 32)]) * x.q8[at(i)]
                                                        : static_cast<double>(x.f32[at(i)]);
                        for (double weight : {scaled_row[at(k)], minimum_row[at(k)]}) {
                            sum += weight * value;
                            magnitude += std::fabs(weight * value);
                        }
                    }
                    worst = std::max(worst, std::fabs(sum - static_cast<double>(out[at(t * rows + r)])) / magnitude);
                }
            }
            CHECK(worst <= 1e-6);
        }
}

TEST_CASE("integer sums are exact at the ends of their range")
{
    std::int64_t const rows = 16;
    struct extreme {
        weight_format format;
        int byte;          ///< of every value and packed scale
        int value;         ///< that a weight stands for, before its block's d
        int run_scale = 0; ///< of q6_k
    };
    extreme const extremes[] = {
        {weight_format::q4_0, 0xff, 7},
        {weight_format::q4_0, 0x00, -8},
        {weight_format::q4_1, 0xff, 15},
        {weight_format::q5_0, 0xff, 15},
        {weight_format::q5_0, 0x00, -16},
        {weight_format::q5_1, 0xff, 31},
        {weight_format::q8_0, 0x7f, 127},
        {weight_format::q8_0, 0x81, -127},
        {weight_format::q8_0, 0x80, -128},
        {weight_format::q2_k, 0xff, 15 * 3},
        {weight_format::q3_k, 0xff, 31 * 3},
        {weight_format::q3_k, 0x00, -32 * -4},
        {weight_format::q4_k, 0xff, 63 * 15},
        {weight_format::q5_k, 0xff, 63 * 31},
        {weight_format::q6_k, 0xff, 127 * 31, 127},
        {weight_format::q6_k, 0x00, 127 * -32, 127},
        {weight_format::q6_k, 0x00, -128 * -32, -128},
        {weight_format::iq4_nl, 0xff, 113},
        {weight_format::iq4_nl, 0x00, -127},
        {weight_format::iq4_xs, 0xff, 31 * 113},
        {weight_format::iq4_xs, 0x00, -32 * -127},
        {weight_format::mxfp4, 0x77, 12},
        {weight_format::mxfp4, 0xff, -12},
    };
    for (auto [format, byte, value, run_scale] : extremes) {
        CAPTURE(name(format));
        CAPTURE(value);
        auto cols = test::columns_from(format, 64);
        auto block = file_row_bytes(format, columns_of_block(format));
        auto places = test::places_of_scales(format);
        std::vector<std::byte> file(at(rows) * file_row_bytes(format, cols), static_cast<std::byte>(byte));
        for (std::size_t i = 0; i < file.size(); i += block) {
            if (format == weight_format::mxfp4) {
                file[i] = std::byte{128}; // d = 1
                continue;
            }
            file[i + at(places.d)] = std::byte{0};
            file[i + at(places.d) + 1] = std::byte{0x3c}; // d = 1
            if (format == weight_format::q6_k) std::memset(&file[i + 192], run_scale, 16);
        }
        if (places.minimum >= 0) file = without(file, format, places.minimum);
        matrix w(format, rows, cols, file.data());
        for (int pattern = 0; pattern < 4; ++pattern) {
            activations x(9, cols);
            int sum = 0;
            for (std::size_t i = 0; i < x.q8.size(); ++i) {
                bool negative = pattern == 1 || (pattern == 2 && i % 2) || (pattern == 3 && i % 8 < 4);
                x.q8[i] = static_cast<std::int8_t>(negative ? -127 : 127);
                if (i < at(cols)) sum += x.q8[i];
            }
            std::fill(x.scales.begin(), x.scales.end(), 1.0f);
            std::fill(x.sums.begin(), x.sums.end(), 5.0f);
            for (auto set : available_isas())
                for (std::int64_t tokens : {1, 9}) {
                    auto out = multiply(set, w.view, x.view(format, 0, tokens));
                    CHECK_MESSAGE(std::count(out.begin(), out.end(), static_cast<float>(sum * value)) == rows * tokens,
                                  name(set));
                }
        }
    }
}

TEST_CASE("any 8-bit weights and scales give the same bits on every instruction set")
{
    std::mt19937 random(9);
    for (auto format : formats) {
        if (!takes_q8(format)) continue;
        auto cols = test::columns_from(format, 128);
        std::vector<std::byte> file(at(32) * file_row_bytes(format, cols));
        auto block = file_row_bytes(format, columns_of_block(format));
        auto places = test::places_of_scales(format);
        for (auto& byte : file)
            byte = static_cast<std::byte>(random());
        // No infinities: their differences are NaN, which have several forms.
        for (std::size_t i = 0; i < file.size(); i += block) {
            if (places.d >= 0) file[i + at(places.d) + 1] &= std::byte{0xbf};
            if (places.minimum >= 0) file[i + at(places.minimum) + 1] &= std::byte{0xbf};
            if (format == weight_format::mxfp4) file[i] &= std::byte{0x7f};
        }
        matrix w(format, 32, cols, file.data());
        activations x(8, cols);
        for (auto& q : x.q8)
            q = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
        for (std::size_t i = 0; i < x.scales.size(); ++i) {
            x.scales[i] =
                std::ldexp(1.0f + static_cast<float>(random() % 1000) / 1000, static_cast<int>(random() % 40) - 30);
            int sum = 0;
            for (int j = 0; j < 32; ++j)
                sum += x.q8[i * 32 + static_cast<std::size_t>(j)];
            x.sums[i] = x.scales[i] * static_cast<float>(sum);
        }
        auto expected = multiply(isa::scalar, w.view, x.view(format, 0, 8));
        for (auto set : available_isas())
            CHECK_MESSAGE(bytes_equal(multiply(set, w.view, x.view(format, 0, 8)), expected), name(format), " ",
                          name(set));
    }
}

TEST_CASE("a residual is added last, in place too, and nothing outside the outputs is written")
{
    std::int64_t const rows = 21, tokens = 11, stride = 29;
    for (auto format : formats)
        for (auto set : available_isas()) {
            CAPTURE(name(set));
            auto cols = test::columns_from(format, 64);
            matrix w(format, rows, cols, 10u);
            auto x = random_activations(tokens, cols, 11);
            auto plain = multiply(set, w.view, x.view(format, 0, tokens));
            // One float off any alignment.
            buffer<float> out(at(1 + tokens * stride)), separate(out.size());
            for (std::size_t i = 0; i < out.size(); ++i)
                out[i] = static_cast<float>(i) / 3;
            auto before = out;
            product_args args;
            args.w = w.view;
            args.x = x.view(format, 0, tokens);
            args.out = out.data() + 1;
            args.out_stride = stride;
            args.residual = out.data() + 1;
            run(products(set).product, args, 2);
            args.out = separate.data() + 1;
            args.residual = before.data() + 1;
            run(products(set).product, args, 3);
            int wrong = 0;
            for (std::size_t i = 0; i < out.size(); ++i) {
                auto position = static_cast<std::int64_t>(i) - 1;
                bool output = i > 0 && position % stride < rows;
                auto sum = output ? before[i] + plain[at(position / stride * rows + position % stride)] : 0;
                wrong += out[i] != (output ? sum : before[i]);
                wrong += separate[i] != sum;
            }
            CHECK(wrong == 0);
        }
}

TEST_CASE("an output is scaled with its bias, and joins a scaled residual, each operation rounded")
{
    std::int64_t const rows = 37, tokens = 18;
    auto bias = random_activations(1, rows, 30).f32;
    auto residual = random_activations(tokens, rows, 31).f32;
    for (auto format : formats) {
        CAPTURE(name(format));
        auto cols = test::columns_from(format, 64);
        matrix w(format, rows, cols, 32u);
        auto x = random_activations(tokens, cols, 33);
        auto plain = multiply(isa::scalar, w.view, x.view(format, 0, tokens));
        for (bool with_bias : {false, true})
            for (bool with_residual : {false, true}) {
                buffer<float> expected(plain.size());
                for (std::size_t i = 0; i < plain.size(); ++i) {
                    float value = with_bias ? plain[i] + bias[i % at(rows)] : plain[i];
                    value = 0.3f * value;
                    expected[i] = with_residual ? 1.9f * residual[i] + value : value;
                }
                for (auto set : available_isas())
                    for (unsigned workers : {1u, 4u}) {
                        auto out = residual;
                        product_args args;
                        args.w = w.view;
                        args.x = x.view(format, 0, tokens);
                        args.out = out.data();
                        args.out_stride = rows;
                        args.residual = with_residual ? out.data() : nullptr;
                        args.bias = with_bias ? bias.data() : nullptr;
                        args.scale = 0.3f;
                        args.residual_scale = 1.9f;
                        run(products(set).product, args, workers);
                        CHECK_MESSAGE(bytes_equal(out, expected), name(set));
                    }
            }
    }
}

TEST_CASE("no tokens and no rows are no work")
{
    for (auto set : available_isas()) {
        matrix w(weight_format::q4_1, 16, 32, 12u);
        auto x = random_activations(1, 32, 13);
        CHECK(multiply(set, w.view, x.view(weight_format::q4_1, 0, 0), 3).empty());
        w.view.rows = 0;
        CHECK(multiply(set, w.view, x.view(weight_format::q4_1, 0, 1), 3).empty());
    }
}

TEST_CASE("a gated layer is its two products, the activation and the quantisation")
{
    struct test_case {
        std::int64_t hidden, least_cols, tokens;
    };
    test_case const cases[] = {{32, 32, 1}, {96, 64, 9}, {160, 96, 33}, {64, 576, 64}};
    for (auto format : formats)
        for (auto [hidden, least_cols, tokens] : cases) {
            auto cols = test::columns_from(format, least_cols);
            auto gate_file = random_file(format, hidden, cols, 14), up_file = random_file(format, hidden, cols, 15);
            matrix gate(format, hidden, cols, gate_file.data()), up(format, hidden, cols, up_file.data());
            buffer<std::byte> panels(2 * packed_bytes(format, hidden, cols));
            pack_rows(format, format, hidden, cols, gate_file.data(), panels.data(), 0, {2, 0});
            pack_rows(format, format, hidden, cols, up_file.data(), panels.data(), 0, {2, 1});
            auto x = random_activations(tokens, cols, 16);
            auto view = x.view(format, 0, tokens);
            auto const gates = multiply(isa::scalar, gate.view, view), ups = multiply(isa::scalar, up.view, view);
            auto biases = random_activations(2, hidden, 17).f32;
            for (auto function : functions)
                for (bool with_bias : {false, true}) {
                    CAPTURE(name(format));
                    CAPTURE(hidden);
                    CAPTURE(static_cast<int>(function));
                    activations expected(tokens, hidden);
                    for (std::size_t i = 0; i < gates.size(); ++i) {
                        auto column = i % at(hidden);
                        auto g = with_bias ? gates[i] + biases[column] : gates[i];
                        auto u = with_bias ? ups[i] + biases[at(hidden) + column] : ups[i];
                        expected.f32[i] =
                            function == activation::swiglu_clamped ? clamped_swiglu(g, u) : activated(function, g) * u;
                    }
                    expected.quantise();

                    for (auto set : available_isas())
                        for (unsigned workers : {1u, 2u, 5u}) {
                            activations out(tokens, hidden);
                            gated_args args;
                            args.gate_up = {format, 2 * hidden, cols, panels.data()};
                            args.x = view;
                            args.out = {tokens,         hidden, out.f32.data(), out.q8.data(), out.scales.data(),
                                        out.sums.data()};
                            args.function = function;
                            args.gate_bias = with_bias ? biases.data() : nullptr;
                            args.up_bias = with_bias ? biases.data() + hidden : nullptr;
                            args.alpha = 1.702f;
                            args.limit = 0.5f;
                            run(products(set).gated, args, workers);
                            CHECK(bytes_equal(out.f32, expected.f32));
                            CHECK(bytes_equal(out.q8, expected.q8));
                            CHECK(bytes_equal(out.scales, expected.scales));
                            CHECK(bytes_equal(out.sums, expected.sums));
                        }
                }
        }
}

TEST_CASE("a layer without a gate is its product, the activation and the quantisation")
{
    for (auto format : formats)
        for (std::int64_t rows : {32, 96, 160})
            for (std::int64_t tokens : {1, 20}) {
                auto cols = test::columns_from(format, 64);
                matrix w(format, rows, cols, 34u);
                auto x = random_activations(tokens, cols, 35);
                auto bias = random_activations(1, rows, 36).f32;
                auto const plain = multiply(isa::scalar, w.view, x.view(format, 0, tokens));
                for (auto function : functions) {
                    if (function == activation::swiglu_clamped) continue;
                    CAPTURE(name(format));
                    CAPTURE(static_cast<int>(function));
                    bool const with_bias = function != activation::gelu_tanh;
                    activations expected(tokens, rows);
                    for (std::size_t i = 0; i < plain.size(); ++i)
                        expected.f32[i] = activated(function, with_bias ? plain[i] + bias[i % at(rows)] : plain[i]);
                    expected.quantise();
                    for (auto set : available_isas())
                        for (unsigned workers : {1u, 3u}) {
                            activations out(tokens, rows);
                            activated_args args;
                            args.w = w.view;
                            args.x = x.view(format, 0, tokens);
                            args.bias = with_bias ? bias.data() : nullptr;
                            args.out = {tokens,         rows, out.f32.data(), out.q8.data(), out.scales.data(),
                                        out.sums.data()};
                            args.function = function;
                            run(products(set).activated, args, workers);
                            CHECK(bytes_equal(out.f32, expected.f32));
                            CHECK(bytes_equal(out.q8, expected.q8));
                            CHECK(bytes_equal(out.scales, expected.scales));
                            CHECK(bytes_equal(out.sums, expected.sums));
                        }
                }
            }
}

TEST_CASE("a layer without a gate writes any number of outputs as F32 and nothing beyond")
{
    for (std::int64_t rows : {1, 15, 33, 50}) {
        matrix w(weight_format::f16, rows, 24, 37u);
        auto x = random_activations(5, 24, 38);
        auto bias = random_activations(1, rows, 39).f32;
        auto expected = multiply(isa::scalar, w.view, x.view(weight_format::f16, 0, 5));
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = relu(expected[i] + bias[i % at(rows)]);
        expected.push_back(7.0f);
        for (auto set : available_isas()) {
            buffer<float> out(expected.size(), 7.0f);
            activated_args args;
            args.w = w.view;
            args.x = x.view(weight_format::f16, 0, 5);
            args.bias = bias.data();
            args.out.rows = 5;
            args.out.cols = rows;
            args.out.f32 = out.data();
            args.function = activation::relu;
            run(products(set).activated, args, 2);
            CHECK(bytes_equal(out, expected));
        }
    }
}

TEST_CASE("activations have the same bits in every instruction set for numbers of any size")
{
    std::mt19937 random(40);
    for (int round = 0; round < 2000; ++round) {
        float gate[16], up[16];
        for (auto* values : {gate, up})
            for (int i = 0; i < 16; ++i)
                values[i] = std::ldexp(static_cast<float>(static_cast<int>(random() % 20001) - 10000),
                                       static_cast<int>(random() % 60) - 40);
        if (round == 0) gate[0] = -0.0f, gate[1] = 0.0f, up[1] = -0.0f;
        for (auto function : functions) {
            gating const how = {function, 1.702f, 7.0f};
            float expected[2][16];
            scalar::gate(how, gate, up, expected[0]);
            scalar::activate(function, gate, expected[1]);
            int wrong = 0;
            for (auto set : available_isas()) {
                float out[2][16] = {};
                with_set(set, [&](auto gate_of, auto activate) {
                    gate_of(how, gate, up, out[0]);
                    activate(function, gate, out[1]);
                });
                wrong += std::memcmp(out, expected, sizeof out) != 0;
            }
            REQUIRE(wrong == 0);
        }
    }
}

TEST_CASE("the clamped SwiGLU cuts the gate above and the up projection on both sides")
{
    float gate[16] = {9, -9, 1}, up[16] = {9, -9, 0.5f}, out[16];
    scalar::gate({activation::swiglu_clamped, 1.702f, 7.0f}, gate, up, out);
    auto expected = [](double g, double u) { return g / (1 + std::exp(-1.702 * g)) * (u + 1); };
    CHECK(out[0] == doctest::Approx(expected(7, 7)));
    CHECK(out[1] == doctest::Approx(expected(-9, -7)));
    CHECK(out[2] == doctest::Approx(expected(1, 0.5)));
}

TEST_CASE("a gated layer of any width writes F32")
{
    for (std::int64_t hidden : {1, 16, 40, 50}) {
        auto gate_file = random_file(weight_format::f16, hidden, 24, 17);
        auto up_file = random_file(weight_format::f16, hidden, 24, 18);
        buffer<std::byte> panels(2 * packed_bytes(weight_format::f16, hidden, 24));
        pack_rows(weight_format::f16, weight_format::f16, hidden, 24, gate_file.data(), panels.data(), 0, {2, 0});
        pack_rows(weight_format::f16, weight_format::f16, hidden, 24, up_file.data(), panels.data(), 0, {2, 1});
        auto x = random_activations(3, 24, 19);
        buffer<float> first;
        for (auto set : available_isas()) {
            buffer<float> out(at(3 * hidden + 1), 7.0f);
            gated_args args;
            args.gate_up = {weight_format::f16, 2 * hidden, 24, panels.data()};
            args.x = x.view(weight_format::f16, 0, 3);
            args.out.rows = 3;
            args.out.cols = hidden;
            args.out.f32 = out.data();
            run(products(set).gated, args, 2);
            CHECK(out.back() == 7.0f);
            CHECK(std::count(out.begin(), out.end(), 7.0f) == 1);
            if (first.empty()) first = out;
            CHECK(bytes_equal(out, first));
        }
    }
}

TEST_CASE("quantisation rounds to the nearest, ties to even, within its block's scale")
{
    for (auto set : available_isas()) {
        buffer<float> x(32);
        float const start[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, -126.6f, 0.49f};
        std::copy(std::begin(start), std::end(start), x.begin());
        buffer<std::int8_t> q(32);
        float scale = 0, sum = 0;
        products(set).quantise_row(x.data(), 32, q.data(), &scale, &sum);
        CHECK(scale == 1.0f);
        int const expected[] = {127, 0, 2, 2, 0, -2, 126, -127, 0, 0};
        for (std::size_t i = 0; i < 10; ++i)
            CHECK(static_cast<int>(q[i]) == expected[i]);
        CHECK(sum == 128.0f);
    }
}

TEST_CASE("quantisation has the same bits on every instruction set, at any magnitude and alignment")
{
    std::mt19937 random(20);
    std::int64_t const cols = 32 * 600;
    buffer<float> x(at(cols + 1));
    for (std::int64_t b = 0; b < cols / 32; ++b)
        for (std::int64_t i = 0; i < 32; ++i)
            x[at(1 + b * 32 + i)] = std::ldexp(static_cast<float>(static_cast<int>(random() % 20001) - 10000),
                                               static_cast<int>(b % 240) - 126);
    activations expected(1, cols), out(1, cols);
    products(isa::scalar)
        .quantise_row(x.data() + 1, cols, expected.q8.data(), expected.scales.data(), expected.sums.data());
    for (auto set : available_isas()) {
        products(set).quantise_row(x.data() + 1, cols, out.q8.data(), out.scales.data(), out.sums.data());
        CHECK(bytes_equal(out.q8, expected.q8));
        CHECK(bytes_equal(out.scales, expected.scales));
        CHECK(bytes_equal(out.sums, expected.sums));
    }
    int outside = 0;
    for (std::int64_t i = 0; i < cols; ++i) {
        auto scale = static_cast<double>(expected.scales[at(i / 32)]);
        auto error = std::fabs(static_cast<double>(x[at(i + 1)]) - scale * expected.q8[at(i)]);
        outside += expected.scales[at(i / 32)] == 0 ? std::fabs(x[at(i + 1)]) >= 0x1p-100f : error > scale * 0.50001;
        outside += expected.q8[at(i)] == -128;
    }
    CHECK(outside == 0);
}

TEST_CASE("a block of zeros or of tiny values quantises to zero, and one with a NaN or an infinity to NaN")
{
    auto const infinity = std::numeric_limits<float>::infinity();
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    for (auto set : available_isas()) {
        buffer<float> x(32 * 6);
        x[32 + 3] = 0x1p-101f;
        x[64 + 31] = nan;
        x[64 + 2] = 1;
        x[96 + 17] = -infinity;
        x[128 + 9] = 0x1p-100f;
        x[160 + 9] = std::numeric_limits<float>::max();
        activations out(1, 32 * 6);
        products(set).quantise_row(x.data(), 32 * 6, out.q8.data(), out.scales.data(), out.sums.data());
        for (std::size_t b = 0; b < 4; ++b)
            CHECK(std::count(out.q8.begin() + static_cast<long>(b) * 32, out.q8.begin() + static_cast<long>(b + 1) * 32,
                             0) == 32);
        for (std::size_t b = 0; b < 2; ++b) {
            CHECK(out.scales[b] == 0.0f);
            CHECK(out.sums[b] == 0.0f);
        }
        for (std::size_t b = 2; b < 4; ++b) {
            CHECK(std::isnan(out.scales[b]));
            CHECK(std::isnan(out.sums[b]));
        }
        for (std::size_t b = 4; b < 6; ++b)
            CHECK(static_cast<int>(out.q8[b * 32 + 9]) == 127);

        // The NaN reaches every output of its token and of no other.
        for (auto format : formats) {
            if (!takes_q8(format)) continue;
            auto cols = test::columns_from(format, 32);
            matrix w(format, 16, cols, 21u);
            activations two(2, cols);
            two.f32[5] = nan;
            two.f32[at(cols)] = 1;
            two.quantise();
            auto y = multiply(set, w.view, two.view(format, 0, 2));
            for (std::size_t r = 0; r < 16; ++r) {
                CHECK(std::isnan(y[r]));
                CHECK(std::isfinite(y[16 + r]));
            }
        }
    }
}
