#include <algorithm>
#include <array>
#include <plait/model/chat/jinja/budget.hpp>
#include <plait/model/chat/jinja/lexer.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait::jinja {

namespace {

bool is_digit_char(char c)
{
    return c >= '0' && c <= '9';
}

/// Every line end as \n, and one at the very end gone, as jinja2 without keep_trailing_newline.
std::string normalized(std::string_view source)
{
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
            continue;
        }
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

class lexer {
public:
    lexer(std::string_view source, place& where)
        : source_(normalized(source))
        , text_(source_)
        , where_(where)
    {
    }

    std::vector<token> run()
    {
        while (at_ < text_.size())
            root();
        push(token_kind::end, {});
        return std::move(tokens_);
    }

private:
    std::string source_;
    std::string_view text_;
    place& where_;
    std::size_t at_ = 0;
    bool line_starting_ = true; // whether what was consumed last ended with a line end
    std::vector<token> tokens_;

    bool looking_at(std::string_view s, std::size_t at) const { return text_.substr(at, s.size()) == s; }

    void push(token_kind kind, std::string text) { tokens_.push_back({kind, where_, std::move(text)}); }

    /// Moves to `end`, keeping line and column.
    void advance(std::size_t end)
    {
        auto const passed = text_.substr(at_, end - at_);
        auto const newline = passed.rfind('\n');
        if (newline == std::string_view::npos) {
            where_.column += static_cast<int>(code_points(passed));
        } else {
            where_.line += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
            where_.column = 1 + static_cast<int>(code_points(passed.substr(newline + 1)));
        }
        if (end > at_) line_starting_ = text_[end - 1] == '\n';
        at_ = end;
    }

    std::size_t skip_space(std::size_t at) const
    {
        while (at < text_.size()) {
            auto next = at;
            if (!is_space(next_point(text_, next))) break;
            at = next;
        }
        return at;
    }

    /// The data before a tag whose sign is `sign`, with the white space that the tag takes away removed.
    std::string_view trimmed(std::string_view data, char sign, bool variable) const
    {
        if (sign == '-') return strip(data, nullptr, false, true);
        if (sign == '+' || variable) return data;
        auto const newline = data.rfind('\n');
        auto const start = newline == std::string_view::npos ? 0 : newline + 1;
        if (start == 0 && !line_starting_) return data;
        auto const tail = data.substr(start);
        if (tail.empty() || !strip(tail, nullptr, true, false).empty()) return data;
        return data.substr(0, start);
    }

    void push_data(std::string_view data)
    {
        if (!data.empty()) push(token_kind::data, std::string(data));
    }

    static bool is_sign(char c) { return c == '-' || c == '+'; }

    char sign_at(std::size_t at) const { return at < text_.size() && is_sign(text_[at]) ? text_[at] : '\0'; }

    /// The end of "<sign?>%}" or "<sign?>#}" at `at`, with the line end or white space it takes; npos if it is not
    /// there.
    std::size_t tag_end(std::string_view closing, std::size_t at, bool trims_newline) const
    {
        char const sign = sign_at(at);
        auto const after = at + (sign ? 1 : 0) + closing.size();
        if (!looking_at(closing, at + (sign ? 1 : 0))) return std::string_view::npos;
        if (sign == '-') return skip_space(after);
        if (sign == '\0' && trims_newline && after < text_.size() && text_[after] == '\n') return after + 1;
        return after;
    }

    /// If a raw tag ("raw" or "endraw" by `word`) starts at `at`, the end of its word; npos otherwise.
    std::size_t raw_word(std::string_view word, std::size_t at) const
    {
        if (!looking_at("{%", at)) return std::string_view::npos;
        at += 2;
        if (sign_at(at)) ++at;
        at = skip_space(at);
        if (!looking_at(word, at)) return std::string_view::npos;
        return skip_space(at + word.size());
    }

    /// Data up to the next tag, then that tag.
    void root()
    {
        auto tag = at_;
        while ((tag = text_.find('{', tag)) != std::string_view::npos) {
            if (tag + 1 < text_.size() && (text_[tag + 1] == '{' || text_[tag + 1] == '%' || text_[tag + 1] == '#'))
                break;
            ++tag;
        }
        if (tag == std::string_view::npos) {
            push_data(text_.substr(at_));
            advance(text_.size());
            return;
        }
        char const kind = text_[tag + 1];
        char const sign = sign_at(tag + 2);
        push_data(trimmed(text_.substr(at_, tag - at_), sign, kind == '{'));
        advance(tag);

        if (kind == '%') {
            auto const word = raw_word("raw", tag);
            if (word != std::string_view::npos && text_.substr(word, 1) != "+") {
                // Unlike other tags, this one leaves the line end behind it.
                auto const end = tag_end("%}", word, false);
                if (end != std::string_view::npos) {
                    advance(end);
                    raw();
                    return;
                }
            }
        }
        if (kind == '#') {
            comment(tag + 2 + (sign ? 1 : 0));
            return;
        }
        push(kind == '{' ? token_kind::variable_begin : token_kind::block_begin, {});
        advance(tag + 2 + (sign ? 1 : 0));
        inside(kind == '{');
    }

    void comment(std::size_t from)
    {
        if (from == text_.size()) return advance(from); // jinja2 lets a comment open at the very end
        auto const close = text_.find("#}", from);
        if (close == std::string_view::npos) throw failure("a comment is not closed");
        // A sign before the end belongs to the tag, unless it is the one of its beginning.
        auto const start = close > from && is_sign(text_[close - 1]) ? close - 1 : close;
        advance(tag_end("#}", start, true));
    }

    void raw()
    {
        for (auto tag = at_; (tag = text_.find("{%", tag)) != std::string_view::npos; ++tag) {
            auto const word = raw_word("endraw", tag);
            if (word == std::string_view::npos) continue;
            auto const end = tag_end("%}", word, true);
            if (end == std::string_view::npos) continue;
            push_data(trimmed(text_.substr(at_, tag - at_), sign_at(tag + 2), false));
            advance(end);
            return;
        }
        throw failure("a raw block is not closed");
    }

    /// The tokens of one tag, its end included.
    void inside(bool variable)
    {
        std::string brackets; // the closing brackets due
        std::string_view const closing = variable ? "}}" : "%}";
        for (;;) {
            if (at_ >= text_.size()) throw failure("a tag is not closed");
            if (brackets.empty()) {
                char const sign = sign_at(at_);
                // "+}}" is not an end: jinja2 knows it for blocks only.
                if (!(variable && sign == '+')) {
                    auto const end = tag_end(closing, at_, !variable);
                    if (end != std::string_view::npos) {
                        push(variable ? token_kind::variable_end : token_kind::block_end, {});
                        advance(end);
                        return;
                    }
                }
            }
            auto const start = skip_space(at_);
            if (start != at_) {
                advance(start);
                continue;
            }
            if (number() || name() || string()) continue;
            operation(brackets);
        }
    }

    /// Digits with single underscores between them, from `at`; `at` itself when there are none.
    template<class Digit>
    std::size_t digits(std::size_t at, Digit digit) const
    {
        if (at >= text_.size() || !digit(text_[at])) return at;
        for (++at; at < text_.size(); ++at) {
            if (digit(text_[at])) continue;
            if (text_[at] == '_' && at + 1 < text_.size() && digit(text_[at + 1])) continue;
            break;
        }
        return at;
    }

    /// The end of a float at `at`: digits, then a fraction, an exponent or both. `at` when there is none.
    std::size_t real_end(std::size_t at) const
    {
        if (at > 0 && text_[at - 1] == '.') return at; // "a.0.1" is two subscripts
        auto const whole = digits(at, is_digit_char);
        if (whole == at) return at;
        auto end = whole;
        if (end + 1 < text_.size() && text_[end] == '.') {
            auto const fraction = digits(end + 1, is_digit_char);
            if (fraction > end + 1) end = fraction;
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            auto from = end + 1;
            if (from < text_.size() && is_sign(text_[from])) ++from;
            auto const exponent = digits(from, is_digit_char);
            if (exponent > from) end = exponent;
        }
        return end == whole ? at : end;
    }

    std::size_t integer_end(std::size_t at) const
    {
        if (at >= text_.size() || !is_digit_char(text_[at])) return at;
        if (text_[at] == '0' && at + 1 < text_.size()) {
            auto const prefixed = [&](auto digit) {
                auto const from = at + 2 + (looking_at("_", at + 2) ? 1 : 0);
                auto const end = digits(from, digit);
                return end > from ? end : at;
            };
            std::size_t end = at;
            switch (text_[at + 1] | 0x20) {
            case 'b':
                end = prefixed([](char c) { return c == '0' || c == '1'; });
                break;
            case 'o':
                end = prefixed([](char c) { return c >= '0' && c <= '7'; });
                break;
            case 'x':
                end = prefixed([](char c) { return is_digit_char(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
                break;
            default:
                break;
            }
            if (end > at) return end;
        }
        return text_[at] == '0' ? digits(at, [](char c) { return c == '0'; }) : digits(at, is_digit_char);
    }

    bool number()
    {
        auto kind = token_kind::real;
        auto end = real_end(at_);
        if (end == at_) {
            kind = token_kind::integer;
            end = integer_end(at_);
        }
        if (end == at_) return false;
        std::string text(text_.substr(at_, end - at_));
        text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
        push(kind, std::move(text));
        advance(end);
        return true;
    }

    bool name()
    {
        auto end = at_;
        while (end < text_.size()) {
            auto after = end;
            auto const c = next_point(text_, after);
            if (c != '_' && !is_alpha(c) && !is_decimal(c)) break;
            end = after;
        }
        if (end == at_) return false;
        push(token_kind::name, std::string(text_.substr(at_, end - at_)));
        advance(end);
        return true;
    }

    bool string()
    {
        char const quote = text_[at_];
        if (quote != '\'' && quote != '"') return false;
        auto end = at_ + 1;
        while (end < text_.size() && text_[end] != quote)
            end += text_[end] == '\\' ? 2 : 1;
        if (end >= text_.size()) throw failure("a string is not closed");
        push(token_kind::string, unescaped(text_.substr(at_ + 1, end - at_ - 1)));
        advance(end + 1);
        return true;
    }

    static int hex_digit(char c)
    {
        if (is_digit_char(c)) return c - '0';
        auto const lower = static_cast<char>(c | 0x20);
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    }

    /// "x41", "u0394" or "U0001f600".
    static void append_escape(std::string& out, char32_t point)
    {
        int const digits = point < 0x100 ? 2 : point < 0x10000 ? 4 : 8;
        out += digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
        for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
            out += "0123456789abcdef"[point >> shift & 15];
    }

    /// Python's "unicode-escape". A pair of surrogate escapes stays two lone surrogates there and cannot be UTF-8.
    static std::string unescaped(std::string_view body)
    {
        static constexpr std::string_view plain = "\\'\"abfnrtv";
        static constexpr std::string_view meant = "\\'\"\a\b\f\n\r\t\v";
        std::string out;
        for (std::size_t i = 0; i < body.size();) {
            if (body[i] != '\\' || i + 1 >= body.size()) {
                out += body[i++];
                continue;
            }
            char const c = body[i + 1];
            i += 2;
            if (auto const known = plain.find(c); known != std::string_view::npos) {
                out += meant[known];
            } else if (c == '\n') {
                // a line continued
            } else if (c >= '0' && c <= '7') {
                char32_t point = static_cast<char32_t>(c - '0');
                for (int n = 1; n < 3 && i < body.size() && body[i] >= '0' && body[i] <= '7'; ++n, ++i)
                    point = point * 8 + static_cast<char32_t>(body[i] - '0');
                append_point(out, point);
            } else if (c == 'x' || c == 'u' || c == 'U') {
                std::size_t const count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
                char32_t point = 0;
                for (std::size_t n = 0; n < count; ++n, ++i) {
                    int const digit = i < body.size() ? hex_digit(body[i]) : -1;
                    if (digit < 0) throw failure("a string has a truncated escape");
                    point = point << 4 | static_cast<char32_t>(digit);
                }
                if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
                    throw failure("a string escapes what is not a character");
                append_point(out, point);
            } else if (c == 'N') {
                throw failure("character names in strings are not supported");
            } else {
                // Not an escape: it stays. What is not ASCII has become an escape itself on its way through Python.
                out += '\\';
                --i;
                auto const point = next_point(body, i);
                if (point < 0x80)
                    append_point(out, point);
                else
                    append_escape(out, point);
            }
        }
        return out;
    }

    void operation(std::string& brackets)
    {
        static constexpr std::array<std::string_view, 25> operators = {
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
        auto const found =
            std::find_if(operators.begin(), operators.end(), [&](auto op) { return looking_at(op, at_); });
        if (found == operators.end())
            throw failure("unexpected character '" + std::string(text_.substr(at_, offset_of(text_.substr(at_), 1))) +
                          "' in a tag");
        switch (found->front()) {
        case '(':
            brackets += ')';
            break;
        case '[':
            brackets += ']';
            break;
        case '{':
            brackets += '}';
            break;
        case ')':
        case ']':
        case '}':
            if (brackets.empty() || brackets.back() != found->front())
                throw failure("unexpected '" + std::string(*found) + "'");
            brackets.pop_back();
            break;
        default:
            break;
        }
        push(token_kind::operation, std::string(*found));
        advance(at_ + found->size());
    }
};

} // namespace

std::vector<token> tokenize(std::string_view source, place& where)
{
    where = {};
    return lexer(source, where).run();
}

} // namespace plait::jinja
