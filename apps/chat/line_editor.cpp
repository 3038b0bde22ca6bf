#include <plait/apps/chat/line_editor.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/chat/terminal.hpp>
#include <plait/model/text/utf8.hpp>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plait::chat {

namespace {

constexpr int history_lines = 1000;

/// Stands around the bytes of a prompt that take no room on the screen.
constexpr char invisible = '\1';

struct close_editor {
    void operator()(EditLine* editor) const noexcept { ::el_end(editor); }
};
struct close_history {
    void operator()(History* history) const noexcept { ::history_end(history); }
};

/// libedit turns its wide characters into bytes by the locale, which must therefore be one of UTF-8.
void use_utf8()
{
    for (auto const* name : {"", "C.UTF-8", "en_US.UTF-8"})
        if (std::setlocale(LC_CTYPE, name) != nullptr && std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0) return;
}

/// A line as libedit's history files have it: vis(3), white space included. libedit itself can only write whole files.
std::string encoded(std::string_view line)
{
    std::string out;
    for (unsigned char const c : line) {
        if (c > ' ' && c < 0x7f && c != '\\') {
            out += static_cast<char>(c);
        } else {
            char octal[8];
            std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(c));
            out += octal;
        }
    }
    return out + '\n';
}

std::string without_end(std::string_view line)
{
    while (line.ends_with('\n') || line.ends_with('\r'))
        line.remove_suffix(1);
    return std::string(line);
}

} // namespace

struct line_editor::state {
    state(wakers& wake, terminal const& where)
        : by(wake)
        , screen(where)
    {
    }

    void obey_signals();
    void open_history(std::filesystem::path const& path);
    void remember(std::string const& line);

    static int read_character(EditLine* editor, wchar_t* out);
    static char* show_prompt(EditLine* editor);

    bool has_text() const
    {
        auto const* line = ::el_line(editor.get());
        return line->lastchar != line->buffer;
    }

    wakers& by;
    terminal const& screen;
    std::unique_ptr<History, close_history> history;
    std::unique_ptr<EditLine, close_editor> editor;
    std::filesystem::path file;
    std::string complaint;
    std::string prompt;
    std::string held; ///< bytes of a character that is not complete
    bool coloured = false;
    bool at_end = false;
    line_input::ending broken = line_input::ending::complete; ///< why the line ended before its end
};

void line_editor::state::obey_signals()
{
    bool resized = false;
    bool continued = false;
    while (int const number = screen.take_signal()) {
        if (number == SIGTSTP) {
            ::el_set(editor.get(), EL_PREP_TERM, 0);
            screen.stop_process();
        }
        resized |= number == SIGWINCH;
        continued |= number != SIGWINCH;
    }
    if (resized) ::el_resize(editor.get());
    if (continued) {
        ::el_set(editor.get(), EL_PREP_TERM, 0); // what libedit remembers of the terminal may not be so any more
        ::el_set(editor.get(), EL_PREP_TERM, 1);
    }
    if (coloured) std::fputs("\r\033[K", stdout); // libedit writes the line again from the left
    ::el_set(editor.get(), EL_REFRESH);
}

/// Called by libedit for every key. Unlike its own reader it also sees the wakers.
int line_editor::state::read_character(EditLine* editor, wchar_t* out)
{
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    auto& self = *static_cast<state*>(data);
    while (true) {
        switch (wait_for_input(STDIN_FILENO, self.by, self.screen.signals())) {
        case waited::signalled:
            self.obey_signals();
            continue;
        case waited::interrupted:
            self.broken = self.has_text() ? line_input::ending::interrupted : line_input::ending::abandoned;
            return -1;
        case waited::left:
            self.broken = line_input::ending::left;
            return -1;
        case waited::ready:
            break;
        }
        char byte = 0;
        auto const got = ::read(STDIN_FILENO, &byte, 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) {
            self.at_end = true; // the terminal went away
            return 0;
        }
        self.held += byte;
        auto const unit = first_utf8(self.held);
        if (unit.what == utf8_unit::kind::truncated) continue;
        *out = unit.what == utf8_unit::kind::scalar ? static_cast<wchar_t>(unit.value) : L'\xfffd';
        self.held.clear();
        return 1;
    }
}

char* line_editor::state::show_prompt(EditLine* editor)
{
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<state*>(data)->prompt.data();
}

void line_editor::state::open_history(std::filesystem::path const& path)
{
    HistEvent event;
    ::history(history.get(), &event, H_SETSIZE, history_lines);
    ::history(history.get(), &event, H_SETUNIQUE, 1);
    if (path.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    // What a person writes to a model is nobody else's business.
    int const descriptor = failed ? -1 : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        complaint = path.string() + ": " + (failed ? failed.message() : std::strerror(errno));
        return;
    }
    struct stat about{};
    bool const empty = ::fstat(descriptor, &about) == 0 && about.st_size == 0;
    ::close(descriptor);
    if (!empty && ::history(history.get(), &event, H_LOAD, path.c_str()) < 0) {
        complaint = path.string() + ": not a history file";
        return;
    }
    // Every line is appended when it is entered, so several chats share the file; what has become too old goes here.
    if (::history(history.get(), &event, H_GETSIZE) >= 0 && event.num >= history_lines)
        ::history(history.get(), &event, H_SAVE, path.c_str());
    file = path;
}

void line_editor::state::remember(std::string const& line)
{
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    HistEvent event;
    if (::history(history.get(), &event, H_ENTER, line.c_str()) <= 0 || file.empty()) return; // 0: as the line before
    int const descriptor = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor < 0) return;
    struct stat about{};
    auto const entry = (::fstat(descriptor, &about) == 0 && about.st_size == 0 ? "_HiStOrY_V2_\n" : "") + encoded(line);
    [[maybe_unused]] auto const written = ::write(descriptor, entry.data(), entry.size()); // one call: one piece
    ::close(descriptor);
}

line_editor::line_editor(wakers& by, terminal const& where, std::filesystem::path const& history, bool coloured)
    : state_(std::make_unique<state>(by, where))
{
    use_utf8();
    where.stop_at_once(true);
    auto& s = *state_;
    s.coloured = coloured;
    s.history.reset(::history_init());
    s.editor.reset(::el_init("plait-chat", stdin, stdout, stderr));
    if (!s.history || !s.editor) throw error(errc::io, "the terminal cannot be used for line editing");
    s.open_history(history);

    auto* editor = s.editor.get();
    ::el_set(editor, EL_CLIENTDATA, static_cast<void*>(&s));
    ::el_set(editor, EL_PROMPT_ESC, &state::show_prompt, invisible);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_HIST, ::history, s.history.get());
    ::el_set(editor, EL_SIGNAL, 0);
    ::el_set(editor, EL_GETCFN, &state::read_character);
    static constexpr char const* keys[][2] = {
        {"^R", "em-inc-search-prev"}, {"\\e[3~", "ed-delete-next-char"}, {"\\e[1;5C", "em-next-word"},
        {"\\e[1;5D", "ed-prev-word"}, {"\\e[H", "ed-move-to-beg"},       {"\\e[F", "ed-move-to-end"},
        {"\\e[1~", "ed-move-to-beg"}, {"\\e[4~", "ed-move-to-end"},      {"\\eOH", "ed-move-to-beg"},
        {"\\eOF", "ed-move-to-end"},
    };
    for (auto const& [key, command] : keys)
        ::el_set(editor, EL_BIND, key, command, nullptr);
    ::el_source(editor, nullptr); // a person's own ~/.editrc has the last word
    s.screen.keep_keys();
}

line_editor::~line_editor()
{
    state_->editor.reset();
    state_->screen.restore();
}

line_input line_editor::read(std::string const& prompt)
{
    auto& s = *state_;
    s.prompt = prompt;
    if (s.coloured) {
        s.prompt = invisible;
        s.prompt += "\033[1;32m";
        s.prompt += invisible;
        s.prompt += prompt;
        s.prompt += invisible;
        s.prompt += "\033[0m";
        s.prompt += invisible;
    }
    s.broken = line_input::ending::complete;
    // Before the prompt is shown, not after it: a Ctrl-D in between would be taken by the terminal.
    ::el_set(s.editor.get(), EL_PREP_TERM, 1);
    int count = 0;
    s.screen.stop_at_once(false);
    auto const* line = ::el_gets(s.editor.get(), &count);
    s.screen.keep_keys();
    s.screen.stop_at_once(true);
    line_input out;
    if (s.broken != line_input::ending::complete) {
        out.how = s.broken;
    } else if (line != nullptr && count > 0) {
        out.how = line_input::ending::complete;
        out.text = without_end(line);
        s.remember(out.text);
    }
    return out;
}

std::string const& line_editor::complaint() const noexcept
{
    return state_->complaint;
}

std::filesystem::path history_file()
{
    auto const variable = [](char const* name) {
        auto const* value = std::getenv(name);
        return std::filesystem::path(value != nullptr ? value : "");
    };
    // The XDG base directory specification: a relative path counts as unset.
    if (auto const state = variable("XDG_STATE_HOME"); state.is_absolute()) return state / "plait" / "history";
    if (auto const home = variable("HOME"); home.is_absolute()) return home / ".local" / "state" / "plait" / "history";
    return {};
}

} // namespace plait::chat
