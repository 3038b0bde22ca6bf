#include <plait/tests/support/gguf_writer.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace plait::test {
namespace {

constexpr std::size_t block = 32;

/// IEEE binary16, rounded to nearest, ties to even.
std::uint16_t to_f16(float value)
{
    auto const bits = std::bit_cast<std::uint32_t>(value);
    auto const sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    float const magnitude = std::fabs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (magnitude >= 65520.0f) return sign | 0x7c00;
    if (magnitude == 0) return sign;
    // The exponent of the last bit that F16 keeps: the sum with 2^24 times it rounds there, to even.
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    int const ulp = std::max(exponent - 11, -24);
    auto const units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -ulp)));
    if (ulp == -24) return static_cast<std::uint16_t>(sign | units); // subnormal, or carried into the first normal
    return static_cast<std::uint16_t>(sign | (static_cast<std::uint32_t>(ulp + 24) * 1024 + units));
}

std::uint16_t to_bf16(float value)
{
    auto const bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 64);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void append_nibbles(std::vector<std::byte>& out, std::span<std::uint8_t const> q)
{
    for (std::size_t i = 0; i < block / 2; ++i)
        append(out, static_cast<std::uint8_t>(q[i] | q[i + block / 2] << 4));
}

std::uint8_t nibble(float scaled)
{
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(scaled), 0, 15));
}

// The three below follow quantize_row_q4_0_ref, q4_1_ref and q8_0_ref of ggml-quants.c.

void append_q4_0(std::vector<std::byte>& out, std::span<float const> x)
{
    float const peak = *std::ranges::max_element(x, {}, [](float v) { return std::fabs(v); });
    float const d = peak / -8;
    float const inverse = d != 0 ? 1.0f / d : 0.0f;
    append(out, to_f16(d));
    std::uint8_t q[block];
    for (std::size_t i = 0; i < block; ++i)
        q[i] = nibble(x[i] * inverse + 8.5f);
    append_nibbles(out, q);
}

void append_q4_1(std::vector<std::byte>& out, std::span<float const> x)
{
    auto const [low, high] = std::ranges::minmax(x);
    float const d = (high - low) / 15;
    float const inverse = d != 0 ? 1.0f / d : 0.0f;
    append(out, to_f16(d));
    append(out, to_f16(low));
    std::uint8_t q[block];
    for (std::size_t i = 0; i < block; ++i)
        q[i] = nibble((x[i] - low) * inverse + 0.5f);
    append_nibbles(out, q);
}

void append_q8_0(std::vector<std::byte>& out, std::span<float const> x)
{
    float peak = 0;
    for (float const v : x)
        peak = std::max(peak, std::fabs(v));
    float const d = peak / 127;
    float const inverse = d != 0 ? 1.0f / d : 0.0f;
    append(out, to_f16(d));
    for (float const v : x)
        append(out, static_cast<std::int8_t>(std::round(v * inverse)));
}

// The two below are the plainest that keep to the layouts of ggml-common.h: nothing is searched for.

int steps(float value, float step, int least, int most)
{
    return step == 0 ? 0 : std::clamp(static_cast<int>(std::nearbyint(value / step)), least, most);
}

void append_q4_k(std::vector<std::byte>& out, std::span<float const> x)
{
    float scale[8], below[8], d = 0, dmin = 0;
    for (std::size_t run = 0; run < 8; ++run) {
        auto const [low, high] = std::ranges::minmax(x.subspan(run * 32, 32));
        below[run] = std::max(0.0f, -low);
        scale[run] = (high + below[run]) / 15;
        d = std::max(d, scale[run] / 63);
        dmin = std::max(dmin, below[run] / 63);
    }
    std::uint8_t packed[12] = {}, q[256];
    for (std::size_t run = 0; run < 8; ++run) {
        int const s = steps(scale[run], d, 0, 63), m = steps(below[run], dmin, 0, 63);
        auto const last = run % 4;
        if (run < 4) {
            packed[last] = static_cast<std::uint8_t>(s);
            packed[4 + last] = static_cast<std::uint8_t>(m);
        } else {
            packed[8 + last] = static_cast<std::uint8_t>((s & 15) | (m & 15) << 4);
            packed[last] |= static_cast<std::uint8_t>(s >> 4 << 6);
            packed[4 + last] |= static_cast<std::uint8_t>(m >> 4 << 6);
        }
        for (std::size_t i = run * 32; i < run * 32 + 32; ++i)
            q[i] =
                static_cast<std::uint8_t>(steps(x[i] + dmin * static_cast<float>(m), d * static_cast<float>(s), 0, 15));
    }
    append(out, to_f16(d));
    append(out, to_f16(dmin));
    for (auto const byte : packed)
        append(out, byte);
    for (std::size_t i = 0; i < 256; i += i % 64 == 31 ? 33 : 1)
        append(out, static_cast<std::uint8_t>(q[i] | q[i + 32] << 4));
}

void append_q6_k(std::vector<std::byte>& out, std::span<float const> x)
{
    float scale[16], d = 0;
    for (std::size_t run = 0; run < 16; ++run) {
        auto const [low, high] = std::ranges::minmax(x.subspan(run * 16, 16));
        scale[run] = std::max(-low, high) / 31;
        d = std::max(d, scale[run] / 127);
    }
    std::int8_t s[16];
    std::uint8_t q[256];
    for (std::size_t run = 0; run < 16; ++run) {
        s[run] = static_cast<std::int8_t>(steps(scale[run], d, 0, 127));
        for (std::size_t i = run * 16; i < run * 16 + 16; ++i)
            q[i] = static_cast<std::uint8_t>(32 + steps(x[i], d * static_cast<float>(s[run]), -32, 31));
    }
    for (std::size_t half = 0; half < 256; half += 128)
        for (std::size_t i = half; i < half + 64; ++i)
            append(out, static_cast<std::uint8_t>((q[i] & 15) | (q[i + 64] & 15) << 4));
    for (std::size_t half = 0; half < 256; half += 128)
        for (std::size_t i = half; i < half + 32; ++i)
            append(out, static_cast<std::uint8_t>(q[i] >> 4 | q[i + 32] >> 4 << 2 | q[i + 64] >> 4 << 4 |
                                                  q[i + 96] >> 4 << 6));
    for (auto const value : s)
        append(out, value);
    append(out, to_f16(d));
}

} // namespace

std::uint64_t encoded_bytes(ggml_type type, std::uint64_t count)
{
    auto const& of = layout(type);
    return count / of.block * of.bytes;
}

std::vector<std::byte> encode(ggml_type type, std::span<float const> values)
{
    std::vector<std::byte> out;
    out.reserve(encoded_bytes(type, values.size()));
    auto const blocks = [&](auto const& append_block) {
        std::size_t const columns = layout(type).block;
        if (values.size() % columns != 0) throw std::invalid_argument("encode: not a whole number of blocks");
        for (std::size_t i = 0; i < values.size(); i += columns)
            append_block(out, values.subspan(i, columns));
    };
    switch (type) {
    case ggml_type::f32:
        for (float const v : values)
            append(out, v);
        break;
    case ggml_type::f16:
        for (float const v : values)
            append(out, to_f16(v));
        break;
    case ggml_type::bf16:
        for (float const v : values)
            append(out, to_bf16(v));
        break;
    case ggml_type::q4_0:
        blocks(append_q4_0);
        break;
    case ggml_type::q4_1:
        blocks(append_q4_1);
        break;
    case ggml_type::q8_0:
        blocks(append_q8_0);
        break;
    case ggml_type::q4_k:
        blocks(append_q4_k);
        break;
    case ggml_type::q6_k:
        blocks(append_q6_k);
        break;
    default:
        throw std::invalid_argument("encode: no encoder for " + std::string(layout(type).name));
    }
    return out;
}

gguf_writer::tensor& gguf_writer::add(std::string_view name, std::vector<std::uint64_t> dims, ggml_type type,
                                      std::vector<std::byte> data)
{
    std::uint64_t count = 1;
    for (std::uint64_t const dim : dims)
        count *= dim;
    if (data.empty()) data.resize(encoded_bytes(type, count));
    tensors.push_back({std::string(name), std::move(dims), static_cast<std::uint32_t>(type), std::move(data), {}, {}});
    return tensors.back();
}

gguf_writer::tensor& gguf_writer::at(std::string_view name)
{
    auto const found = std::ranges::find(tensors, name, &tensor::name);
    if (found == tensors.end()) throw std::out_of_range("gguf_writer: no tensor " + std::string(name));
    return *found;
}

void gguf_writer::erase_tensor(std::string_view name)
{
    std::erase_if(tensors, [&](tensor const& t) { return t.name == name; });
}

std::vector<std::byte> gguf_writer::bytes() const
{
    auto const aligned = [&](std::uint64_t at) { return (at + alignment - 1) / alignment * alignment; };
    std::vector<std::byte> out;
    for (char const c : magic)
        append(out, c);
    append(out, version);
    append(out, tensor_count.value_or(tensors.size()));
    append(out, entry_count.value_or(entries.size()));
    append_to(out);
    std::uint64_t offset = 0;
    for (tensor const& t : tensors) {
        append_gguf_string(out, t.name);
        append(out, t.rank.value_or(static_cast<std::uint32_t>(t.dims.size())));
        for (std::uint64_t const dim : t.dims)
            append(out, dim);
        append(out, t.type);
        append(out, t.offset.value_or(offset));
        offset = aligned(offset + t.data.size());
    }
    for (tensor const& t : tensors) {
        out.resize(aligned(out.size()));
        out.insert(out.end(), t.data.begin(), t.data.end());
    }
    return out;
}

} // namespace plait::test
