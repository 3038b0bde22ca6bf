#pragma once

#include <plait/model/text/byte_trie.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// Looks for the first of several stop strings in a text that comes in parts, and holds back what could still turn
/// out to be the start of one (Aho and Corasick 1975). The outcome depends on the text alone, not on how it was cut:
/// the stop string that ends earliest wins, and of those that end together the longest.
class stop_matcher {
public:
    /// Errors: errc::invalid_argument for a stop string that is empty or not UTF-8.
    explicit stop_matcher(std::span<std::string const> stops);

    /// Takes more text and appends what is certainly before any stop string to `out`. Once a stop string is found,
    /// the text before it has been given out, all else is dropped, and further text is ignored.
    void push(std::string_view text, std::string& out);

    /// Ends the text: appends what was held back.
    void finish(std::string& out);

    /// Which stop string was found, as an index into the constructor's argument.
    std::optional<std::size_t> matched() const noexcept { return matched_; }

private:
    using node = byte_trie::index;
    struct state {
        node fallback = 0;        ///< the longest proper suffix that begins a stop string
        std::uint32_t depth = 0;  ///< bytes from the root
        std::int32_t stop = -1;   ///< the longest stop string that ends here, or -1
        std::uint32_t length = 0; ///< of that stop string
    };

    byte_trie trie_;
    std::vector<state> states_; // by node of trie_
    node at_ = 0;
    std::string held_; // the last states_[at_].depth bytes
    std::optional<std::size_t> matched_;
};

} // namespace plait
