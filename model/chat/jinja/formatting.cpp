#include <algorithm>
#include <charconv>
#include <cmath>
#include <plait/model/chat/jinja/formatting.hpp>
#include <plait/model/chat/jinja/operators.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait::jinja {

namespace {

constexpr std::size_t widest = 1 << 20; // of a field or a precision; more is a mistake or an attack

/// What stands between "%" or ":" and the type letter.
struct specification {
    std::string fill = " ";
    char align = '\0'; // '<', '>', '^', '='; none: by the type
    char sign = '-';   // '-', '+', ' '
    bool alternate = false;
    bool zero = false;
    char grouping = '\0';
    std::size_t width = 0;
    std::optional<std::size_t> precision;
    char type = '\0';
};

bool is_digit_char(char c)
{
    return c >= '0' && c <= '9';
}

std::size_t parse_size(std::string_view text, std::size_t& at)
{
    std::size_t n = 0;
    while (at < text.size() && is_digit_char(text[at])) {
        n = n * 10 + static_cast<std::size_t>(text[at++] - '0');
        if (n > widest) throw failure("a format's width or precision is too large");
    }
    return n;
}

void repeat(std::string& out, std::string_view fill, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i)
        out += fill;
}

/// Appends `prefix` (sign, 0x) and `body` padded to the width.
void append_padded(budget& b, std::string& out, specification const& spec, std::string_view prefix,
                   std::string_view body, char default_align)
{
    auto const length = code_points(prefix) + code_points(body);
    auto const padding = spec.width > length ? spec.width - length : 0;
    b.output(out.size() + prefix.size() + body.size() + padding * spec.fill.size());
    char const align = spec.align ? spec.align : default_align;
    auto const before = align == '>' ? padding : align == '^' ? padding / 2 : 0;
    repeat(out, spec.fill, before);
    out += prefix;
    if (align == '=') repeat(out, spec.fill, padding);
    out += body;
    if (align == '<' || align == '^') repeat(out, spec.fill, padding - before);
}

std::string sign_of(bool negative, char sign)
{
    if (negative) return "-";
    return sign == '-' ? std::string() : std::string(1, sign);
}

std::string grouped(std::string digits, char separator)
{
    auto const point = std::min(digits.find('.'), digits.size());
    for (auto at = point; at > 3; at -= 3)
        digits.insert(at - 3, 1, separator);
    return digits;
}

std::string upper_ascii(std::string s)
{
    for (char& c : s) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return s;
}

void append_integer(budget& b, std::string& out, specification const& spec, std::int64_t i, char default_align)
{
    char const type = spec.type ? spec.type : 'd';
    int const base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    auto const magnitude = i < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(i) : static_cast<std::uint64_t>(i);
    char buffer[70];
    std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
    auto prefix = sign_of(i < 0, spec.sign);
    if (spec.alternate && base != 10) prefix += base == 16 ? "0x" : base == 8 ? "0o" : "0b";
    if (type == 'X') {
        digits = upper_ascii(std::move(digits));
        prefix = upper_ascii(std::move(prefix));
    }
    if (spec.grouping) digits = grouped(std::move(digits), spec.grouping);
    append_padded(b, out, spec, prefix, digits, default_align);
}

void append_real(budget& b, std::string& out, specification const& spec, double d, char default_align)
{
    bool const percent = spec.type == '%';
    char const lower = percent ? 'f' : static_cast<char>(spec.type | 0x20);
    std::string digits;
    if (spec.type == '\0' && !spec.precision) {
        digits = float_repr(std::fabs(d));
    } else {
        auto const precision = spec.precision.value_or(6);
        digits = real_digits(std::fabs(percent ? d * 100 : d), spec.type ? lower : 'g', static_cast<int>(precision));
        if (spec.type == '\0' && std::isfinite(d) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
    }
    if (spec.grouping) digits = grouped(std::move(digits), spec.grouping);
    if (percent) digits += '%';
    if (spec.type >= 'A' && spec.type <= 'Z') digits = upper_ascii(std::move(digits));
    append_padded(b, out, spec, sign_of(std::signbit(d) && !std::isnan(d), spec.sign), digits, default_align);
}

std::string_view cut(std::string_view text, std::optional<std::size_t> points)
{
    return points ? text.substr(0, offset_of(text, *points)) : text;
}

/// One "%..." conversion.
void append_conversion(budget& b, std::string& out, specification spec, bool left, value const& v)
{
    if (v.is_undefined() && spec.type != 's' && spec.type != 'r' && spec.type != 'a') fail_undefined(v);
    spec.align = left ? '<' : '\0';
    switch (spec.type) {
    case 's':
    case 'r':
    case 'a': {
        std::string text;
        if (spec.type == 's')
            append_str(b, text, v);
        else
            append_repr(b, text, v);
        append_padded(b, out, spec, {}, cut(text, spec.precision), '>');
        return;
    }
    case 'c':
        if (v.is_string() && v.string().length == 1) return append_padded(b, out, spec, {}, v.string().bytes, '>');
        throw failure("%c takes one character");
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
        bool const decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
        if (decimal) spec.type = 'd';
        if (!v.is_integer() && !(decimal && v.is_real()))
            throw failure("%" + std::string(1, spec.type) + " takes a number, not " + std::string(type_name(v)));
        if (v.is_real() && !(std::fabs(v.real()) < 0x1p63)) throw failure("%d takes a number within 64 bits");
        if (spec.zero && !left) spec.fill = "0";
        append_integer(b, out, spec, v.is_real() ? static_cast<std::int64_t>(v.real()) : v.integer(),
                       spec.zero && !left ? '=' : '>');
        return;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (!v.is_number()) throw failure("a format takes a number, not " + std::string(type_name(v)));
        if (spec.zero && !left) spec.fill = "0";
        append_real(b, out, spec, v.real(), spec.zero && !left ? '=' : '>');
        return;
    default:
        throw failure("a format has an unknown character");
    }
}

specification parse_specification(std::string_view text)
{
    specification spec;
    std::size_t at = 0;
    auto const is_align = [&](std::size_t i) {
        return i < text.size() && std::string_view("<>=^").find(text[i]) != std::string_view::npos;
    };
    if (!text.empty()) {
        std::size_t behind_fill = 0;
        next_point(text, behind_fill);
        if (is_align(behind_fill)) {
            spec.fill = text.substr(0, behind_fill);
            spec.align = text[behind_fill];
            at = behind_fill + 1;
        } else if (is_align(0)) {
            spec.align = text[0];
            at = 1;
        }
    }
    auto const take = [&](std::string_view set) {
        return at < text.size() && set.find(text[at]) != std::string_view::npos ? text[at++] : '\0';
    };
    if (char const sign = take("+- ")) spec.sign = sign;
    spec.alternate = take("#") != '\0';
    if (take("0")) {
        spec.zero = true;
        if (!spec.align) spec.fill = "0";
    }
    spec.width = parse_size(text, at);
    spec.grouping = take(",_");
    if (take(".")) {
        if (at >= text.size() || !is_digit_char(text[at])) throw failure("a format misses its precision");
        spec.precision = parse_size(text, at);
    }
    if (at < text.size()) spec.type = text[at++];
    if (at != text.size()) throw failure("a format specification is invalid");
    return spec;
}

void append_formatted(budget& b, std::string& out, value const& v, std::string_view specification_text)
{
    if (specification_text.empty()) return append_str(b, out, v);
    auto const spec = parse_specification(specification_text);
    std::string_view const types = v.is_string() ? "s" : v.is_real() ? "eEfFgG%" : "bdoxXeEfFgG%";
    if (spec.type && types.find(spec.type) == std::string_view::npos)
        throw failure("a format does not fit " + std::string(type_name(v)));
    if (v.is_string()) {
        if (spec.align == '=') throw failure("a format does not fit str");
        append_padded(b, out, spec, {}, cut(v.string().bytes, spec.precision), '<');
    } else if (v.is_integer() && (!spec.type || std::string_view("bdoxX").find(spec.type) != std::string_view::npos)) {
        if (spec.precision) throw failure("a format gives an integer a precision");
        append_integer(b, out, spec, v.integer(), spec.zero ? '=' : '>');
    } else if (v.is_number()) {
        append_real(b, out, spec, v.real(), spec.zero ? '=' : '>');
    } else {
        throw failure("a format does not fit " + std::string(type_name(v)));
    }
}

/// The value that the field name "0.key[1]" reaches.
value field_value(budget& b, std::string_view field, arguments const& given, std::size_t& automatic)
{
    auto const end = std::min(field.find_first_of(".["), field.size());
    auto const head = field.substr(0, end);
    value v;
    if (head.empty() || std::all_of(head.begin(), head.end(), is_digit_char)) {
        std::size_t at = 0;
        auto const index = head.empty() ? automatic++ : parse_size(head, at);
        if (index >= given.positional.size()) throw failure("a format misses an argument");
        v = given.positional[index];
    } else {
        auto const found =
            std::find_if(given.named.begin(), given.named.end(), [&](auto const& n) { return n.first == head; });
        if (found == given.named.end()) throw failure("a format misses the argument '" + std::string(head) + "'");
        v = found->second;
    }
    for (auto at = end; at < field.size();) {
        b.step();
        if (field[at] == '.') {
            auto const stop = std::min(field.find_first_of(".[", at + 1), field.size());
            v = attribute(b, v, std::string(field.substr(at + 1, stop - at - 1)));
            at = stop;
            continue;
        }
        auto const stop = field.find(']', at);
        if (field[at] != '[' || stop == std::string_view::npos) throw failure("a format has an invalid field");
        auto const key = field.substr(at + 1, stop - at - 1);
        std::size_t digits = 0;
        bool const index = !key.empty() && std::all_of(key.begin(), key.end(), is_digit_char);
        v = subscript(
            b, v, index ? value(static_cast<std::int64_t>(parse_size(key, digits))) : make_text(b, std::string(key)));
        at = stop + 1;
    }
    return v;
}

} // namespace

std::string real_digits(double d, char type, int precision)
{
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
    auto const format = type == 'e'   ? std::chars_format::scientific
                        : type == 'g' ? std::chars_format::general
                                      : std::chars_format::fixed;
    std::string out(static_cast<std::size_t>(precision) + 330, '\0');
    out.resize(static_cast<std::size_t>(std::to_chars(out.data(), out.data() + out.size(), d, format, precision).ptr -
                                        out.data()));
    return out;
}

value printf_format(budget& b, std::string_view format, value const& right)
{
    std::string out;
    bool const tuple = right.is_sequence() && right.items().kind == sequence_kind::tuple;
    // Python does not mind what is left of anything it can index: for a list, as for a dictionary.
    bool const indexed =
        right.is_mapping() || right.is_undefined() || (right.is_sequence() && !tuple && right.items().indexable());
    auto const* const members = right.is_mapping() ? &right.members() : nullptr;
    auto const count = tuple ? right.items().items.size() : 1;
    std::size_t used = 0;
    auto const take = [&]() -> value const& {
        if (used >= count) throw failure("a format misses an argument");
        ++used;
        return tuple ? right.items().items[used - 1] : right;
    };
    for (std::size_t at = 0; at < format.size();) {
        b.step();
        auto const percent = std::min(format.find('%', at), format.size());
        out += format.substr(at, percent - at);
        b.output(out.size());
        at = percent + 1;
        if (percent == format.size()) break;

        specification spec;
        bool left = false;
        value const* named = nullptr;
        if (at < format.size() && format[at] == '(') {
            auto const close = format.find(')', at);
            if (close == std::string_view::npos) throw failure("a format has an incomplete key");
            if (!members) throw failure("a format with names takes a mapping");
            named = members->find(format.substr(at + 1, close - at - 1));
            if (!named)
                throw failure("a format misses the key '" + std::string(format.substr(at + 1, close - at - 1)) + "'");
            at = close + 1;
        }
        for (; at < format.size(); ++at) {
            char const c = format[at];
            if (c == '-')
                left = true;
            else if (c == '+')
                spec.sign = '+';
            else if (c == ' ')
                spec.sign = spec.sign == '+' ? '+' : ' ';
            else if (c == '#')
                spec.alternate = true;
            else if (c == '0')
                spec.zero = true;
            else
                break;
        }
        auto const size = [&]() -> std::size_t {
            if (at >= format.size() || format[at] != '*') return parse_size(format, at);
            ++at;
            auto const& v = take();
            if (!v.is_integer() || v.integer() < 0 || v.integer() > static_cast<std::int64_t>(widest))
                throw failure("a format's width or precision is out of range");
            return static_cast<std::size_t>(v.integer());
        };
        spec.width = size();
        if (at < format.size() && format[at] == '.') {
            ++at;
            spec.precision = size();
        }
        while (at < format.size() && (format[at] == 'h' || format[at] == 'l' || format[at] == 'L'))
            ++at;
        if (at >= format.size()) throw failure("a format is incomplete");
        spec.type = format[at++];
        if (spec.type == '%')
            out += '%';
        else
            append_conversion(b, out, spec, left, named ? *named : take());
    }
    if (used < count && !indexed) throw failure("not all arguments of a format are used");
    return make_text(b, std::move(out));
}

value brace_format(budget& b, std::string_view format, arguments const& given)
{
    std::string out;
    std::size_t automatic = 0;
    for (std::size_t at = 0; at < format.size();) {
        b.step();
        auto const brace = std::min(format.find_first_of("{}", at), format.size());
        out += format.substr(at, brace - at);
        b.output(out.size());
        at = brace;
        if (at == format.size()) break;
        if (at + 1 < format.size() && format[at + 1] == format[at]) {
            out += format[at];
            at += 2;
            continue;
        }
        auto const close = format.find('}', at);
        if (format[at] == '}' || close == std::string_view::npos) throw failure("a format has a single brace");
        auto field = format.substr(at + 1, close - at - 1);
        at = close + 1;
        if (field.find('{') != std::string_view::npos) throw failure("nested format fields are not supported");

        auto const colon = std::min(field.find(':'), field.size());
        auto const spec = field.substr(std::min(colon + 1, field.size()));
        field = field.substr(0, colon);
        auto const bang = field.find('!');
        char conversion = '\0';
        if (bang != std::string_view::npos) {
            if (bang + 2 != field.size() || (field[bang + 1] != 's' && field[bang + 1] != 'r'))
                throw failure("a format has an unknown conversion");
            conversion = field[bang + 1];
            field = field.substr(0, bang);
        }
        auto v = field_value(b, field, given, automatic);
        if (conversion) {
            std::string text;
            if (conversion == 's')
                append_str(b, text, v);
            else
                append_repr(b, text, v);
            v = make_text(b, std::move(text));
        }
        append_formatted(b, out, v, spec);
    }
    return make_text(b, std::move(out));
}

} // namespace plait::jinja
