#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace plait {

/// A regular expression as the models' own engine (Oniguruma, through Hugging Face's tokenizers) reads it, run by PCRE2
/// in Unicode mode: white space means the Unicode property White_Space, `^` and `$` are the ends of a line, `\h` is a
/// hexadecimal digit, `\w` a letter, mark, digit or connector, `\uHHHH` a character, and `{n,m}+` repeats the whole
/// rather than being possessive. Immutable, so any number of threads may match at once.
class split_regex {
public:
    enum class engine : std::uint8_t {
        compiled,    ///< machine code, or the interpreter where PCRE2 can't compile
        interpreted, ///< always the interpreter
    };
    struct range {
        std::size_t begin, end;
    };
    class workspace;

    /// Errors: errc::unsupported, quoting the expression, where PCRE2 can't compile it.
    explicit split_regex(std::string_view pattern, engine how = engine::compiled);
    split_regex(split_regex&& other) noexcept;
    split_regex& operator=(split_regex&&) = delete;
    ~split_regex();

    /// Appends the matches in `text`, which must be UTF-8, that are not empty. Where every match takes a bounded
    /// number of steps a character this takes time linear in the length of the text.
    /// Errors: errc::invalid_argument where a match passes its limit of steps, which grows with the text.
    void find_all(std::string_view text, std::vector<range>& found, workspace& memory) const;

private:
    std::uint32_t options_;
    pcre2_real_code_8* code_;
};

/// The working memory of find_all for texts of up to `text_size` bytes; one thread's at a time.
class split_regex::workspace {
public:
    explicit workspace(std::size_t text_size);
    workspace(workspace const&) = delete;
    workspace& operator=(workspace const&) = delete;
    ~workspace();

private:
    friend class split_regex;
    pcre2_real_match_data_8* data_;
    pcre2_real_match_context_8* context_;
};

/// A regular expression that matches `text` and nothing else.
std::string escape_regex(std::string_view text);

} // namespace plait
