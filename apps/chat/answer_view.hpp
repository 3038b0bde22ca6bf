#pragma once

#include <plait/model/chat/answer_parser.hpp>

#include <string>
#include <string_view>

namespace plait::chat {

/// What is shown of an answer, as it comes: its text; each call of a tool as one line of JSON; thoughts only on a
/// terminal, dimmed where there are colours and between the lines `<think>` and `</think>` where there are none. On a
/// terminal nothing that the model writes steers it: see printable.
class answer_view {
public:
    struct options {
        bool terminal = false;
        bool coloured = false; ///< a terminal that may be given colours
        bool thoughts = true;  ///< may be shown
    };

    explicit answer_view(options how)
        : how_(how)
    {
    }

    /// What to write for more of the answer. Ends with a line feed where the cursor is at the beginning of a line.
    std::string show(answer_parts const& more);

    /// What to write at the end: whatever was written ends a line.
    std::string finish();

    /// What the answer said, without its thoughts: text, and calls as lines.
    std::string const& said() const noexcept { return said_; }

private:
    enum class part : bool { thoughts, answer };

    void begin(part next, std::string& out);
    void write(std::string_view text, std::string& out);
    void write_thoughts(std::string_view text, std::string& out);

    options how_;
    std::string said_;
    part part_ = part::answer;
    bool written_ = false; ///< anything
    bool mid_line_ = false;
};

} // namespace plait::chat
