#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// The table of replacements inside a SentencePiece model ("precompiled_charsmap"): a 32-bit length, a double-array
/// trie of that many bytes in the form of Darts-clone, then the replacements, each with a zero byte at its end.
/// Every step through it is checked, so any bytes may be given. Immutable.
class charsmap {
public:
    struct match {
        std::size_t length = 0; ///< bytes of the key
        std::string_view with;  ///< what stands in its place; valid while the table lives
    };

    /// Errors: errc::bad_file, named `field`, where the lengths contradict each other or a replacement is not UTF-8.
    charsmap(std::string_view blob, std::string const& field);

    /// The longest and the shortest key at the start of `text`; nothing where there is none.
    std::optional<match> longest(std::string_view text) const noexcept { return find(text, false); }
    std::optional<match> shortest(std::string_view text) const noexcept { return find(text, true); }

    /// What it was made of.
    std::string blob() const;

private:
    std::optional<match> find(std::string_view text, bool first) const noexcept;

    std::vector<std::uint32_t> units_;
    std::string texts_;
};

} // namespace plait
