#include <plait/tests/chat/models.hpp>
#include <plait/tests/chat/process.hpp>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>

using namespace plait::test;

namespace {

/// A tiny model in a folder of its own, and the program run on it.
class bench {
public:
    explicit bench(gguf_writer const& model = talkative_model())
        : file_(model.bytes())
    {
    }

    std::vector<std::string> with_model(std::vector<std::string> arguments) const
    {
        arguments.insert(arguments.begin(), {"--model", file_.path().string()});
        return arguments;
    }

    outcome run(std::vector<std::string> arguments, std::string_view input = {}) const
    {
        piped_chat chat(with_model(std::move(arguments)), {folder_.path()});
        return chat.finish(input);
    }

    std::filesystem::path const& home() const noexcept { return folder_.path(); }

private:
    temporary_folder folder_;
    temporary_file file_;
};

/// More than a test waits for.
constexpr std::uint32_t long_context = 1 << 16;

/// Always the same answer, of 20 tokens.
std::vector<std::string> plain(std::vector<std::string> more)
{
    more.insert(more.begin(), {"--temperature", "0", "--max-tokens", "20", "--threads", "1"});
    return more;
}

} // namespace

TEST_CASE("a trace is written in the end, of what was asked and of all devices, and a place for none is known at once")
{
    bench const b;
    auto const file = b.home() / "trace.json";
    auto const r = b.run(plain({"--prompt", "hello", "--tp", "2", "--trace", file.string()}));
    CHECK(r.status == 0);
    CHECK(r.error == "");
    auto const read = nlohmann::json::parse(std::ifstream(file));
    std::size_t requests = 0, processes = 0;
    for (auto const& e : read.at("traceEvents")) {
        requests += e.at("name") == "request" && e.at("ph") == "e";
        processes += e.at("name") == "process_name";
    }
    CHECK(requests == 1);
    CHECK(processes == 3);

    auto const nowhere = b.run(plain({"--prompt", "hello", "--trace", (b.home() / "none" / "trace.json").string()}));
    CHECK(nowhere.status == 1);
    CHECK(nowhere.output == "");
    CHECK(nowhere.error.find("none/trace.json: can't be written") != std::string::npos);
}

TEST_CASE("a prompt on the command line gives the answer and nothing else")
{
    bench const b;
    auto const r = b.run(plain({"--prompt", "hello"}));
    CHECK(r.status == 0);
    CHECK(r.error == "");
    CHECK(r.output.size() > 10);
    CHECK(r.output.ends_with('\n'));
    CHECK(b.run(plain({"--prompt", "hello"})).output == r.output);
    CHECK(b.run(plain({"--prompt", "another"})).output != r.output);
    CHECK(b.run(plain({"--prompt", "hello", "--system", "Be kind."})).output != r.output);
}

TEST_CASE("all of standard input is one prompt, the last end of line left out")
{
    bench const b;
    auto const one = b.run(plain({"--prompt", "one\ntwo"}));
    auto const read = b.run(plain({}), "one\ntwo\n");
    CHECK(read.status == 0);
    CHECK(read.error == "");
    CHECK(read.output == one.output);
    CHECK(b.run(plain({}), "one\ntwo\n\n").output != one.output);
}

TEST_CASE("a prompt on the command line leaves standard input alone")
{
    bench const b;
    CHECK(b.run(plain({"--prompt", "hello"}), "\xff").output == b.run(plain({"--prompt", "hello"})).output);
}

TEST_CASE("a seed gives the same answer again, another one another")
{
    bench const b;
    auto const with = [&](std::string seed) {
        return b
            .run({"--prompt", "hello", "--temperature", "2", "--max-tokens", "40", "--threads", "1", "--seed", seed})
            .output;
    };
    CHECK(with("7") == with("7"));
    CHECK(with("7") != with("8"));
}

TEST_CASE("the number of threads and the kind of instructions do not change the answer")
{
    bench const b;
    auto const one = b.run({"--prompt", "hello", "--temperature", "0", "--max-tokens", "20", "--threads", "1"});
    auto const two = b.run({"--prompt", "hello", "--temperature", "0", "--max-tokens", "20", "--threads", "2"});
    CHECK(one.status == 0);
    CHECK(one.output == two.output);
}

TEST_CASE("every way of keeping keys and values, and the reference arithmetic, answers")
{
    bench const b;
    for (auto const* kv : {"f32", "f16", "q8"}) {
        auto const r = b.run(plain({"--prompt", "hello", "--kv", kv, "--numerics", "f32"}));
        CHECK_MESSAGE(r.status == 0, r.error);
        CHECK(r.output.size() > 1);
    }
}

TEST_CASE("a stop string ends the answer and is not shown")
{
    bench const b;
    auto const whole = b.run(plain({"--prompt", "hello"})).output;
    // Two characters of ASCII from the middle, where they come for the first time.
    std::size_t at = 0;
    for (std::size_t i = whole.size() / 3; i + 3 < whole.size() && at == 0; ++i)
        if (std::all_of(whole.data() + i, whole.data() + i + 2, [](unsigned char c) { return c > ' ' && c < 0x7f; }))
            at = whole.find(whole.substr(i, 2));
    REQUIRE(at > 0);
    auto const stop = whole.substr(at, 2);
    auto const cut = b.run(plain({"--prompt", "hello", "--stop", stop}));
    CHECK(cut.status == 0);
    CHECK(cut.output == whole.substr(0, at) + "\n");
}

TEST_CASE("help and version are printed without a model")
{
    temporary_folder const home;
    piped_chat help({"--help"}, {home.path()});
    auto const h = help.finish();
    CHECK(h.status == 0);
    CHECK(h.error == "");
    CHECK(h.output.find("Exit status") != std::string::npos);
    piped_chat version({"--version"}, {home.path()});
    auto const v = version.finish();
    CHECK(v.status == 0);
    CHECK(v.output.starts_with("plait-chat "));
    CHECK(std::count(v.output.begin(), v.output.end(), '\n') == 1);
}

TEST_CASE("the memory plan is printed without loading the model")
{
    bench const b;
    auto const r = b.run({"--plan"});
    CHECK(r.status == 0);
    CHECK(r.error == "");
    for (auto const* part : {"layers", "KV cache", "total"})
        CHECK_MESSAGE(r.output.find(part) != std::string::npos, part, " is not in\n", r.output);
}

TEST_CASE("a model without a chat template continues the text, and says so")
{
    auto model = talkative_model();
    model.erase("tokenizer.chat_template");
    bench const b(model);
    auto const r = b.run(plain({"--prompt", "hello"}));
    CHECK(r.status == 0);
    CHECK(r.output.size() > 1);
    CHECK(r.error.find("no chat template") != std::string::npos);
    CHECK(bench{}.run(plain({"--prompt", "hello"})).output != r.output);

    auto const system = b.run(plain({"--prompt", "hello", "--system", "Be kind."}));
    CHECK(system.status == 1);
    CHECK(system.error.find("--system") != std::string::npos);
    CHECK(system.output == "");
}

TEST_CASE("an answer that fills the context says so on standard error")
{
    bench const b;
    auto const r = b.run({"--prompt", "hello", "--temperature", "0", "--context", "64", "--threads", "1"});
    CHECK(r.status == 0);
    CHECK(r.error.find("context of 64 tokens is full") != std::string::npos);
    CHECK(r.output.size() > 1);
}

TEST_CASE("without --context the conversation is as long as memory allows, and it says so")
{
    bench const b(talkative_model(long_context));
    auto const r = b.run(plain({"--prompt", "hello", "--memory", "8MiB"}));
    CHECK(r.status == 0);
    CHECK(r.error.find("which is what fits in memory") != std::string::npos);
    auto const asked = b.run(plain({"--prompt", "hello", "--memory", "8MiB", "--context", "65536"}));
    CHECK(asked.status == 1);
}

TEST_CASE("an interrupt ends a script's answer with status 130, SIGTERM with 143")
{
    bench const b(talkative_model(long_context));
    for (auto const& [number, status] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
        piped_chat chat(b.with_model({"--prompt", "hello", "--temperature", "0", "--threads", "1"}), {b.home()});
        CHECK(chat.some_output().size() > 0);
        chat.send_signal(number);
        CHECK(chat.finish().status == status);
    }
}

TEST_CASE("SIGUSR1 shows on standard error what the program is doing, and changes nothing")
{
    bench const b(talkative_model(long_context));
    std::vector<std::string> const arguments{"--prompt",     "hello", "--temperature", "0",
                                             "--max-tokens", "300",   "--threads",     "1"};
    piped_chat chat(b.with_model(arguments), {b.home()});
    CHECK(chat.some_output().size() > 0);
    chat.send_signal(SIGUSR1);
    auto const r = chat.finish();
    CHECK(r.status == 0);
    INFO(r.error);
    CHECK(r.error.starts_with("at "));
    CHECK(r.error.find("\nactor ") != std::string::npos);
    CHECK(r.error.find(" waits for ") != std::string::npos);
    CHECK(r.error.find("task #1") != std::string::npos);
    CHECK(r.output == b.run(arguments).output);
}

TEST_CASE("a signal ends the wait for standard input")
{
    bench const b;
    piped_chat chat(b.with_model({}), {b.home()});
    chat.send_signal(SIGTERM); // before or after the program has begun to listen
    auto const status = chat.finish("hello").status;
    CHECK(status == 143);
}

TEST_CASE("an interrupt that was ignored from the start stays ignored")
{
    bench const b(talkative_model(long_context));
    piped_chat::places where{b.home()};
    where.ignores_interrupts = true;
    piped_chat chat(b.with_model({"--prompt", "hello", "--temperature", "0", "--max-tokens", "300", "--threads", "1"}),
                    where);
    CHECK(chat.some_output().size() > 0);
    chat.send_signal(SIGINT);
    CHECK(chat.finish().status == 0);
}

TEST_CASE("output that cannot be written is a failure")
{
    bench const b(talkative_model(long_context));
    piped_chat::places full{b.home()};
    full.output = "/dev/full";
    for (auto const& arguments : {std::vector<std::string>{"--prompt", "hello"}, {"--plan"}, {"--help"}}) {
        piped_chat chat(b.with_model(arguments), full);
        auto const r = chat.finish();
        CHECK(r.status == 1);
        CHECK(r.error.find("standard output") != std::string::npos);
    }
    piped_chat gone(b.with_model({"--prompt", "hello", "--temperature", "0", "--threads", "1"}), {b.home()});
    CHECK(gone.some_output().size() > 0);
    gone.close_output();
    auto const r = gone.finish();
    CHECK(r.status == 1);
    CHECK(r.error.find("standard output") != std::string::npos);
}
