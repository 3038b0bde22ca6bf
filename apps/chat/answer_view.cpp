#include <plait/apps/chat/answer_view.hpp>

#include <plait/apps/chat/printable.hpp>

namespace plait::chat {

void answer_view::begin(part next, std::string& out)
{
    if (part_ == next) return;
    if (mid_line_) write("\n", out);
    if (next == part::thoughts) {
        if (written_) write("\n", out);
        if (!how_.coloured) write("<think>\n", out);
    } else {
        if (!how_.coloured) write("</think>\n", out);
        write("\n", out);
    }
    part_ = next;
}

void answer_view::write(std::string_view text, std::string& out)
{
    if (text.empty()) return;
    out += how_.terminal ? printable(text) : std::string(text);
    mid_line_ = !text.ends_with('\n');
    written_ = true;
}

/// Each part is dimmed by itself, so that nothing that comes between leaves the terminal dim.
void answer_view::write_thoughts(std::string_view text, std::string& out)
{
    auto const size = text.find_last_not_of('\n') + 1;
    if (how_.coloured && size > 0) {
        out += "\033[2m";
        write(text.substr(0, size), out);
        out += "\033[0m";
        text.remove_prefix(size);
    }
    write(text, out);
}

std::string answer_view::show(answer_parts const& more)
{
    std::string out;
    if (!more.reasoning.empty() && how_.terminal && how_.thoughts) {
        begin(part::thoughts, out);
        write_thoughts(more.reasoning, out);
    }
    if (!more.text.empty()) {
        begin(part::answer, out);
        write(more.text, out);
        said_ += more.text;
    }
    for (auto const& call : more.calls) {
        begin(part::answer, out);
        if (mid_line_) write("\n", out);
        if (!said_.empty() && !said_.ends_with('\n')) said_ += '\n';
        auto const line = to_json(call) + "\n";
        write(line, out);
        said_ += line;
    }
    return out;
}

std::string answer_view::finish()
{
    std::string out;
    if (mid_line_) write("\n", out);
    if (part_ == part::thoughts && !how_.coloured) write("</think>\n", out);
    return out;
}

} // namespace plait::chat
