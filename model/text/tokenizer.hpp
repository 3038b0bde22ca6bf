#pragma once

#include <plait/model/text/byte_range.hpp>
#include <plait/model/text/tokenizer_description.hpp>
#include <plait/model/text/vocabulary.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

struct encode_options {
    bool add_special = false;   ///< put the begin and end tokens where the model wants them
    bool parse_special = false; ///< find control tokens written out in the text; not for text from outside
    /// Where given with `parse_special`, control tokens are found only within one of these parts of the text, which are
    /// ascending and apart. Their ends are no borders: text is encoded across them. Where the text is not UTF-8, as if
    /// there were none.
    std::optional<std::span<byte_range const>> trusted{};
};

struct decode_options {
    bool skip_special = false; ///< leave out control and unknown tokens instead of writing them out
};

/// Text to tokens and back. Immutable: any number of threads may use one at once.
///
/// Encoding reads UTF-8. Ill-formed input is never an error: each maximal ill-formed subsequence is encoded as U+FFFD
/// (see replace_invalid_utf8). Tokens of type user_defined, and control tokens where asked, are cut out first, the
/// leftmost one first and the longest of those that start there; the rest is normalised, cut into pieces and each piece
/// encoded by the model, as the description says. A byte for which a byte-level vocabulary has no token is left out, as
/// in Hugging Face's tokenizers; see covers(). Takes O(n log n) for n bytes.
///
/// Decoding gives bytes: a token may hold part of a character. For well-formed text of covered bytes,
/// decode(encode(x)) == x where the model has bytes for every character and no normaliser that loses anything; the
/// space that such a model puts in front of a text is left out again, one that it puts after a user-defined token is
/// not.
class tokenizer {
public:
    /// Errors, naming the field: errc::bad_file where the vocabulary is empty or not UTF-8, two pieces of text or two
    /// special tokens are the same, lengths differ, a special id is not in the vocabulary, a merge names a piece or
    /// makes one that is not a token, a score is not a number, a byte token is none of `<0x00>` to `<0xFF>`, or a
    /// printable ASCII character has no token in a byte-level vocabulary; errc::unsupported for an expression that
    /// can't be compiled, and for a piece or added token that is too long to be searched for.
    explicit tokenizer(tokenizer_description const& source);

    /// Of a GGUF file. Errors: also those of describe().
    explicit tokenizer(vocabulary const& source);

    tokenizer(tokenizer&&) noexcept;
    tokenizer& operator=(tokenizer&&) noexcept;
    ~tokenizer();

    /// Errors: errc::invalid_argument for a text of 2 GiB or more; see also pre_tokenizer::split and normalizer::apply.
    std::vector<std::int32_t> encode(std::string_view text, encode_options options = {}) const;

    /// Errors: errc::invalid_argument for an id that is not in the vocabulary.
    std::string decode(std::span<std::int32_t const> ids, decode_options options = {}) const;

    /// The bytes that `id` stands for; its name where it is special. Errors: as decode.
    std::string_view piece(std::int32_t id) const;

    /// The token whose bytes are `text`; of several, the first special one, or the first. Takes time linear in size().
    std::optional<std::int32_t> find(std::string_view text) const noexcept;

    std::size_t size() const noexcept { return types_.size(); }
    token_type type(std::int32_t id) const;
    /// Control or unknown: not part of the text.
    bool is_special(std::int32_t id) const;

    std::optional<std::int32_t> bos() const noexcept { return bos_; }
    std::optional<std::int32_t> eos() const noexcept { return eos_; }
    bool adds_bos() const noexcept { return bos_ && !before_.empty() && before_.front() == *bos_; }
    bool adds_eos() const noexcept { return eos_ && !after_.empty() && after_.back() == *eos_; }

    /// What add_special puts before and after a text.
    std::span<std::int32_t const> before() const noexcept { return before_; }
    std::span<std::int32_t const> after() const noexcept { return after_; }

    /// The tokens that end an answer, ascending: the file's end of sequence, of turn and of message, and every control
    /// token that is called as published models call those (`<|im_end|>`, `<|eot_id|>`, `<|endoftext|>`,
    /// `<end_of_turn>`, …). Some files list such a token as user_defined; it counts as control here. Where the
    /// vocabulary has both `<|return|>` and `<|call|>` (the harmony format), `<|end|>` only ends a message, not the
    /// answer.
    std::span<std::int32_t const> end_of_generation() const noexcept { return end_of_generation_; }
    bool ends_generation(std::int32_t id) const noexcept;

    /// False for a byte that encoding leaves out because no token stands for it.
    bool covers(unsigned char byte) const noexcept { return covered_[byte]; }

    /// The steps that encode took for `text`: pairs looked up and bytes of tokens compared. For tests of how the work
    /// grows, which must not depend on a clock. Errors: as encode.
    std::uint64_t encoding_steps(std::string_view text) const;

private:
    class engine;
    class text_encoder;
    struct added;

    void read_tokens(tokenizer_description const& source);
    void read_special(tokenizer_description const& source);
    void read_added(tokenizer_description const& source);
    std::size_t checked(std::int32_t id) const;
    std::vector<std::int32_t> encode(std::string_view text, encode_options options, std::uint64_t* steps) const;

    std::vector<token_type> types_;
    std::vector<char> text_;           // the bytes of all tokens, one after the other
    std::vector<std::size_t> offsets_; // into text_, size() + 1 of them
    std::unique_ptr<engine const> engine_;
    std::unique_ptr<added const> raw_, normalized_; // the added tokens that are found before and after normalising
    std::array<bool, 256> covered_{};
    std::string strip_front_, strip_back_;
    std::optional<std::int32_t> bos_, eos_;
    std::vector<std::int32_t> before_, after_;
    std::vector<std::int32_t> end_of_generation_;
};

} // namespace plait
