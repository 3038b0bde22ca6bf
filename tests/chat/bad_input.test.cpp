#include <plait/tests/chat/process.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace plait::test;

namespace {

outcome run(std::vector<std::string> const& arguments, std::string_view input = {})
{
    temporary_folder const home;
    piped_chat chat(arguments, {home.path()});
    return chat.finish(input);
}

outcome run_on(std::span<std::byte const> file, std::vector<std::string> arguments, std::string_view input = {})
{
    temporary_file const model(file);
    arguments.insert(arguments.begin(), {"--model", model.path().string()});
    return run(arguments, input);
}

outcome answer_on(gguf_writer const& model)
{
    return run_on(model.bytes(), {"--prompt", "hello"});
}

/// One clear line on standard error, in which all of `parts` are, nothing on standard output, and the status.
void check_fails(outcome const& r, int status, std::vector<std::string> const& parts)
{
    CAPTURE(r.error);
    CHECK(r.status == status);
    CHECK(r.output == "");
    CHECK(r.error.starts_with("plait-chat: "));
    CHECK(std::count(r.error.begin(), r.error.end(), '\n') == 1);
    CHECK(r.error.ends_with('\n'));
    CHECK(std::none_of(r.error.begin(), r.error.end() - 1, [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
    for (auto const& part : parts)
        CHECK_MESSAGE(r.error.find(part) != std::string::npos, part);
}

} // namespace

TEST_CASE("a model file that is not there is named")
{
    check_fails(run({"--model", "/nonexistent/model.gguf", "--prompt", "hello"}), 1, {"/nonexistent/model.gguf"});
    check_fails(run({"--model", "/nonexistent/model.gguf", "--plan"}), 1, {"/nonexistent/model.gguf"});
}

TEST_CASE("a folder is no model")
{
    temporary_folder const folder;
    check_fails(run({"--model", folder.path().string(), "--prompt", "hello"}), 1, {folder.path().string()});
}

TEST_CASE("a file that is not GGUF is refused")
{
    std::string const text = "These are not the weights that you are looking for.";
    check_fails(run_on(std::as_bytes(std::span(text)), {"--prompt", "hello"}), 1, {"not a GGUF file"});
    check_fails(run_on({}, {"--prompt", "hello"}), 1, {"not a GGUF file"});
}

TEST_CASE("a truncated file is refused wherever it is cut")
{
    auto const whole = tiny_model_bytes();
    for (std::size_t const size :
         {std::size_t{6}, std::size_t{30}, whole.size() / 20, whole.size() / 2, whole.size() - 1})
        check_fails(run_on(std::span(whole).first(size), {"--prompt", "hello"}), 1, {});
}

TEST_CASE("a missing tensor is named")
{
    auto model = tiny_model();
    model.erase_tensor("blk.1.ffn_up.weight");
    check_fails(answer_on(model), 1, {"blk.1.ffn_up.weight"});
}

TEST_CASE("a tensor of the wrong shape is named")
{
    auto model = tiny_model();
    model.at("blk.0.attn_k.weight").dims = {32, 64};
    check_fails(answer_on(model), 1, {"blk.0.attn_k.weight"});
}

TEST_CASE("an architecture that is not known is named, and cannot steer the terminal")
{
    auto model = tiny_model();
    model.set("general.architecture", "perceptron");
    check_fails(answer_on(model), 1, {"perceptron"});
    model.set("general.architecture", "\033[2Jrosenblatt\n");
    check_fails(answer_on(model), 1, {"rosenblatt"});
}

TEST_CASE("a prompt longer than the context is refused with both numbers")
{
    std::string const words(2000, 'x');
    check_fails(run_on(tiny_model_bytes(), {"--prompt", words}), 1, {"prompt", "context of 256"});
    check_fails(run_on(tiny_model_bytes(), {}, words), 1, {"prompt", "context of 256"});
}

TEST_CASE("standard input that is not UTF-8 is refused with the place")
{
    check_fails(run_on(tiny_model_bytes(), {}, "hello \xff"), 1, {"standard input", "UTF-8", "byte 6"});
    check_fails(run_on(tiny_model_bytes(), {}, "cut \xe2\x82"), 1, {"standard input", "UTF-8", "byte 4"});
    check_fails(run_on(tiny_model_bytes(), {}, "\xed\xa0\x80"), 1, {"standard input", "UTF-8", "byte 0"});
}

TEST_CASE("standard input without a prompt is refused")
{
    check_fails(run_on(tiny_model_bytes(), {}, ""), 1, {"standard input"});
    check_fails(run_on(tiny_model_bytes(), {}, "\n"), 1, {"standard input"});
}

TEST_CASE("a wrong command line is refused with status 2 before the model is looked at")
{
    auto const refused = [](std::vector<std::string> arguments, char const* named) {
        arguments.insert(arguments.begin(), {"--model", "/nonexistent/model.gguf", "--prompt", "hello"});
        check_fails(run(arguments), 2, {named});
    };
    refused({"--threads", "0"}, "--threads");
    refused({"--temperature", "nan"}, "--temperature");
    refused({"--temperature=-1"}, "--temperature");
    refused({"--top-k=-5"}, "--top-k");
    refused({"--top-p", "0"}, "--top-p");
    refused({"--top-p", "1.5"}, "--top-p");
    refused({"--min-p", "1.01"}, "--min-p");
    refused({"--repetition-penalty", "0"}, "--repetition-penalty");
    refused({"--max-tokens", "0"}, "--max-tokens");
    refused({"--kv", "f8"}, "--kv");
    refused({"--memory", "lots"}, "--memory");
    refused({"--nonsense"}, "--nonsense");
    check_fails(run({"--prompt", "hello"}), 2, {"--model"});
}

TEST_CASE("a context that the model was not made for is refused with both numbers")
{
    check_fails(run_on(tiny_model_bytes(), {"--prompt", "hello", "--context", "100000"}), 1, {"100000", "256"});
}

TEST_CASE("memory that is too small is refused with the plan")
{
    for (auto const& arguments : {std::vector<std::string>{"--prompt", "hello"}, {"--plan"}}) {
        auto all = arguments;
        all.insert(all.end(), {"--memory", "100KiB"});
        auto const r = run_on(tiny_model_bytes(), all);
        CAPTURE(r.error);
        CHECK(r.status == 1);
        CHECK(r.output == "");
        CHECK(r.error.starts_with("plait-chat: "));
        for (auto const* part : {"layers", "KV cache", "total", "100 KiB"})
            CHECK_MESSAGE(r.error.find(part) != std::string::npos, part);
    }
}

TEST_CASE("a chat template that fails is a failure with its reason")
{
    auto model = tiny_model();
    model.set("tokenizer.chat_template", "{{ raise_exception('no talking') }}");
    check_fails(answer_on(model), 1, {"no talking"});
    model.set("tokenizer.chat_template", "{% if %}");
    check_fails(answer_on(model), 1, {"template"});
}
