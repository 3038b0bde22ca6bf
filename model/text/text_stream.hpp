#pragma once

#include <plait/model/text/stop_matcher.hpp>
#include <plait/model/text/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait {

class tokenizer;

/// Tokens in, text out as early as it is certain: whole characters only, ill-formed bytes as U+FFFD (as
/// replace_invalid_utf8), nothing that could be the start of a stop string, and never the stop string itself.
/// Which text comes out, all in all, depends on the tokens and the stop strings alone.
class text_stream {
public:
    struct options {
        std::vector<std::string> stops;    ///< end the text where the first of them is complete; see stop_matcher
        bool skip_special = true;          ///< control tokens have no text
        std::vector<std::int32_t> shown{}; ///< but these, which are written out
    };

    /// What one call made certain.
    struct update {
        std::string text; ///< well-formed UTF-8; may be empty
        /// How many more tokens, in the order in which they were pushed, have now given all the text that they ever
        /// will. A token that a stop string cuts counts where some of its text came before the stop; tokens from the
        /// stop string on never count.
        std::size_t tokens = 0;
    };

    /// `source` must outlive this. Errors: errc::invalid_argument for a stop string that is empty or not UTF-8.
    explicit text_stream(tokenizer const& source);
    text_stream(tokenizer const& source, options settings);

    /// Takes the next token. After a stop string tokens are ignored.
    /// Errors: errc::invalid_argument for an id that is not in the vocabulary.
    update push(std::int32_t id);

    /// Ends the text: gives out what was held back, an incomplete character as one U+FFFD. Only this may complete a
    /// stop string that ends in U+FFFD.
    update flush();

    /// Which stop string ended the text, as an index into options::stops.
    std::optional<std::size_t> stopped() const noexcept { return matcher_.matched(); }

private:
    update take(std::string const& decoded);

    tokenizer const& source_;
    bool skip_special_;
    std::vector<std::int32_t> shown_special_;
    utf8_decoder decoder_;
    stop_matcher matcher_;
    std::size_t decoded_ = 0;      // bytes of text that the matcher has been given
    std::size_t shown_ = 0;        // bytes of text given out
    std::deque<std::size_t> ends_; // of tokens not yet counted: where in the decoded text each ends
    std::size_t open_ = 0;         // how many of those, the last ones, end in a character that is incomplete
    std::size_t counted_ = 0;      // where the last counted token ends
};

} // namespace plait
