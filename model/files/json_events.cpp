#include <plait/model/files/json_events.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/utf8.hpp>

#include <charconv>
#include <limits>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace plait {
namespace {

class reader {
public:
    reader(std::string_view text, std::string const& source, std::size_t depth, json_listener& to)
        : text_(text)
        , source_(source)
        , depth_(depth)
        , to_(to)
    {
    }

    void run()
    {
        if (auto const valid = valid_utf8_prefix(text_); valid != text_.size()) fail(valid, "not UTF-8");
        skip_space();
        read_value(0);
        skip_space();
        if (at_ != text_.size()) fail(at_, "more text after the value");
    }

private:
    [[noreturn]] void fail(std::size_t at, std::string const& what) const
    {
        throw error(errc::bad_file, source_ + ": byte " + std::to_string(at) + ": " + what);
    }

    /// The byte that comes next, or 0 at the end; a NUL byte is never part of JSON.
    char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(std::string_view token)
    {
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }

    void expect(std::string_view token)
    {
        if (!take(token)) fail(at_, "expected " + quote(token) + (at_ == text_.size() ? ", but the text ends" : ""));
    }

    void skip_space() noexcept
    {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')
            ++at_;
    }

    /// Recursive, as deep as `depth_` allows.
    void read_value(std::size_t level)
    {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        char const c = peek();
        if (c == '{')
            read_object(level + 1);
        else if (c == '[')
            read_array(level + 1);
        else if (c == '"')
            to_.string(read_string());
        else if (take("null"))
            to_.null();
        else if (take("true"))
            to_.boolean(true);
        else if (take("false"))
            to_.boolean(false);
        else if (take("NaN"))
            to_.number(std::numeric_limits<double>::quiet_NaN());
        else if (take("Infinity"))
            to_.number(infinity);
        else if (take("-Infinity"))
            to_.number(-infinity);
        else if (c == '-' || is_digit(c))
            read_number();
        else
            fail(at_, at_ == text_.size() ? "expected a value, but the text ends" : "expected a value");
    }

    void enter(std::size_t level) const
    {
        if (level > depth_) fail(at_, "nested deeper than " + std::to_string(depth_) + " levels");
    }

    void read_object(std::size_t level)
    {
        enter(level);
        ++at_;
        to_.begin_object();
        std::unordered_set<std::string> seen;
        skip_space();
        if (peek() != '}') {
            for (;;) {
                std::size_t const start = at_;
                if (peek() != '"') fail(at_, "expected a key in quotes");
                std::string name = read_string();
                if (!seen.insert(name).second) fail(start, "key " + quote(name) + " appears twice");
                skip_space();
                expect(":");
                to_.key(std::move(name));
                skip_space();
                read_value(level);
                skip_space();
                if (!take(",")) break;
                skip_space();
            }
        }
        expect("}");
        to_.end_object();
    }

    void read_array(std::size_t level)
    {
        enter(level);
        ++at_;
        to_.begin_array();
        skip_space();
        if (peek() != ']') {
            for (;;) {
                read_value(level);
                skip_space();
                if (!take(",")) break;
                skip_space();
            }
        }
        expect("]");
        to_.end_array();
    }

    static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

    void read_digits()
    {
        if (!is_digit(peek())) fail(at_, "expected a digit");
        while (is_digit(peek()))
            ++at_;
    }

    void read_number()
    {
        std::size_t const start = at_;
        take("-");
        if (!take("0")) read_digits();
        bool whole = true;
        if (take(".")) {
            whole = false;
            read_digits();
        }
        if (take("e") || take("E")) {
            whole = false;
            if (!take("+")) take("-");
            read_digits();
        }
        char const* const first = text_.data() + start;
        char const* const last = text_.data() + at_;
        std::int64_t exact = 0;
        if (whole && std::from_chars(first, last, exact).ec == std::errc()) return to_.integer(exact);
        double value = 0;
        if (std::from_chars(first, last, value).ec != std::errc()) fail(start, "a number that a double cannot hold");
        to_.number(value);
    }

    std::uint32_t read_unit()
    {
        std::uint32_t unit = 0;
        auto const digits = text_.substr(at_, 4);
        auto const [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
        if (failed != std::errc() || digits.size() != 4 || end != digits.data() + 4)
            fail(at_, "expected four hexadecimal digits");
        at_ += 4;
        return unit;
    }

    void read_escape(std::string& out)
    {
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view values = "\"\\/\b\f\n\r\t";
        char const c = peek();
        if (auto const which = names.find(c); which != names.npos) {
            ++at_;
            out += values[which];
            return;
        }
        std::size_t const start = at_;
        if (!take("u")) fail(at_, "an unknown escape");
        char32_t scalar = read_unit();
        if (scalar >= 0xd800 && scalar < 0xdc00 && take("\\u")) {
            auto const low = read_unit();
            if (low < 0xdc00 || low > 0xdfff) fail(start, "half of a surrogate pair");
            scalar = 0x10000 + ((scalar - 0xd800) << 10) + (low - 0xdc00);
        }
        if (scalar >= 0xd800 && scalar <= 0xdfff) fail(start, "half of a surrogate pair");
        append_utf8(out, scalar);
    }

    std::string read_string()
    {
        std::size_t const start = at_;
        ++at_;
        std::string out;
        for (;;) {
            auto const rest = text_.substr(at_);
            std::size_t plain = 0;
            while (plain < rest.size() && rest[plain] != '"' && rest[plain] != '\\' &&
                   static_cast<unsigned char>(rest[plain]) >= 0x20)
                ++plain;
            out += rest.substr(0, plain);
            at_ += plain;
            if (at_ == text_.size()) fail(start, "a string that does not end");
            if (take("\"")) return out;
            if (!take("\\")) fail(at_, "a control character in a string");
            read_escape(out);
        }
    }

    std::string_view text_;
    std::string const& source_;
    std::size_t depth_;
    json_listener& to_;
    std::size_t at_ = 0;
};

} // namespace

void read_json(std::string_view text, std::string const& source, std::size_t depth, json_listener& to)
{
    reader(text, source, depth, to).run();
}

} // namespace plait
