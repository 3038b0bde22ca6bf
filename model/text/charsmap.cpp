#include <plait/model/text/charsmap.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>

namespace plait {
namespace {

// Published keys have at most 18 bytes. A trie that was made to run in circles must not be followed for ever.
constexpr std::size_t longest_key = 64;

std::uint32_t little_endian(std::string_view bytes) noexcept
{
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

// The fields of a unit of Darts-clone's double array.
bool has_leaf(std::uint32_t unit) noexcept
{
    return (unit >> 8 & 1) != 0;
}

std::uint32_t value(std::uint32_t unit) noexcept
{
    return unit & 0x7FFFFFFFu;
}

std::uint32_t label(std::uint32_t unit) noexcept
{
    return unit & 0x800000FFu;
}

std::size_t offset(std::uint32_t unit) noexcept
{
    return std::size_t{unit >> 10} << ((unit & 0x200u) >> 6);
}

} // namespace

charsmap::charsmap(std::string_view blob, std::string const& field)
{
    auto const refuse = [&](char const* what) -> void { throw error(errc::bad_file, field + ": " + what); };
    if (blob.size() < 4) refuse("shorter than its length");
    std::size_t const size = little_endian(blob);
    blob.remove_prefix(4);
    if (size == 0 || size % 4 != 0 || size > blob.size()) refuse("its trie does not fit");
    units_.reserve(size / 4);
    for (std::size_t i = 0; i < size; i += 4)
        units_.push_back(little_endian(blob.substr(i, 4)));
    texts_ = blob.substr(size);
    if (texts_.empty() || texts_.back() != '\0') refuse("its replacements do not end");
    if (!is_utf8(texts_)) refuse("its replacements are not UTF-8");
}

std::string charsmap::blob() const
{
    std::string out;
    out.reserve(4 * (units_.size() + 1) + texts_.size());
    auto const put = [&](std::uint32_t value) {
        for (unsigned shift = 0; shift < 32; shift += 8)
            out.push_back(static_cast<char>(value >> shift & 0xFF));
    };
    put(static_cast<std::uint32_t>(4 * units_.size()));
    for (auto const unit : units_)
        put(unit);
    return out += texts_;
}

std::optional<charsmap::match> charsmap::find(std::string_view text, bool first) const noexcept
{
    std::optional<match> found;
    std::size_t at = offset(units_[0]);
    for (std::size_t i = 0; i < std::min(text.size(), longest_key); ++i) {
        auto const byte = static_cast<unsigned char>(text[i]);
        at ^= byte;
        if (at >= units_.size() || label(units_[at]) != byte) break;
        bool const leaf = has_leaf(units_[at]);
        at ^= offset(units_[at]);
        if (!leaf) continue;
        if (at >= units_.size()) break;
        std::size_t const start = value(units_[at]);
        if (i + 1 < text.size() && (text[i + 1] & 0xC0) == 0x80) continue; // a key that ends inside a character
        // A replacement that begins inside a character is the file's mistake; the key stays as it is.
        if (start >= texts_.size() || (texts_[start] & 0xC0) == 0x80) break;
        found = match{i + 1, std::string_view(texts_).substr(start, texts_.find('\0', start) - start)};
        if (first) break;
    }
    return found;
}

} // namespace plait
