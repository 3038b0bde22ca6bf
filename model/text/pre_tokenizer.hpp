#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace plait {

/// Cuts text into the pieces that byte-pair encoding may not join across, as `tokenizer.ggml.pre` names the rule.
/// A rule is one or more regular expressions, each applied to what the one before left: every match is a piece, and
/// so is the text between two matches. The expressions are those that the models' authors publish in tokenizer.json,
/// run by PCRE2 in Unicode mode, compiled to machine code where the system allows it. White space means the
/// Unicode property White_Space; which characters are letters and digits is as in the Unicode version of PCRE2, so
/// characters that were assigned after it may be cut differently. Immutable, so any number of threads may split at
/// once.
class pre_tokenizer {
public:
    enum class engine {
        compiled,    ///< machine code, or the interpreter where PCRE2 can't compile
        interpreted, ///< always the interpreter
    };

    /// Errors: errc::unsupported naming the rule where it is not one of names().
    explicit pre_tokenizer(std::string_view name, engine how = engine::compiled);
    pre_tokenizer(pre_tokenizer&&) noexcept;
    pre_tokenizer& operator=(pre_tokenizer&&) noexcept;
    ~pre_tokenizer();

    /// Appends the pieces of `text`, in order and without gaps, to `pieces`: views into `text`, which must be
    /// well-formed UTF-8. Takes time linear in the length of the text.
    /// Errors: errc::invalid_argument where a match passes its limit of steps, which grows with the text.
    void split(std::string_view text, std::vector<std::string_view>& pieces) const;

    /// The model takes a piece that is in its vocabulary as that token, whatever the merges would make of it.
    bool whole_pieces_first() const noexcept { return whole_pieces_first_; }
    /// The model expects its begin token where the file does not say.
    bool adds_bos() const noexcept { return adds_bos_; }

    /// The rules that are known, sorted.
    static std::vector<std::string_view> names();

private:
    class regex;
    std::vector<std::unique_ptr<regex const>> stages_;
    bool whole_pieces_first_ = false;
    bool adds_bos_ = false;
};

} // namespace plait
