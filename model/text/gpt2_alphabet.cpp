#include <plait/model/text/gpt2_alphabet.hpp>

#include <plait/model/text/utf8.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace plait {
namespace {

struct alphabet {
    static constexpr std::size_t size = 256 + 68;
    std::array<std::int16_t, size> byte_of{}; // by character; -1: none
    std::array<char16_t, 256> character_of{};

    constexpr alphabet() noexcept
    {
        byte_of.fill(-1);
        std::size_t next = 256;
        for (std::size_t b = 0; b < 256; ++b) {
            bool const printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            std::size_t const character = printable ? b : next++;
            byte_of[character] = static_cast<std::int16_t>(b);
            character_of[b] = static_cast<char16_t>(character);
        }
    }
};
constexpr alphabet table;

} // namespace

void append_gpt2_spelling(std::string_view bytes, std::string& out)
{
    for (char const c : bytes)
        append_utf8(out, table.character_of[static_cast<unsigned char>(c)]);
}

void append_gpt2_bytes(std::string_view text, std::string& out)
{
    std::size_t const start = out.size();
    for (std::size_t i = 0; i < text.size();) {
        auto const unit = first_utf8(text.substr(i));
        if (unit.value >= alphabet::size || table.byte_of[unit.value] < 0) {
            out.resize(start);
            out += text;
            return;
        }
        out.push_back(static_cast<char>(table.byte_of[unit.value]));
        i += unit.length;
    }
}

} // namespace plait
