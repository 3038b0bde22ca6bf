#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace plait {

class charsmap;
class symbol_set;

/// What a token is for, with the numbers of `tokenizer.ggml.token_type` and of sentencepiece_model.proto.
enum class token_type : std::int32_t {
    normal = 1,
    unknown = 2,
    control = 3,      ///< structure, such as the end of a turn; never made from plain text
    user_defined = 4, ///< added by the model's author; found in any text before it is split
    unused = 5,
    byte = 6,
};

/// Steps that rewrite a text before it is cut (normalizer.hpp runs them).
namespace normal {

/// A normalisation form of Unicode Standard Annex 15.
enum class form { nfc, nfd, nfkc, nfkd };
/// Each character's lower case, without context.
struct lower {};
/// Leaves out combining marks (general category M).
struct strip_marks {};
/// Leaves out white space at the ends.
struct strip {
    bool left = true, right = true;
};
/// Puts text in front of what is not empty.
struct prepend {
    std::string text;
};
/// Every match of a regular expression, or of a literal, becomes `with`.
struct replace {
    std::string pattern;
    bool is_regex = false;
    std::string with;
};
/// The table of `map` as Hugging Face's library applies it: to whole grapheme clusters of up to five bytes, else to
/// characters.
struct table {
    std::shared_ptr<charsmap const> map;
};
/// What a SentencePiece model does: its table (may be null) at the longest match, but not inside its own symbols (may
/// be null), spaces at the ends and repeated ones left out, one space put in front, spaces written as U+2581. Source:
/// sentencepiece's normalizer.cc.
struct sentencepiece {
    std::shared_ptr<charsmap const> map;
    std::shared_ptr<symbol_set const> symbols;
    bool remove_extra_spaces = true, add_prefix = true, escape_spaces = true, prefix_at_end = false;
};
/// BERT's BasicTokenizer: control characters left out and white space made spaces, spaces around Han characters,
/// accents left out, lower case.
struct bert {
    bool clean = true, space_han = true, strip_accents = true, lower = true;
};
/// ChatGLM-6B's: a line feed becomes `<n>`, a tab `<|tab|>`, and 2 to 80 spaces `<|blank_N|>`.
struct blanks {};

using step = std::variant<form, lower, strip_marks, strip, prepend, replace, table, sentencepiece, bert, blanks>;

} // namespace normal

/// Steps that cut a text into the pieces that a model encodes one by one (pre_tokenizer.hpp runs them).
namespace cut {

/// What becomes of the matches and of the text between them; the names are those of Hugging Face's library.
enum class behaviour {
    isolated,        ///< each match and each text between two is a piece
    removed,         ///< matches are left out
    contiguous,      ///< neighbouring matches are one piece
    merged_previous, ///< a match belongs to the text before it
    merged_next,     ///< a match belongs to the text after it
};
/// Cuts at a regular expression. `invert` exchanges matches and the text between them.
struct regex {
    std::string pattern;
    behaviour how = behaviour::isolated;
    bool invert = false;
    bool spelled = false; ///< it sees the bytes in the alphabet of GPT-2, so it may cut inside a character
};
/// Spaces become `mark`; a mark is put in front where the text does not begin with one; each mark begins a piece where
/// `split`.
struct metaspace {
    enum class prefix { never, first, always };
    std::string mark = "\u2581";
    prefix when = prefix::always;
    bool split = true;
};
/// Puts a space in front of a piece that does not begin with one.
struct prefix_space {};

using step = std::variant<regex, metaspace, prefix_space>;

} // namespace cut

/// Steps from the text of a token, as its file has it, to the bytes that it stands for.
namespace spelling {

/// The byte alphabet of GPT-2.
struct bytes {};
/// `<0xNN>` is a byte.
struct byte_fallback {};
/// A literal is replaced.
struct replace {
    std::string from, to;
};
/// A text at the end of a token is replaced (`</w>` by a space).
struct suffix {
    std::string from, to;
};
/// Up to `front` and `back` copies of `text` are left out at the ends of a token.
struct strip {
    std::string text;
    std::size_t front = 0, back = 0;
};
/// ChatGLM-6B's names of blanks: see normal::blanks.
struct blanks {};

using step = std::variant<bytes, byte_fallback, replace, suffix, strip, blanks>;

} // namespace spelling

/// Byte-pair encoding with a list of merges, best first.
struct bpe_model {
    enum class symbols { bytes, characters };
    symbols from = symbols::bytes;
    std::vector<std::pair<std::string, std::string>> merges; ///< the texts of two tokens
    bool whole_pieces_first = false; ///< a piece that is a token is that token, whatever the merges say
    // For characters:
    bool byte_fallback = false; ///< a character without a token is written with byte tokens
    bool fuse_unknown = false;  ///< unknown characters side by side are one unknown token
    std::string end_of_word;    ///< put after the last character of a piece
};

/// Byte-pair encoding as SentencePiece does it: of the neighbours that make a token the best-scored join first.
struct sentencepiece_bpe_model {
    std::vector<float> scores;
    bool byte_fallback = true;
};

/// SentencePiece's unigram model: the sequence of tokens with the greatest sum of scores.
struct unigram_model {
    std::vector<double> scores;
    bool byte_fallback = false;
    bool single_precision = false; ///< sums are rounded to F32, as the C++ library's are
    bool bonus = false;            ///< user-defined tokens are in the lattice, with a score that always wins
};

/// A token that is found in a text before anything else happens to it.
struct added_token {
    std::int32_t id = 0;
    std::string text;
    bool normalized = false;  ///< found in the normalised text; otherwise in the text itself, and that comes first
    bool single_word = false; ///< only where no letter or digit touches it
    bool strip_left = false, strip_right = false; ///< takes the white space beside it
};

/// All that a tokenizer runs on, whatever file it came from. Not checked: the constructor of tokenizer does that.
struct tokenizer_description {
    std::vector<std::string> tokens; ///< by id, as the file spells them; an empty one pads the vocabulary
    std::vector<token_type> types;   ///< by id; as many as tokens
    std::vector<added_token> added;
    std::vector<normal::step> normalizer;
    std::vector<cut::step> cuts;
    std::variant<bpe_model, sentencepiece_bpe_model, unigram_model> model;
    std::optional<std::int64_t> unknown;  ///< the token of what has no other
    std::vector<spelling::step> spelling; ///< applied to every token that is not control or unknown
    bool spell_added = false;             ///< and to added ones that are text; otherwise those stand for themselves
    bool added_are_certain = false;       ///< a token that is in no list of added ones is text, whatever its name
    bool added_are_normal = false;        ///< the texts of added tokens are normalised already
    std::string strip_front;              ///< decode() leaves it out at the beginning of a text
    std::string strip_back;               ///< and this at its end
    std::optional<std::int64_t> bos, eos;
    std::vector<std::int64_t> before, after; ///< what encode_options::add_special adds
    std::vector<std::int64_t> ends;          ///< tokens that end an answer, beside those known by name
    /// How errors name the parts of the file.
    struct names {
        std::string tokens = "tokens", types = "types", scores = "scores", merges = "merges", added = "added";
    } fields;
};

} // namespace plait
