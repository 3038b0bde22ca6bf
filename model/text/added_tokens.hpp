#pragma once

#include <plait/model/text/byte_range.hpp>
#include <plait/model/text/byte_trie.hpp>
#include <plait/model/text/tokenizer_description.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace plait {

/// Where in a text tokens that are found only where asked may be: nowhere, anywhere, or within one of some parts.
class special_places {
public:
    explicit special_places(bool anywhere) noexcept
        : anywhere_(anywhere)
    {
    }
    /// `parts` are ascending and apart, and outlive this.
    explicit special_places(std::span<byte_range const> parts) noexcept
        : parts_(parts)
    {
    }

    /// Whether a token may take the bytes [begin, end).
    bool allow(std::size_t begin, std::size_t end) const noexcept;

private:
    bool anywhere_ = false;
    std::span<byte_range const> parts_{};
};

/// Finds tokens that are cut out of a text whole. Immutable.
class added_tokens {
public:
    /// Longer ones are refused: a text is searched for all of them at every place.
    static constexpr std::size_t longest = 1024;

    /// A token and the bytes that it takes, the white space beside it included where it wants that.
    struct match {
        std::size_t begin, end;
        std::int32_t id;
    };

    /// `special[id]` says that the token of `id` is found only where asked.
    added_tokens(std::vector<added_token> const& tokens, std::vector<bool> const& special);

    bool empty() const noexcept { return tokens_.empty(); }

    /// The first token in `text` at or after `from`: the leftmost, and the longest of those that start there. White
    /// space before `from` is not taken.
    std::optional<match> find(std::string_view text, std::size_t from, special_places const& special) const;

private:
    struct entry {
        std::int32_t id;
        bool special, single_word, strip_left, strip_right;
    };

    byte_trie trie_;
    std::vector<std::int32_t> at_node_; // into tokens_, or -1
    std::vector<entry> tokens_;
    std::array<bool, 256> first_{};
};

} // namespace plait
