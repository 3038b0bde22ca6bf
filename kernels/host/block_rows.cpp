// Every block format goes through the same numbers: a file's block is read into them, and they are written to a panel,
// read from one and dequantised, all by what its layout says. Only the reading of a file's block is a matter of the
// format alone. Source of the file layouts: ggml-common.h and ggml-quants.c.

#include <plait/kernels/host/block_rows.hpp>

#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/numbers.hpp>

#include <array>
#include <cstring>
#include <utility>

namespace plait::host {

namespace {

/// A block of one row.
struct block_numbers {
    std::uint8_t q[256] = {};      ///< as a panel stores them: 0 and up
    std::int8_t scales[16] = {};   ///< of the runs of columns
    std::uint8_t minima[16] = {};  ///< likewise
    std::uint16_t d = 0, dmin = 0; ///< F16; of `power`, d is the exponent
};

template<class T>
T load(void const* from) noexcept
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template<class T>
void store(std::byte* to, T value) noexcept
{
    std::memcpy(to, &value, sizeof value);
}

std::uint8_t at(std::byte const* from, int i) noexcept
{
    return static_cast<std::uint8_t>(from[i]);
}

std::uint8_t bits(std::byte const* from, int i, int shift, int mask) noexcept
{
    return static_cast<std::uint8_t>(at(from, i) >> shift & mask);
}

/// 2 * Count values: the low halves of `Count` bytes, then the high ones.
template<int Count>
void read_nibbles(std::byte const* from, std::uint8_t* q) noexcept
{
    for (int i = 0; i < Count; ++i) {
        q[i] = at(from, i) & 15;
        q[Count + i] = static_cast<std::uint8_t>(at(from, i) >> 4);
    }
}

/// The 6-bit scales and minima of q4_k and q5_k. The first four of each fill the low bits of eight bytes; the low bits
/// of the last four are the halves of four more, their high bits the upper ones of the eight.
void read_scales_k(std::byte const* from, block_numbers& n) noexcept
{
    for (int i = 0; i < 4; ++i) {
        n.scales[i] = static_cast<std::int8_t>(at(from, i) & 63);
        n.minima[i] = at(from, 4 + i) & 63;
        n.scales[4 + i] = static_cast<std::int8_t>((at(from, 8 + i) & 15) | bits(from, i, 6, 3) << 4);
        n.minima[4 + i] = static_cast<std::uint8_t>(at(from, 8 + i) >> 4 | bits(from, 4 + i, 6, 3) << 4);
    }
}

/// q2_k and q3_k: a byte has the values of four columns that are 32 apart.
void read_quarters(std::byte const* from, std::uint8_t* q) noexcept
{
    for (int half = 0; half < 2; ++half)
        for (int quarter = 0; quarter < 4; ++quarter)
            for (int i = 0; i < 32; ++i)
                q[half * 128 + quarter * 32 + i] = bits(from, half * 32 + i, 2 * quarter, 3);
}

/// Adds the bits of q3_k and q5_k that are in planes of 32 bytes: bit k of byte i belongs to column 32 k + i.
void add_high_bits(std::byte const* from, int position, std::uint8_t* q) noexcept
{
    for (int k = 0; k < 8; ++k)
        for (int i = 0; i < 32; ++i)
            q[k * 32 + i] |= static_cast<std::uint8_t>(bits(from, i, k, 1) << position);
}

template<weight_format Format>
void read_file(std::byte const* from, block_numbers& n) noexcept
{
    if constexpr (Format == weight_format::q4_0 || Format == weight_format::iq4_nl) {
        n.d = load<std::uint16_t>(from);
        read_nibbles<16>(from + 2, n.q);
    } else if constexpr (Format == weight_format::q4_1) {
        n.d = load<std::uint16_t>(from);
        n.dmin = load<std::uint16_t>(from + 2);
        read_nibbles<16>(from + 4, n.q);
    } else if constexpr (Format == weight_format::q5_0 || Format == weight_format::q5_1) {
        constexpr int high_at = Format == weight_format::q5_1 ? 4 : 2;
        n.d = load<std::uint16_t>(from);
        if constexpr (Format == weight_format::q5_1) n.dmin = load<std::uint16_t>(from + 2);
        auto high = load<std::uint32_t>(from + high_at);
        read_nibbles<16>(from + high_at + 4, n.q);
        for (int i = 0; i < 32; ++i)
            n.q[i] |= static_cast<std::uint8_t>((high >> i & 1) << 4);
    } else if constexpr (Format == weight_format::q8_0) {
        n.d = load<std::uint16_t>(from);
        for (int i = 0; i < 32; ++i)
            n.q[i] = at(from, 2 + i) ^ 128;
    } else if constexpr (Format == weight_format::q2_k) {
        for (int i = 0; i < 16; ++i) {
            n.scales[i] = static_cast<std::int8_t>(at(from, i) & 15);
            n.minima[i] = static_cast<std::uint8_t>(at(from, i) >> 4);
        }
        read_quarters(from + 16, n.q);
        n.d = load<std::uint16_t>(from + 80);
        n.dmin = load<std::uint16_t>(from + 82);
    } else if constexpr (Format == weight_format::q3_k) {
        read_quarters(from + 32, n.q);
        add_high_bits(from, 2, n.q);
        for (int i = 0; i < 16; ++i) {
            auto low = bits(from, 96 + i % 8, i / 8 * 4, 15);
            n.scales[i] = static_cast<std::int8_t>((low | bits(from, 104 + i % 4, i / 4 * 2, 3) << 4) - 32);
        }
        n.d = load<std::uint16_t>(from + 108);
    } else if constexpr (Format == weight_format::q4_k || Format == weight_format::q5_k) {
        constexpr int values_at = Format == weight_format::q5_k ? 48 : 16;
        n.d = load<std::uint16_t>(from);
        n.dmin = load<std::uint16_t>(from + 2);
        read_scales_k(from + 4, n);
        for (int i = 0; i < 4; ++i)
            read_nibbles<32>(from + values_at + i * 32, n.q + i * 64);
        if constexpr (Format == weight_format::q5_k) add_high_bits(from + 16, 4, n.q);
    } else if constexpr (Format == weight_format::q6_k) {
        for (int half = 0; half < 2; ++half) {
            read_nibbles<64>(from + half * 64, n.q + half * 128);
            for (int quarter = 0; quarter < 4; ++quarter)
                for (int i = 0; i < 32; ++i)
                    n.q[half * 128 + quarter * 32 + i] |=
                        static_cast<std::uint8_t>(bits(from, 128 + half * 32 + i, 2 * quarter, 3) << 4);
        }
        std::memcpy(n.scales, from + 192, 16);
        n.d = load<std::uint16_t>(from + 208);
    } else if constexpr (Format == weight_format::iq4_xs) {
        n.d = load<std::uint16_t>(from);
        for (int i = 0; i < 8; ++i) {
            auto low = bits(from, 4 + i / 2, i % 2 * 4, 15);
            n.scales[i] = static_cast<std::int8_t>((low | bits(from, 2 + i / 4, i % 4 * 2, 3) << 4) - 32);
            read_nibbles<16>(from + 8 + i * 16, n.q + i * 32);
        }
    } else {
        static_assert(Format == weight_format::mxfp4);
        n.d = at(from, 0);
        read_nibbles<16>(from + 1, n.q);
    }
}

/// Each byte's bits from `shift` on.
std::uint32_t bits_of_four(std::uint32_t word, int shift, unsigned mask) noexcept
{
    return word >> shift & mask * 0x01010101u;
}

/// Writes a row's 32 values: four columns make a word, whose bits go to lines of 16 words.
template<weight_format Format>
void write_values(std::uint8_t const* q, std::byte* lane) noexcept
{
    constexpr auto form = layout_of(Format);
    std::uint32_t words[8];
    std::memcpy(words, q, sizeof words);
    if constexpr (form.low_bits == 8)
        for (int j = 0; j < 8; ++j)
            store(lane + j * 64, words[j]);
    else if constexpr (form.low_bits == 4)
        for (int j = 0; j < 4; ++j)
            store(lane + j * 64, bits_of_four(words[2 * j], 0, 15) | bits_of_four(words[2 * j + 1], 0, 15) << 4);
    auto quarters = [&](std::byte* to, int shift) {
        for (int j = 0; j < 2; ++j) {
            std::uint32_t line = 0;
            for (int i = 0; i < 4; ++i)
                line |= bits_of_four(words[4 * j + i], shift, 3) << 2 * i;
            store(to + j * 64, line);
        }
    };
    if constexpr (form.low_bits == 2) quarters(lane, 0);
    if constexpr (form.high_bits == 2) quarters(lane + 64 * form.low_bits, form.low_bits);
    if constexpr (form.high_bits == 1) {
        std::uint32_t line = 0;
        for (int j = 0; j < 8; ++j)
            line |= bits_of_four(words[j], form.low_bits, 1) << j;
        store(lane + 64 * form.low_bits, line);
    }
}

template<weight_format Format>
void read_values(std::byte const* lane, std::uint8_t* q) noexcept
{
    constexpr auto form = layout_of(Format);
    std::uint32_t words[8];
    for (int j = 0; j < 8; ++j) {
        if constexpr (form.low_bits == 8) words[j] = load<std::uint32_t>(lane + j * 64);
        if constexpr (form.low_bits == 4)
            words[j] = bits_of_four(load<std::uint32_t>(lane + j / 2 * 64), j % 2 * 4, 15);
        if constexpr (form.low_bits == 2) words[j] = bits_of_four(load<std::uint32_t>(lane + j / 4 * 64), j % 4 * 2, 3);
        auto high = lane + 64 * form.low_bits;
        if constexpr (form.high_bits == 1) words[j] |= bits_of_four(load<std::uint32_t>(high), j, 1) << form.low_bits;
        if constexpr (form.high_bits == 2)
            words[j] |= bits_of_four(load<std::uint32_t>(high + j / 4 * 64), j % 4 * 2, 3) << form.low_bits;
    }
    std::memcpy(q, words, sizeof words);
}

template<weight_format Format>
void write_panel(block_numbers const& n, std::byte* panel, std::size_t lane) noexcept
{
    constexpr auto form = layout_of(Format);
    for (int b = 0; b < form.columns / 32; ++b)
        write_values<Format>(n.q + b * 32, panel + b * form.value_bytes() + lane * 4);
    for (int r = 0; r < form.runs(); ++r) {
        auto to = panel + r * block_layout::panel_lanes + lane;
        auto scale = static_cast<std::uint8_t>(n.scales[r]);
        if constexpr (form.scales == block_scales::bytes) to[form.scales_at()] = std::byte{scale};
        if constexpr (form.scales == block_scales::bytes && form.minima) to[form.minima_at()] = std::byte{n.minima[r]};
        if constexpr (form.scales == block_scales::nibbles)
            to[form.scales_at()] = static_cast<std::byte>(scale | n.minima[r] << 4);
    }
    if constexpr (form.scales == block_scales::power)
        panel[form.d_at() + static_cast<int>(lane)] = static_cast<std::byte>(n.d);
    else
        store(panel + form.d_at() + lane * 2, n.d);
    if constexpr (form.minima) store(panel + form.m_at() + lane * 2, n.dmin);
}

template<weight_format Format>
void read_panel(std::byte const* panel, std::size_t lane, block_numbers& n) noexcept
{
    constexpr auto form = layout_of(Format);
    for (int b = 0; b < form.columns / 32; ++b)
        read_values<Format>(panel + b * form.value_bytes() + lane * 4, n.q + b * 32);
    for (int r = 0; r < form.runs(); ++r) {
        auto from = panel + r * block_layout::panel_lanes + lane;
        if constexpr (form.scales == block_scales::bytes)
            n.scales[r] = static_cast<std::int8_t>(from[form.scales_at()]);
        if constexpr (form.scales == block_scales::bytes && form.minima) n.minima[r] = at(from, form.minima_at());
        if constexpr (form.scales == block_scales::nibbles) {
            n.scales[r] = static_cast<std::int8_t>(at(from, form.scales_at()) & 15);
            n.minima[r] = static_cast<std::uint8_t>(at(from, form.scales_at()) >> 4);
        }
    }
    if constexpr (form.scales == block_scales::power)
        n.d = at(panel + lane, form.d_at());
    else
        n.d = load<std::uint16_t>(panel + form.d_at() + lane * 2);
    if constexpr (form.minima) n.dmin = load<std::uint16_t>(panel + form.m_at() + lane * 2);
}

/// Rounded to F32 after each operation, as the `gguf` package does it.
template<weight_format Format>
void write_floats(block_numbers const& n, float* out, std::size_t stride) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr bool one = form.scales == block_scales::one || form.scales == block_scales::power;
    auto d = form.scales == block_scales::power ? e8m0_half_to_f32(static_cast<std::uint8_t>(n.d)) : f16_to_f32(n.d);
    auto dmin = f16_to_f32(n.dmin);
    for (int r = 0; r < form.runs(); ++r) {
        auto scale = one ? d : d * static_cast<float>(n.scales[r]);
        auto minimum = one ? dmin : dmin * static_cast<float>(n.minima[r]);
        for (int i = 0; i < form.run_columns; ++i, out += stride) {
            auto q = int{n.q[r * form.run_columns + i]};
            if constexpr (form.codebook != nullptr)
                q = int{form.codebook[q]};
            else
                q -= form.offset;
            auto value = scale * static_cast<float>(q);
            if constexpr (form.minima) value = one ? value + minimum : value - minimum;
            *out = value;
        }
    }
}

template<weight_format Format>
constexpr block_rows functions = {
    [](std::size_t blocks, std::byte const* file, std::byte* panel, std::size_t lane) {
        constexpr auto form = layout_of(Format);
        block_numbers n;
        for (std::size_t i = 0; i < blocks; ++i, file += form.file_bytes, panel += form.panel_bytes()) {
            read_file<Format>(file, n);
            write_panel<Format>(n, panel, lane);
        }
    },
    [](std::size_t blocks, std::byte* panel, std::size_t lane) {
        for (std::size_t i = 0; i < blocks; ++i, panel += layout_of(Format).panel_bytes())
            write_panel<Format>({}, panel, lane);
    },
    [](std::size_t blocks, std::byte const* file, float* out, std::size_t stride) {
        constexpr auto form = layout_of(Format);
        block_numbers n;
        for (std::size_t i = 0; i < blocks; ++i, file += form.file_bytes, out += form.columns * stride) {
            read_file<Format>(file, n);
            write_floats<Format>(n, out, stride);
        }
    },
    [](std::size_t blocks, std::byte const* panel, std::size_t lane, float* out) {
        constexpr auto form = layout_of(Format);
        block_numbers n;
        for (std::size_t i = 0; i < blocks; ++i, panel += form.panel_bytes(), out += form.columns) {
            read_panel<Format>(panel, lane, n);
            write_floats<Format>(n, out, 1);
        }
    }};

constexpr int first_block_format = static_cast<int>(weight_format::q4_0);

template<int... I>
constexpr std::array<block_rows, sizeof...(I)> make_table(std::integer_sequence<int, I...>)
{
    return {functions<static_cast<weight_format>(first_block_format + I)>...};
}

constexpr auto table = make_table(std::make_integer_sequence<int, weight_format_count - first_block_format>());

} // namespace

block_rows const& rows_of_blocks(weight_format format) noexcept
{
    return table[static_cast<std::size_t>(format) - first_block_format];
}

} // namespace plait::host
