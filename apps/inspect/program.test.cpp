#include <plait/apps/inspect/checks.hpp>
#include <plait/apps/inspect/sheet.hpp>
#include <plait/apps/inspect/texts.hpp>

#include <plait/actors/error.hpp>
#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/temporary_folder.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <sys/wait.h>

using namespace plait;
using namespace plait::test;

namespace {

bool has(std::string const& text, std::string_view part)
{
    CAPTURE(text);
    CAPTURE(std::string(part));
    CHECK(text.find(part) != text.npos);
    return text.find(part) != text.npos;
}

model_files opened(gguf_writer const& model)
{
    temporary_file const file(model.bytes());
    return open_model(file.path()); // the mapping stays when the name goes
}

/// ChatGLM2 in small: a model whose file has no chat template, since its authors wrote the prompt in code.
gguf_writer tiny_chatglm()
{
    auto out = tiny_model();
    out.set("general.architecture", "chatglm");
    for (auto& entry : out.entries)
        if (entry.key.starts_with("llama.")) entry.key.replace(0, 5, "chatglm");
    out.set("chatglm.rope.dimension_count", std::uint32_t{8}); // of 16
    for (std::string const layer : {"blk.0.", "blk.1."}) {
        out.erase_tensor(layer + "ffn_gate.weight");
        out.erase_tensor(layer + "ffn_up.weight");
        out.add(layer + "ffn_up.weight", {64, 256}, ggml_type::f32); // both
    }
    out.erase("tokenizer.chat_template");
    return out;
}

/// plait-inspect as a script runs it: through a shell, with its outputs in files.
struct script {
    temporary_folder folder;
    int status = -1;
    std::string output, error;

    void run(std::string const& arguments, std::string_view input = {})
    {
        auto const in = folder.write("in", input);
        auto const out = folder.path() / "out", err = folder.path() / "err";
        auto const command = std::string(environment("PLAIT_BIN")) + "/plait-inspect " + arguments + " < " +
                             in.string() + " > " + out.string() + " 2> " + err.string();
        auto const ended = std::system(command.c_str());
        status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
        output = inspecting::read_input(out.string());
        error = inspecting::read_input(err.string());
    }
};

} // namespace

TEST_CASE("a sheet says what a model is")
{
    auto const files = opened(tiny_model());
    auto const model = inspecting::show_model(files);
    has(model, "width 64, vocabulary 320, context 256, output tied\n");
    has(model, "layers 0-1: pre rms 1e-05\n    attention 4 heads over 2 of 16");
    has(model, "\n    rope ");
    has(model, "\n    ffn 128 silu gated\n");
    auto const tensors = inspecting::show_tensors(files, true);
    has(tensors, "token_embd.weight");
    has(tensors, "[64, 320] 81920\n");
    CHECK(std::count(tensors.begin(), tensors.end(), '\n') ==
          2 + static_cast<std::ptrdiff_t>(files.tensors().tensors().size()));
    has(inspecting::show_tensors(files, false), "F32");
    auto const metadata = inspecting::show_metadata(files);
    has(metadata, "llama.block_count");
    has(metadata, "… 320 in all]");
    auto const text = inspecting::show_text(files);
    has(text, "byte-level BPE, ");
    has(text, "2 \"<|im_end|>\"");
    has(text, "chat template: ");
}

TEST_CASE("a sheet shows what plait does not run, and nothing that files say moves a cursor")
{
    auto strange = tiny_model();
    strange.set("general.architecture", std::string("no\x1b[2Jsuch"));
    auto const files = opened(strange);
    auto const model = inspecting::show_model(files);
    has(model, "plait does not run this model: ");
    auto const all =
        model + inspecting::show_tensors(files, true) + inspecting::show_metadata(files) + inspecting::show_text(files);
    has(all, "no\\x1b[2Jsuch");
    CHECK(
        std::none_of(all.begin(), all.end(), [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 0x20; }));
}

TEST_CASE("folders and files of every family are shown and found in order")
{
    for (auto const* name : {"llama", "gemma2", "phi3", "qwen3"}) {
        auto const folder = test_data("families") / name;
        for (auto const& path : {folder, folder / "model.gguf"}) {
            CAPTURE(path);
            auto const files = open_model(path);
            CHECK(inspecting::show_model(files).find("does not run") == std::string::npos);
            CHECK(!inspecting::show_metadata(files).empty());
            auto const found = inspecting::check_all(files);
            // Their tokenizers can't spell every byte (tests/data/families/README.md).
            REQUIRE(found.findings.size() == 1);
            has(found.findings[0], "no token for the character '['");
        }
    }
}

TEST_CASE("a check finds values that are not finite, and a template that can't be read")
{
    CHECK(inspecting::check_all(opened(tiny_model())).findings.empty());
    auto broken = tiny_model();
    auto& values = broken.at("blk.1.ffn_norm.weight").data;
    auto const infinite = std::numeric_limits<float>::infinity();
    std::copy_n(reinterpret_cast<std::byte const*>(&infinite), sizeof infinite, values.begin() + 8);
    std::copy_n(reinterpret_cast<std::byte const*>(&infinite), sizeof infinite, values.end() - 4);
    broken.set("tokenizer.chat_template", std::string("{% if %}"));
    auto const found = inspecting::check_all(opened(broken));
    CHECK(found.checked.size() == 5);
    REQUIRE(found.findings.size() == 2);
    CHECK(found.findings[0] == "tensor blk.1.ffn_norm.weight: 2 of 64 values are not finite");
    has(found.findings[1], "chat template: ");
}

TEST_CASE("ids are read as people write them")
{
    CHECK(inspecting::read_ids("1 2\n3") == std::vector<std::int32_t>{1, 2, 3});
    CHECK(inspecting::read_ids("[1, 2,3]\n") == std::vector<std::int32_t>{1, 2, 3});
    CHECK(inspecting::read_ids("").empty());
    check_failure([] { inspecting::read_ids("1 x2"); }, errc::invalid_argument, {"id 1", "'x2'"});
    check_failure([] { inspecting::read_ids("9999999999"); }, errc::invalid_argument, {"id 0"});
    check_failure([] { inspecting::read_input("/nonexistent/text"); }, errc::not_found, {"/nonexistent/text"});
}

TEST_CASE("the program answers a script")
{
    script s;
    auto const model = s.folder.write("model.gguf", tiny_model_bytes()).string();
    s.run(model);
    CHECK(s.status == 0);
    CHECK(s.error == "");
    has(s.output, "layers 0-1: pre rms");
    s.run(model + " --check");
    CHECK(s.status == 0);
    has(s.output, "nothing is wrong\n");

    s.run(model + " --tokenize -", "hello <|im_end|>\n");
    CHECK(s.status == 0);
    auto const ids = s.output;
    CHECK(std::count(ids.begin(), ids.end(), '\n') == 1);
    s.run(model + " --detokenize", ids);
    CHECK(s.output == "hello <|im_end|>\n");
    s.run(model + " --tokenize - --special", "<|im_end|>");
    CHECK(s.output == "2\n");

    auto const messages = R"([{"role": "user", "content": "hi"}])";
    s.run(model + " --render -", messages);
    CHECK(s.status == 0);
    has(s.output, "<|im_start|>user\nhi<|im_end|>\n");
    CHECK(s.output.ends_with("<|im_start|>assistant\n"));
    auto const other = s.folder.write("t.jinja", "{{ bos_token }}{{ x }}{{ messages[0].content }}{{ tools|length }}"
                                                 "{{ strftime_now('%Y') }}");
    auto const tools = s.folder.write("tools.json", R"([{"type": "function"}])");
    s.run(model + " --render - --bos B --extra '{\"x\": 7}' --now 2026-11-30 --template " + other.string() +
              " --tools " + tools.string(),
          messages);
    CHECK(s.error == "");
    CHECK(s.output == "B7hi12026");

    std::string const words = std::string(40, 'x') + " and some more words";
    s.run(model + " --score - --context 16", words);
    CHECK(s.status == 0);
    CHECK(s.output.starts_with("perplexity "));
    auto const traced = s.folder.path() / "trace.json";
    s.run(model + " --score - --context 16 --trace " + traced.string(), words);
    CHECK(s.status == 0);
    has(inspecting::read_input(traced.string()), "\"name\":\"request\"");
    auto const unchanged = s.output;
    s.run(model + " --score - --context 16 --rope-base 50", words);
    CHECK(s.output.starts_with("perplexity "));
    CHECK(s.output != unchanged);
    s.run(model + " --rope-base 50 --rope-scaling linear --rope-factor 4");
    has(s.output, "context 1024");
    has(s.output, "base 50");
}

TEST_CASE("a model whose prompt its authors wrote in code has plait's template")
{
    script s;
    auto const model = s.folder.write("model.gguf", tiny_chatglm().bytes()).string();
    s.run(model + " --render -", R"([{"role": "user", "content": "hi"}])");
    CHECK(s.status == 0);
    CHECK(s.error == "");
    CHECK(s.output == "[Round 1]\n\n\xe9\x97\xae\xef\xbc\x9ahi\n\n\xe7\xad\x94\xef\xbc\x9a");
    s.run(model);
    has(s.output, "chat template: plait's own\n");

    auto none = tiny_model();
    none.erase("tokenizer.chat_template");
    for (auto const* const architecture : {"llama", "nosuch"}) {
        none.set("general.architecture", std::string(architecture));
        auto const other = s.folder.write("none.gguf", none.bytes()).string();
        s.run(other + " --render -", "[]");
        CHECK(s.status == 1);
        has(s.error, "there is no chat template");
        s.run(other);
        has(s.output, "chat template: none\n");
    }
}

TEST_CASE("what goes wrong is one line, and the exit status")
{
    script s;
    auto const model = s.folder.write("model.gguf", tiny_model_bytes()).string();
    auto const fails = [&](std::string const& arguments, std::string_view input, int status, std::string_view part) {
        s.run(arguments, input);
        CAPTURE(arguments);
        CHECK(s.status == status);
        CHECK(s.error.starts_with("plait-inspect: "));
        CHECK(std::count(s.error.begin(), s.error.end(), '\n') == 1);
        has(s.error, part);
    };
    fails("/nonexistent/model.gguf", "", 1, "/nonexistent/model.gguf");
    fails(model + " --detokenize", "320", 1, "320");
    fails(model + " --render -", "{", 1, "messages");
    fails(model + " --score - --context 16", "short", 1, "window of 16");
    fails(model + " --score - --context 512", std::string(3000, 'x'), 1, "context");
    fails(model + " --nonsense", "", 2, "--nonsense");
    fails(model + " --rope-scaling yarn", "", 1, "rope_factor: missing");
    auto broken = tiny_model();
    auto& values = broken.at("output_norm.weight").data;
    std::fill(values.begin(), values.end(), std::byte{0xff});
    auto const bad = s.folder.write("bad.gguf", broken.bytes()).string();
    fails(bad + " --check", "", 1, "output_norm.weight: 64 of 64 values are not finite");
    has(s.output, "1 findings\n");
}
