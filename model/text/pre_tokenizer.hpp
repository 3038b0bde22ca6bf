#pragma once

#include <plait/model/text/split_regex.hpp>
#include <plait/model/text/tokenizer_description.hpp>

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plait {

/// A rule of `tokenizer.ggml.pre`: how byte-level vocabularies cut text.
struct pre_tokenizer_rule {
    std::string_view name;
    std::vector<cut::step> cuts;
    /// The model takes a piece that is in its vocabulary as that token, whatever the merges would make of it.
    bool whole_pieces_first = false;
    /// The model expects its begin token where the file does not say.
    bool adds_bos = false;
};

/// The rule called `name`. Its expressions are those that the models' authors publish in tokenizer.json.
/// Errors: errc::unsupported naming the rule where it is not one of pre_tokenizer_rules().
pre_tokenizer_rule find_pre_tokenizer_rule(std::string_view name);

/// The rules that are known, sorted.
std::vector<std::string_view> pre_tokenizer_rules();

/// The expression of GPT-2, which every ByteLevel of a tokenizer.json uses where it has `use_regex`.
extern std::string_view const gpt2_expression;

/// Cuts text into the pieces that a model may not join across. Steps run one after the other, each on what the one
/// before left. Which characters are letters and digits is as in the Unicode version of PCRE2, so characters that were
/// assigned after it may be cut differently. Immutable, so any number of threads may split at once.
class pre_tokenizer {
public:
    using engine = split_regex::engine;
    /// Texts that steps have rewritten; pieces are views into them.
    using texts = std::deque<std::string>;

    /// Errors: errc::unsupported where an expression can't be compiled.
    explicit pre_tokenizer(std::vector<cut::step> const& steps, engine how = engine::compiled);

    /// Appends the pieces of `text`, which must be well-formed UTF-8, in order to `pieces`: views into `text` or into
    /// a string added to `rewritten`. `first` says that the text stands at the beginning of all. Takes time linear in
    /// the length of the text.
    /// Errors: errc::invalid_argument where a match passes its limit of steps, which grows with the text.
    void split(std::string_view text, std::vector<std::string_view>& pieces, texts& rewritten, bool first = true) const;

private:
    struct regex_stage {
        split_regex expression;
        cut::regex how;
    };
    using stage = std::variant<regex_stage, cut::metaspace, cut::prefix_space>;
    struct work;

    void run(regex_stage const& stage, work& w) const;
    void run(cut::metaspace const& stage, work& w) const;
    void run(cut::prefix_space const& stage, work& w) const;

    std::vector<stage> stages_;
};

} // namespace plait
