#pragma once

#include <cstddef>
#include <cstdint>
#include <plait/model/chat/jinja/limits.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace plait::jinja {

/// A template that cannot go on: a syntax error, an operation Python would refuse, `raise_exception`, or a limit.
/// Internal: `chat_template` adds the line and turns it into `error(errc::template_failed, ...)`.
class failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Counts what one rendering uses and throws `failure` at the first limit passed.
class budget {
public:
    explicit budget(template_limits const& limits)
        : limits_(limits)
    {
    }

    /// One node evaluated or `count` items visited.
    void step(std::uint64_t count = 1)
    {
        if (count > limits_.steps - steps_) throw failure("the template takes more than its limit of steps");
        steps_ += count;
    }

    // Work on text without a step for each character, at what it costs beside evaluating a node:

    /// `bytes` compared, copied or counted.
    void scan(std::size_t bytes) { step(bytes / 128); }

    /// `bytes` searched for something.
    void search(std::size_t bytes) { step(bytes / 16); }

    /// `bytes` looked at character by character in the tables of Unicode.
    void classify(std::size_t bytes) { step(bytes / 4); }

    /// `bytes` about to be allocated. Never given back: the sum over a rendering bounds both memory and copying, and
    /// needs no bookkeeping at release.
    void allocate(std::size_t bytes)
    {
        if (bytes > limits_.memory_bytes - allocated_)
            throw failure("the template takes more than its limit of memory");
        allocated_ += bytes;
    }

    /// Checks the length of a text under construction.
    void output(std::size_t bytes) const
    {
        if (bytes > limits_.output_bytes) throw failure("the template writes more than its limit of output");
    }

    /// Checks a depth of nesting.
    void depth(unsigned depth) const
    {
        if (depth > limits_.depth) throw failure("the template nests deeper than its limit");
    }

    template_limits const& limits() const noexcept { return limits_; }

    /// Whether texts made now are foreign: see `derivation`.
    bool foreign() const noexcept { return foreign_; }

private:
    template_limits limits_;
    std::uint64_t steps_ = 0;
    std::size_t allocated_ = 0;
    bool foreign_ = false;
    friend class derivation;
};

/// While it lives, the texts that are made come from inputs of which some are foreign, or from none. So an operation
/// that knows nothing of the difference cannot lose it: what it makes of a user's words is a user's words.
class derivation {
public:
    derivation(budget& b, bool foreign)
        : budget_(b)
        , before_(std::exchange(b.foreign_, foreign))
    {
    }
    ~derivation() { budget_.foreign_ = before_; }
    derivation(derivation const&) = delete;
    derivation& operator=(derivation const&) = delete;

private:
    budget& budget_;
    bool before_;
};

} // namespace plait::jinja
