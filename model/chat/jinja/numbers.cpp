#include <charconv>
#include <cmath>
#include <plait/model/chat/jinja/formatting.hpp>
#include <plait/model/chat/jinja/numbers.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <string>

namespace plait::jinja {

namespace {

/// The text without white space around and single underscores between digits; nothing when they stand elsewhere.
std::optional<std::string> plain_digits(std::string_view text)
{
    text = strip(text, nullptr, true, true);
    std::string out;
    auto const alphanumeric = [&](std::size_t i) {
        return i < text.size() &&
               ((text[i] >= '0' && text[i] <= '9') || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z'));
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_')
            out += text[i];
        else if (i == 0 || !alphanumeric(i - 1) || !alphanumeric(i + 1))
            return std::nullopt;
    }
    return out;
}

} // namespace

std::optional<std::int64_t> parse_integer(std::string_view text, int base)
{
    if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
    auto plain = plain_digits(text);
    if (!plain) return std::nullopt;
    std::string_view digits = *plain;
    bool negative = false;
    if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
        negative = digits[0] == '-';
        digits.remove_prefix(1);
    }
    if (digits.size() > 2 && digits[0] == '0') {
        char const letter = static_cast<char>(digits[1] | 0x20);
        int const prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
        if (prefixed && (base == prefixed || base == 0)) {
            digits.remove_prefix(2);
            base = prefixed;
        }
    }
    if (base == 0) base = 10;
    std::uint64_t magnitude = 0;
    auto const [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
    if (rest != digits.data() + digits.size() || digits.empty()) return std::nullopt;
    if (problem != std::errc() || magnitude > static_cast<std::uint64_t>(INT64_MAX))
        throw failure("an integer leaves the range of 64 bits");
    return negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
}

std::optional<double> parse_real(std::string_view text)
{
    auto plain = plain_digits(text);
    if (!plain) return std::nullopt;
    std::string_view digits = *plain;
    bool negative = false;
    if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
        negative = digits[0] == '-';
        digits.remove_prefix(1);
    }
    if (digits.empty() || digits[0] == '+' || digits[0] == '-') return std::nullopt;
    double d = 0;
    auto const [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), d);
    if (rest != digits.data() + digits.size() || problem == std::errc::invalid_argument) return std::nullopt;
    if (digits.find('(') != std::string_view::npos) return std::nullopt; // "nan(...)" is C's
    if (problem == std::errc::result_out_of_range) {
        // Python gives 0 or infinity; from_chars leaves the value alone.
        bool const tiny = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos ||
                          digits[0] == '0';
        d = tiny ? 0.0 : HUGE_VAL;
    }
    return negative ? -d : d;
}

value rounded(value const& v, std::int64_t places)
{
    if (v.is_integer()) {
        if (places >= 0) return v.integer();
        if (places < -18) return std::int64_t{0};
        std::int64_t unit = 1;
        for (auto i = places; i < 0; ++i)
            unit *= 10;
        auto const n = v.integer();
        auto down = n / unit * unit;
        if (down > n) down -= unit;
        auto const rest = n - down;
        bool const up = rest > unit / 2 || (rest == unit / 2 && (down / unit) % 2 != 0);
        std::int64_t result = down;
        if (up && __builtin_add_overflow(down, unit, &result)) throw failure("an integer leaves the range of 64 bits");
        return result;
    }
    auto const d = v.real();
    if (!std::isfinite(d) || places > 330) return d;
    if (places < -308) return std::copysign(0.0, d);
    if (places >= 0) {
        // The decimal digits printed are correctly rounded from the exact value, as CPython's are.
        return parse_real(real_digits(d, 'f', static_cast<int>(places))).value_or(d);
    }
    // Too few digits to keep: print those in front of the unit's place in scientific form.
    auto const magnitude = d == 0 ? 0 : static_cast<std::int64_t>(std::floor(std::log10(std::fabs(d))));
    auto const kept = magnitude + places;
    if (kept < -1) return std::copysign(0.0, d);
    if (kept < 0) {
        auto const unit = std::pow(10.0, static_cast<double>(-places));
        return std::fabs(d) > unit / 2 ? std::copysign(unit, d) : std::copysign(0.0, d);
    }
    return parse_real(real_digits(d, 'e', static_cast<int>(kept))).value_or(d);
}

std::optional<std::int64_t> truncated(double d)
{
    if (std::isnan(d)) return std::nullopt;
    if (!(d > -0x1p63 && d < 0x1p63)) throw failure("a float leaves the range of 64-bit integers");
    return static_cast<std::int64_t>(d);
}

} // namespace plait::jinja
