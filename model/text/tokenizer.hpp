#pragma once

#include <plait/model/text/bpe.hpp>
#include <plait/model/text/byte_trie.hpp>
#include <plait/model/text/pre_tokenizer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plait {

class gguf_file;

/// What a token is for, with the numbers of `tokenizer.ggml.token_type`.
enum class token_type : std::int32_t {
    normal = 1,
    unknown = 2,
    control = 3,      ///< structure, such as the end of a turn; never made from plain text
    user_defined = 4, ///< added by the model's author; found in any text before it is split
    unused = 5,
    byte = 6,
};

/// A tokenizer as a model file holds it. Not checked: the constructor of tokenizer does that.
struct vocabulary {
    std::string model;                    ///< the algorithm; "gpt2" is byte-level BPE
    std::string pre;                      ///< the rule of pre_tokenizer; empty is "default"
    std::vector<std::string> tokens;      ///< by id, in the byte alphabet of GPT-2 where the type is normal
    std::vector<std::int32_t> types;      ///< token_type by id; empty: all normal
    std::vector<std::string> merges;      ///< "left right", best first
    std::optional<std::int64_t> bos, eos; ///< ids; also below
    std::optional<std::int64_t> end_of_turn, end_of_message, unknown, padding;
    std::optional<bool> add_bos, add_eos; ///< empty: what is usual for `pre`
};

/// The `tokenizer.ggml.*` entries of a file. Errors: errc::bad_file where one is missing or of the wrong type.
vocabulary read_vocabulary(gguf_file const& file);

struct encode_options {
    bool add_special = false;   ///< put the begin and end tokens where the model wants them
    bool parse_special = false; ///< find control tokens written out in the text; not for text from outside
};

struct decode_options {
    bool skip_special = false; ///< leave out control and unknown tokens instead of writing them out
};

/// Text to tokens and back. Immutable: any number of threads may use one at once.
///
/// Encoding reads UTF-8. Ill-formed input is never an error: each maximal ill-formed subsequence is encoded as U+FFFD
/// (see replace_invalid_utf8). Tokens of type user_defined, and control tokens where asked, are cut out first, the
/// leftmost one first and the longest of those that start there; the rest is split by the pre_tokenizer and each piece
/// encoded by bpe. A byte for which the vocabulary has no token is left out, as in Hugging Face's tokenizers; see
/// covers().
///
/// Decoding gives bytes: a token may hold part of a character. For well-formed text of covered bytes,
/// decode(encode(x)) == x.
class tokenizer {
public:
    /// Errors, naming the field: errc::unsupported for a model or pre that is not known; errc::bad_file where the
    /// vocabulary is empty or not UTF-8, two tokens have the same text, a token has an unknown type, lengths differ,
    /// a special id is not in the vocabulary, a merge names a piece or makes one that is not a token, or a printable
    /// ASCII character has no token.
    explicit tokenizer(vocabulary const& source);

    /// Errors: errc::invalid_argument for a text of 2 GiB or more; see also pre_tokenizer::split.
    std::vector<std::int32_t> encode(std::string_view text, encode_options options = {}) const;

    /// Errors: errc::invalid_argument for an id that is not in the vocabulary.
    std::string decode(std::span<std::int32_t const> ids, decode_options options = {}) const;

    /// The bytes that `id` stands for; its name where it is special. Errors: as decode.
    std::string_view piece(std::int32_t id) const;

    /// The token whose bytes are `text`; of two, the special one. Takes time linear in size().
    std::optional<std::int32_t> find(std::string_view text) const noexcept;

    std::size_t size() const noexcept { return types_.size(); }
    token_type type(std::int32_t id) const;
    /// Control or unknown: not part of the text.
    bool is_special(std::int32_t id) const;

    std::optional<std::int32_t> bos() const noexcept { return bos_; }
    std::optional<std::int32_t> eos() const noexcept { return eos_; }
    bool adds_bos() const noexcept { return add_bos_; }
    bool adds_eos() const noexcept { return add_eos_; }

    /// The tokens that end an answer, ascending: the file's end of sequence, of turn and of message, and every control
    /// token that is called as published models call those (`<|im_end|>`, `<|eot_id|>`, `<|endoftext|>`,
    /// `<end_of_turn>`, …). Some files list such a token as user_defined; it counts as control here. Where the
    /// vocabulary has both `<|return|>` and `<|call|>` (the harmony format), `<|end|>` only ends a message, not the
    /// answer.
    std::span<std::int32_t const> end_of_generation() const noexcept { return end_of_generation_; }
    bool ends_generation(std::int32_t id) const noexcept;

    /// False for a byte that encoding leaves out because no token stands for it.
    bool covers(unsigned char byte) const noexcept { return bytes_[byte] >= 0; }

private:
    class text_encoder;

    void read_types(vocabulary const& source);
    void read_special(vocabulary const& source);
    void read_pieces(vocabulary const& source);
    void read_merges(vocabulary const& source);
    std::size_t checked(std::int32_t id) const;

    pre_tokenizer pre_;
    std::vector<token_type> types_;
    std::vector<char> text_;           // the bytes of all tokens, one after the other
    std::vector<std::size_t> offsets_; // into text_, size() + 1 of them
    std::array<std::int32_t, 256> bytes_{};
    std::optional<bpe> bpe_;
    byte_trie added_;                                          // texts of control, unknown and user_defined tokens
    std::vector<std::int32_t> added_id_;                       // by node: the token that ends there, or -1
    std::array<bool, 256> added_first_{};                      // the bytes that such a text begins with
    std::unordered_map<std::string_view, std::int32_t> whole_; // by bytes, where pre_ wants whole pieces first
    std::optional<std::int32_t> bos_, eos_;
    bool add_bos_ = false, add_eos_ = false;
    std::vector<std::int32_t> end_of_generation_;
};

} // namespace plait
