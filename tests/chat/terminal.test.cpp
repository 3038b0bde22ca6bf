#include <plait/tests/chat/models.hpp>
#include <plait/tests/chat/process.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include <sys/stat.h>

using namespace plait::test;

namespace {

constexpr auto ctrl_c = "\x03";
constexpr auto ctrl_d = "\x04";
constexpr auto up = "\033[A";

/// Folder, model and, for each chat, the options that make its answers repeat.
class desk {
public:
    explicit desk(std::uint32_t context = 256)
        : file_(talkative_model(context).bytes())
    {
    }

    std::vector<std::string> arguments(std::vector<std::string> more = {}) const
    {
        more.insert(more.begin(), {"--model", file_.path().string(), "--temperature", "0", "--threads", "1"});
        return more;
    }
    std::filesystem::path const& home() const noexcept { return folder_.path(); }
    std::filesystem::path history() const { return home() / "state" / "plait" / "history"; }

private:
    temporary_folder folder_;
    temporary_file file_;
};

std::string content(std::filesystem::path const& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST_CASE("a person gets a prompt, answers and the commands")
{
    desk const d;
    terminal_chat chat(d.arguments({"--max-tokens", "5"}), d.home());
    REQUIRE(chat.shows("loading"));
    REQUIRE(chat.shows("/help lists the commands"));
    REQUIRE(chat.shows("> "));
    chat.type("hello\r");
    REQUIRE(chat.shows("--max-tokens is 5"));
    chat.type("/stats\r");
    REQUIRE(chat.shows("answer 5 tokens, decode "));
    REQUIRE(chat.shows("first token after "));
    REQUIRE(chat.shows("all 1 answer"));
    REQUIRE(chat.shows("planned "));
    REQUIRE(chat.shows("resident "));
    chat.type("/help\r");
    REQUIRE(chat.shows("/system TEXT"));
    chat.type("/system Be brief.\r");
    REQUIRE(chat.shows("The system message is set."));
    chat.type("/system\r");
    REQUIRE(chat.shows("what the model's template says"));
    chat.type("/reset\r");
    REQUIRE(chat.shows("begins anew"));
    chat.type("/frobnicate now\r");
    REQUIRE(chat.shows("/frobnicate is no command"));
    chat.type("/exit\r");
    CHECK(chat.finish().status == 0);
}

TEST_CASE("the end of the input leaves with status 0")
{
    desk const d;
    terminal_chat chat(d.arguments(), d.home());
    REQUIRE(chat.shows("> "));
    chat.type(ctrl_d);
    CHECK(chat.finish().status == 0);
}

TEST_CASE("what is typed during an answer is the next line, its end and the end of the input too")
{
    desk const d;
    terminal_chat chat(d.arguments({"--max-tokens", "200"}), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("hello\r/abd\x7f"
              "c\r\x04"); // a backspace in it
    REQUIRE(chat.shows("/abc is no command"));
    CHECK(chat.finish().status == 0);
}

TEST_CASE("Ctrl-C stops the answer, and leaves at the empty prompt")
{
    desk const d(1 << 16);
    terminal_chat chat(d.arguments(), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("tell me everything\r");
    REQUIRE(chat.shows("everything\r\n"));
    REQUIRE(chat.shows("\xef\xbf\xbd")); // something of the answer: random bytes are seldom UTF-8
    chat.type(ctrl_c);
    REQUIRE(chat.shows("Stopped."));
    REQUIRE(chat.shows("> "));
    chat.type("/stats\r");
    REQUIRE(chat.shows("all 1 answer"));
    REQUIRE(chat.shows("> "));
    chat.type(ctrl_c);
    CHECK(chat.finish().status == 130);
}

TEST_CASE("Ctrl-C gives up the line that is being typed")
{
    desk const d;
    terminal_chat chat(d.arguments({"--max-tokens", "5"}), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("/fro");
    REQUIRE(chat.shows("/fro"));
    chat.type(ctrl_c);
    REQUIRE(chat.shows("^C"));
    REQUIRE(chat.shows("> "));
    chat.type("/bar\r");
    REQUIRE(chat.shows("/bar is no command"));
    chat.type("/exit\r");
    CHECK(chat.finish().status == 0);
}

TEST_CASE("what was typed is there again in the next chat, and is nobody else's to read")
{
    desk const d;
    {
        terminal_chat chat(d.arguments(), d.home());
        REQUIRE(chat.shows("> "));
        chat.type("/caf\xc3\xa9 \xe6\xbc\xa2\xe5\xad\x97\r");
        REQUIRE(chat.shows("/caf\xc3\xa9 is no command"));
        REQUIRE(chat.shows("> "));
        chat.type("/second\\line\r");
        REQUIRE(chat.shows("/second\\line is no command"));
        chat.type("/exit\r");
        REQUIRE(chat.finish().status == 0);
    }
    struct stat about{};
    REQUIRE(::stat(d.history().c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
    {
        terminal_chat chat(d.arguments(), d.home());
        REQUIRE(chat.shows("> "));
        chat.type(up);
        REQUIRE(chat.shows("/exit"));
        chat.type(up);
        REQUIRE(chat.shows("second\\line"));
        chat.type(up);
        REQUIRE(chat.shows("caf\xc3\xa9 \xe6\xbc\xa2\xe5\xad\x97"));
        chat.type("\r");
        REQUIRE(chat.shows("/caf\xc3\xa9 is no command"));
        chat.type(ctrl_d);
        CHECK(chat.finish().status == 0);
    }
    auto const kept = content(d.history());
    CHECK(std::count(kept.begin(), kept.end(), '\n') == 5); // the mark, three lines, and the first again
}

TEST_CASE("the line is shown again in a window of another size, and after the process was stopped")
{
    desk const d;
    terminal_chat chat(d.arguments(), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("/abc");
    REQUIRE(chat.shows("/abc"));
    for (unsigned short const columns : {90, 120}) {
        chat.resize(columns);
        REQUIRE(chat.shows("/abc"));
    }
    chat.send_signal(SIGSTOP);
    chat.send_signal(SIGCONT);
    REQUIRE(chat.shows("/abc"));
    chat.type("d\r");
    REQUIRE(chat.shows("/abcd is no command"));
    chat.type(ctrl_d);
    CHECK(chat.finish().status == 0);
}

TEST_CASE("a history that cannot be kept is told, and the chat goes on")
{
    desk const d;
    std::filesystem::create_directories(d.history()); // a folder where the file should be
    terminal_chat chat(d.arguments(), d.home());
    REQUIRE(chat.shows("The history is not kept"));
    REQUIRE(chat.shows("> "));
    chat.type("/exit\r");
    CHECK(chat.finish().status == 0);
}

TEST_CASE("a line that ends in a backslash goes on in the next")
{
    desk const d;
    terminal_chat chat(d.arguments({"--max-tokens", "5"}), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("one\\\r");
    REQUIRE(chat.shows("| "));
    chat.type("two\r");
    REQUIRE(chat.shows("--max-tokens is 5"));
    chat.type("/stats\r");
    REQUIRE(chat.shows("all 1 answer"));
    chat.type(ctrl_d);
    CHECK(chat.finish().status == 0);
}

TEST_CASE("at the context's end the oldest turns are forgotten, and it says so")
{
    desk const d(256);
    terminal_chat chat(d.arguments({"--max-tokens", "20"}), d.home());
    REQUIRE(chat.shows("> "));
    std::string const words(50, 'x');
    for (int turn = 0; turn < 6; ++turn) {
        chat.type(words + "\r");
        REQUIRE(chat.shows("--max-tokens is 20"));
    }
    CHECK(chat.all().find("forgotten") != std::string::npos);
    chat.type(std::string(600, 'x') + "\r");
    REQUIRE(chat.shows("context of 256")); // too long by itself: that message fails alone
    chat.type("hello\r");
    REQUIRE(chat.shows("--max-tokens is 20"));
    chat.type(ctrl_d);
    CHECK(chat.finish().status == 0);
}

TEST_CASE("a terminal that goes away ends the chat")
{
    desk const d;
    terminal_chat chat(d.arguments(), d.home());
    REQUIRE(chat.shows("> "));
    chat.hang_up();
    auto const status = chat.finish().status;
    CHECK((status == 129 || status == 0 || status == 1)); // SIGHUP, or the end of the input before it
}

TEST_CASE("an answer cannot steer the terminal")
{
    desk const d;
    std::vector<std::string> const wild = {"--temperature", "20", "--top-k",      "0",   "--top-p", "1",
                                           "--min-p",       "0",  "--max-tokens", "150", "--seed",  "3"};
    auto arguments = std::vector<std::string>{"--model", d.arguments()[1], "--prompt", "hello"};
    arguments.insert(arguments.end(), wild.begin(), wild.end());
    auto const dangerous = [](unsigned char c) {
        return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f;
    };

    piped_chat raw(arguments, {d.home()});
    auto const bytes = raw.finish().output;
    REQUIRE(std::any_of(bytes.begin(), bytes.end(), dangerous)); // a script gets them as they are

    terminal_chat shown(arguments, d.home());
    auto const screen = shown.finish();
    CHECK(screen.status == 0);
    auto const answer = screen.output.substr(screen.output.rfind(" \r") + 2); // behind the progress
    CHECK(answer.size() > 10);
    CHECK(std::none_of(answer.begin(), answer.end(), dangerous));
    CHECK(answer.find("\\x") != std::string::npos);
}

TEST_CASE("standard input from a file is answered as a script's, on a terminal too")
{
    desk const d;
    std::ofstream(d.home() / "prompt") << "hello\n";
    terminal_chat chat(d.arguments({"--max-tokens", "5"}), d.home(), (d.home() / "prompt").c_str());
    auto const r = chat.finish();
    CHECK(r.status == 0);
    CHECK(r.output.find("> ") == std::string::npos);
}
