#pragma once

#include <plait/model/text/split_regex.hpp>
#include <plait/model/text/tokenizer_description.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// Rewrites a text before it is cut into pieces. Immutable, so any number of threads may use one at once.
class normalizer {
public:
    /// Errors: errc::unsupported where an expression can't be compiled.
    explicit normalizer(std::vector<normal::step> steps);

    /// True where apply returns what it is given.
    bool is_identity() const noexcept { return steps_.empty(); }

    /// `text`, which must be well-formed UTF-8, after every step. Takes O(n log n) where the expressions take a bounded
    /// number of steps a character.
    /// Errors: errc::invalid_argument where the text grows to more than 64 times its size and 64 KiB, or a match passes
    /// its limit of steps.
    std::string apply(std::string_view text) const;

private:
    void run(normal::step const& step, split_regex const* expression, std::string& text, std::size_t limit) const;

    std::vector<normal::step> steps_;
    std::vector<split_regex> expressions_; // of the steps that have one, in their order
};

} // namespace plait
