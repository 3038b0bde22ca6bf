#pragma once

#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/inspect/options.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait::inspecting {

/// How well a model foretells a text, as llama.cpp's llama-perplexity measures it: the tokens are divided into windows
/// of the same length, what is left over at the end is not used; in each window the first token is replaced by the
/// begin token where the model adds one, and the tokens behind its middle count. Source: tools/perplexity of
/// llama.cpp, after Hugging Face's "Perplexity of fixed-length models".
class perplexity {
public:
    /// Throws error(errc::invalid_argument) where `tokens` do not fill a window of `length`, at least 4.
    perplexity(std::vector<std::int32_t> tokens, std::int64_t length, std::optional<std::int32_t> begin);

    std::size_t windows() const noexcept { return tokens_.size() / length_; }
    /// The tokens of a window, as the model is to see them.
    std::vector<std::int32_t> window(std::size_t index) const;
    /// The first place of a window whose token counts; those from there on do.
    std::size_t first() const noexcept { return length_ / 2 + 1; }

    /// The log-probabilities of a window's tokens but the first.
    void add(std::span<float const> logprobs);

    std::int64_t counted() const noexcept { return counted_; }
    /// exp of the mean of -log p. Something has been added.
    double value() const;
    /// The standard error of value(), by the spread of log p.
    double deviation() const;

private:
    std::vector<std::int32_t> tokens_;
    std::size_t length_;
    std::optional<std::int32_t> begin_;
    std::int64_t counted_ = 0;
    double sum_ = 0, squares_ = 0; ///< of -log p
};

/// Scores a text and prints what came of it through `print`, piece by piece. Throws as open(), engine::score() and
/// perplexity.
task<> score_text(runtime& home, settings how, std::string text, std::function<void(std::string const&)> print);

} // namespace plait::inspecting
