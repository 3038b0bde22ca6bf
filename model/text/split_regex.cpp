#include <plait/model/text/split_regex.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace plait {
namespace {

// PCRE2's \s also takes U+180E, which has not been white space since Unicode 6.3; the models' own engines follow
// White_Space. So the escapes are spelt out. Its \w leaves out marks before version 10.43.
constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view word = R"(\p{L}\p{M}\p{N}\p{Pc})";
constexpr std::string_view hexadecimal = "0-9A-Fa-f";

bool is_hexadecimal(std::string_view text) noexcept
{
    return text.size() == 4 && text.find_first_not_of("0123456789ABCDEFabcdef") == std::string_view::npos;
}

// One pass over an expression in Oniguruma's syntax that writes it in PCRE2's.
class translator {
public:
    explicit translator(std::string_view pattern)
        : in_(pattern)
    {
    }

    std::string run()
    {
        while (at_ < in_.size()) {
            char const c = in_[at_];
            if (c == '\\') {
                if (!in_class_) atom_ = out_.size();
                escape();
                continue;
            }
            ++at_;
            if (in_class_) {
                if (c == '[' && !in_.substr(at_).starts_with(':')) refuse("a class inside a class");
                if (c == '&' && in_.substr(at_).starts_with('&')) refuse("an intersection of classes");
                in_class_ = c != ']' || class_is_empty();
                out_ += c;
                if (c == '[') copy_posix_class();
                continue;
            }
            switch (c) {
            case '[':
                atom_ = out_.size();
                in_class_ = true;
                out_ += c;
                if (in_.substr(at_).starts_with('^')) out_ += in_[at_++];
                class_ = out_.size();
                continue;
            case '(':
                groups_.push_back(out_.size());
                break;
            case ')':
                if (!groups_.empty()) {
                    atom_ = groups_.back();
                    groups_.pop_back();
                }
                break;
            case '{':
                out_ += c;
                repeat();
                continue;
            case '*':
            case '+':
            case '?':
            case '}':
            case '|':
                break;
            default:
                atom_ = out_.size();
            }
            out_ += c;
        }
        return std::move(out_);
    }

private:
    [[noreturn]] void refuse(char const* what) const
    {
        throw error(errc::unsupported, "expression " + quote(in_) + ": " + what);
    }

    bool class_is_empty() const noexcept { return out_.size() == class_; }

    void copy_posix_class()
    {
        auto const end = in_.find(":]", at_);
        if (end == std::string_view::npos) refuse("an open class");
        out_ += in_.substr(at_, end + 2 - at_);
        at_ = end + 2;
    }

    void escape()
    {
        if (at_ + 1 == in_.size()) refuse("a backslash at the end");
        char const c = in_[at_ + 1];
        at_ += 2;
        auto const set = [&](std::string_view members, bool complement) {
            if (in_class_ && complement) refuse("a complement inside a class");
            if (!in_class_) out_ += complement ? "[^" : "[";
            out_ += members;
            if (!in_class_) out_ += ']';
        };
        switch (c) {
        case 's':
            return set(white_space, false);
        case 'S':
            if (!in_class_) return set(white_space, true);
            out_ += R"(\S)";
            return;
        case 'w':
            return set(word, false);
        case 'W':
            return set(word, true);
        case 'h':
            return set(hexadecimal, false);
        case 'H':
            return set(hexadecimal, true);
        case 'u':
            if (!is_hexadecimal(in_.substr(at_, 4))) refuse("\\u without four digits");
            out_.append(R"(\x{)").append(in_.substr(at_, 4)).append("}");
            at_ += 4;
            return;
        case 'p':
        case 'P': {
            out_.append({'\\', c});
            auto const end = in_.substr(at_).starts_with('{') ? in_.find('}', at_) : std::string_view::npos;
            if (end == std::string_view::npos) refuse("\\p without a property in braces");
            out_ += in_.substr(at_, end + 1 - at_);
            at_ = end + 1;
            return;
        }
        case 'x':
            out_ += R"(\x)";
            if (in_.substr(at_).starts_with('{')) {
                auto const end = std::min(in_.find('}', at_), in_.size() - 1);
                out_ += in_.substr(at_, end + 1 - at_);
                at_ = end + 1;
            }
            return;
        default:
            out_.append({'\\', c});
        }
    }

    // In Oniguruma's Ruby syntax a{1,3}+ is (?:a{1,3})+; PCRE2 would read it as possessive.
    void repeat()
    {
        auto const end = in_.find('}', at_);
        auto const body = in_.substr(at_, end == std::string_view::npos ? 0 : end - at_);
        bool const counts = !body.empty() && body.find_first_not_of("0123456789,") == std::string_view::npos;
        if (!counts || atom_ == std::string::npos) return;
        out_.append(body).append("}");
        at_ = end + 1;
        if (!in_.substr(at_).starts_with('+')) return;
        out_.insert(atom_, "(?:");
        out_ += ")+";
        ++at_;
    }

    std::string_view in_;
    std::size_t at_ = 0;
    std::string out_;
    bool in_class_ = false;
    std::size_t class_ = 0;                // where the members of the open class begin in out_
    std::size_t atom_ = std::string::npos; // where the last thing that can be repeated begins in out_
    std::vector<std::size_t> groups_;
};

std::string message(int code)
{
    std::array<unsigned char, 256> text{};
    pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<char const*>(text.data());
}

} // namespace

split_regex::split_regex(std::string_view pattern, engine how)
    : options_(PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (how == engine::interpreted ? PCRE2_NO_JIT : 0))
{
    std::string const spelt = translator(pattern).run();
    int code = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelt.data()), spelt.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
    if (code_ == nullptr) throw error(errc::unsupported, "expression " + quote(pattern) + ": " + message(code));
    // Where the system forbids writable code this fails, and matching falls back to the interpreter by itself.
    if (how == engine::compiled) pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
}

split_regex::split_regex(split_regex&& other) noexcept
    : options_(other.options_)
    , code_(std::exchange(other.code_, nullptr))
{
}

split_regex::~split_regex()
{
    pcre2_code_free(code_);
}

void split_regex::find_all(std::string_view text, std::vector<range>& found, workspace& memory) const
{
    auto const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    std::size_t at = 0;
    while (at < text.size()) {
        int result = pcre2_match(code_, subject, text.size(), at, options_, memory.data_, memory.context_);
        if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
            result =
                pcre2_match(code_, subject, text.size(), at, options_ | PCRE2_NO_JIT, memory.data_, memory.context_);
        }
        if (result == PCRE2_ERROR_NOMATCH) break;
        if (result < 0) throw error(errc::invalid_argument, "text: pre-tokenizer: " + message(result));
        PCRE2_SIZE const* const match = pcre2_get_ovector_pointer(memory.data_);
        // A look-behind or \K can make PCRE2 report a match that begins before `at` or ends before it begins.
        auto const begin = std::max(at, match[0]);
        if (match[1] <= begin) break;
        found.push_back({begin, match[1]});
        at = match[1];
    }
}

split_regex::workspace::workspace(std::size_t text_size)
    : data_(pcre2_match_data_create(1, nullptr))
    , context_(pcre2_match_context_create(nullptr))
{
    if (data_ == nullptr || context_ == nullptr) {
        pcre2_match_data_free(data_);
        pcre2_match_context_free(context_);
        throw std::bad_alloc();
    }
    // Every published expression takes a bounded number of steps a character; PCRE2's own default is what short texts
    // get.
    auto const limit = std::clamp<std::size_t>(16 * text_size, 10'000'000, UINT32_MAX);
    pcre2_set_match_limit(context_, static_cast<std::uint32_t>(limit));
}

split_regex::workspace::~workspace()
{
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
}

std::string escape_regex(std::string_view text)
{
    std::string out;
    for (char const c : text) {
        if (std::string_view("\\^$.[]|()?*+{}-&~#").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

} // namespace plait
