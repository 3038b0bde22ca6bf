#include <plait/model/files/model_files.hpp>

#include <plait/actors/error.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;
using test::gguf_writer;
using test::temporary_folder;

namespace {

/// Part `number` of three, with one tensor called as the part; only the first has other metadata.
gguf_writer part(std::int32_t number)
{
    gguf_writer file;
    if (number == 0) {
        file.set("general.architecture", "sample");
        file.set("tokenizer.chat_template", "{{ x }}");
    }
    file.set("split.no", number);
    file.set("split.count", std::int32_t{3});
    file.set("split.tensors.count", std::int32_t{3});
    file.add("part" + std::to_string(number), {2}, ggml_type::f32,
             test::encode(ggml_type::f32, std::vector<float>{static_cast<float>(number), 1}));
    return file;
}

std::string name_of(int number)
{
    return "model-0000" + std::to_string(number + 1) + "-of-00003.gguf";
}

struct split_model {
    temporary_folder folder;
    std::filesystem::path first = folder.path() / name_of(0);

    split_model()
    {
        for (int i = 0; i < 3; ++i)
            write(i, part(i));
    }

    void write(int number, gguf_writer const& file) const { folder.write(name_of(number), file.bytes()); }

    void check_refused(errc code, std::initializer_list<char const*> parts) const
    {
        check_failure([&] { open_model(first); }, code, parts);
    }
};

} // namespace

TEST_CASE("a GGUF file is opened as one")
{
    temporary_folder const folder;
    gguf_writer file;
    file.set("tokenizer.chat_template", "{{ x }}");
    file.add("w", {2}, ggml_type::f32);
    auto const path = folder.write("model.gguf", file.bytes());
    model_files opened = open_model(path);
    model_files const model = std::move(opened);
    REQUIRE(model.gguf() != nullptr);
    CHECK(model.hf() == nullptr);
    CHECK(model.source() == path.string());
    CHECK(model.chat_template() == "{{ x }}");
    CHECK(model.tensors().tensor("w").bytes == 8);
    check_failure([&] { open_model(folder.path() / "none.gguf"); }, errc::not_found, {"none.gguf"});
    file.set("tokenizer.chat_template", 3.0f);
    folder.write("model.gguf", file.bytes());
    check_failure([&] { open_model(path).chat_template(); }, errc::bad_file, {"'tokenizer.chat_template': is f32"});
}

TEST_CASE("a Hugging Face folder is opened by its own name or its config's")
{
    temporary_folder const folder;
    test::safetensors_writer file;
    file.add("w", "F32", {1}, std::vector<std::byte>(4));
    folder.write("model.safetensors", file.bytes());
    folder.write("chat_template.jinja", "{{ y }}");
    auto const config = folder.write("config.json", R"({"model_type": "x"})");
    for (auto const& path : {folder.path(), config}) {
        auto const model = open_model(path);
        REQUIRE(model.hf() != nullptr);
        CHECK(model.gguf() == nullptr);
        CHECK(model.source() == folder.path().string());
        CHECK(model.chat_template() == "{{ y }}");
        CHECK(model.tensors().tensor("w").bytes == 4);
    }
}

TEST_CASE("a model in several GGUF files is opened by the first, and its tensors are one source")
{
    split_model const at;
    auto const model = open_model(at.first);
    REQUIRE(model.gguf() != nullptr);
    CHECK(model.gguf()->string("general.architecture") == "sample");
    REQUIRE(model.tensors().tensors().size() == 3);
    for (std::uint32_t i = 0; i < 3; ++i) {
        stored_tensor const& tensor = model.tensors().tensor("part" + std::to_string(i));
        CHECK(tensor.file == i);
        std::array<float, 2> values{};
        model.tensors().read(tensor, 0, std::as_writable_bytes(std::span(values)));
        CHECK(values[0] == static_cast<float>(i));
        std::memcpy(values.data(), model.gguf()->data(tensor).data(), sizeof values);
        CHECK(values[0] == static_cast<float>(i));
        model.gguf()->will_need(tensor);
        model.gguf()->release(tensor);
    }
    CHECK_NOTHROW(model.tensors().check_unchanged());
    auto const original = model.tensors().fingerprint();
    CHECK(open_model(at.first).tensors().fingerprint() == original);
    auto last = part(2);
    last.at("part2").data[0] ^= std::byte{1};
    at.write(2, last);
    CHECK(open_model(at.first).tensors().fingerprint() != original);
    std::filesystem::resize_file(at.folder.path() / name_of(2), 8);
    check_failure([&] { model.tensors().check_unchanged(); }, errc::io, {"00003-of-00003", "was changed"});
    std::array<std::byte, 8> bytes{};
    check_failure([&] { model.tensors().read(model.tensors().tensor("part2"), 0, bytes); }, errc::io, {"shortened"});
}

TEST_CASE("parts that do not belong together are refused by name")
{
    split_model const at;
    check_failure([&] { open_model(at.folder.path() / name_of(1)); }, errc::bad_file,
                  {"'split.no'", "this is part 2 of 3", "whose name ends in -00001-of-00003.gguf"});
    auto const renamed = at.folder.write("other.gguf", part(0).bytes());
    check_failure([&] { open_model(renamed); }, errc::bad_file, {"'split.count'", "must end in -00001-of-00003.gguf"});

    at.write(1, part(2));
    at.check_refused(errc::bad_file, {name_of(1).c_str(), "'split.no': is 2, expected 1"});
    auto wrong = part(1);
    wrong.set("split.count", std::int32_t{4});
    at.write(1, wrong);
    at.check_refused(errc::bad_file, {name_of(1).c_str(), "'split.count': is 4, but 3 in the first part"});
    wrong = part(1);
    wrong.tensors[0].name = "part0";
    at.write(1, wrong);
    at.check_refused(errc::bad_file, {name_of(1).c_str(), "tensor 'part0'", "an earlier part has it"});
    wrong = part(1);
    wrong.erase("split.no");
    at.write(1, wrong);
    at.check_refused(errc::bad_file, {name_of(1).c_str(), "'split.no': missing"});
    at.folder.write(name_of(1), "no");
    at.check_refused(errc::bad_file, {name_of(1).c_str(), "not a GGUF file"});
    std::filesystem::remove(at.folder.path() / name_of(1));
    at.check_refused(errc::not_found, {name_of(1).c_str()});

    at.write(1, part(1));
    wrong = part(0);
    wrong.set("split.tensors.count", std::int32_t{4});
    at.write(0, wrong);
    at.check_refused(errc::bad_file, {"'split.tensors.count'", "4 tensors, but the parts have 3"});
    wrong = part(0);
    wrong.set("split.count", std::int32_t{2000});
    at.write(0, wrong);
    at.check_refused(errc::bad_file, {"'split.count'", "2000 parts; at most 1024"});
}
