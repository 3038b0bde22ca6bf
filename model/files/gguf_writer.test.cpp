#include <plait/model/files/gguf_writer.hpp>

#include <plait/actors/error.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;
using test::temporary_folder;

namespace {

gguf_metadata keys()
{
    gguf_metadata out;
    out.set("general.architecture", "sample");
    out.set("a.number", std::uint32_t{7});
    out.set("a.list", std::vector<std::string>{"one", "", "three"});
    return out;
}

std::vector<gguf_tensor> table()
{
    return {{"first", {3, 2}, ggml_type::f32}, {"second", {32}, ggml_type::q8_0}, {"third", {5}, ggml_type::f16}};
}

std::vector<std::byte> data(std::size_t bytes)
{
    std::vector<std::byte> out(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        out[i] = static_cast<std::byte>(i * 7 + bytes);
    return out;
}

std::size_t files_in(std::filesystem::path const& folder)
{
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

} // namespace

TEST_CASE("a written GGUF file is read back, whatever pieces its tensors came in")
{
    temporary_folder const folder;
    auto const path = folder.path() / "model.gguf";
    for (std::size_t const piece : {1u, 7u, 1000u}) {
        gguf_writer writer(path, keys(), table());
        for (gguf_tensor const& tensor : table()) {
            auto const all = data(tensor.bytes());
            for (std::size_t at = 0; at < all.size(); at += piece)
                writer.write(std::span(all).subspan(at, std::min(piece, all.size() - at)));
        }
        writer.finish();
        CHECK(files_in(folder.path()) == 1);
        auto const file = gguf_file::open(path);
        CHECK(file.version() == 3);
        CHECK(file.u32("a.number") == 7);
        CHECK(file.strings("a.list").at(2) == "three");
        REQUIRE(file.tensors().size() == 3);
        CHECK(shape(file.tensor("first")) == "[3, 2]");
        CHECK(file.tensor("second").type == ggml_type::q8_0);
        for (stored_tensor const& tensor : file.tensors()) {
            auto const expected = data(tensor.bytes);
            auto const found = file.data(tensor);
            CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
        }
    }
}

TEST_CASE("the writer gives the bytes that the tests' independent layout gives")
{
    temporary_folder const folder;
    auto const path = folder.path() / "model.gguf";
    gguf_writer writer(path, keys(), table());
    test::gguf_writer expected;
    expected.entries = keys().entries;
    for (gguf_tensor const& tensor : table()) {
        writer.write(data(tensor.bytes()));
        expected.add(tensor.name, {tensor.dims.begin(), tensor.dims.end()}, tensor.type, data(tensor.bytes()));
    }
    writer.finish();
    std::ifstream in(path, std::ios::binary);
    std::string const written((std::istreambuf_iterator<char>(in)), {});
    auto bytes = expected.bytes();
    bytes.resize((bytes.size() + 31) / 32 * 32); // the last tensor is padded, too
    CHECK(std::ranges::equal(std::as_bytes(std::span(written)), bytes));
}

TEST_CASE("metadata is copied from another file as it lies there")
{
    test::gguf_writer original;
    original.set("string", "text");
    original.set("number", 0.5);
    original.set("flag", true);
    original.set("strings", std::vector<std::string>{"a", "bc"});
    original.set("floats", std::vector<float>{1, 2});
    auto const bytes = original.bytes();
    auto const file = gguf_file::parse(bytes);
    gguf_metadata copied;
    for (gguf_entry const& entry : file.metadata())
        copied.copy(entry);
    std::vector<std::byte> out;
    std::vector<std::byte> expected;
    copied.append_to(out);
    original.append_to(expected);
    CHECK(out == expected);
    CHECK(copied.has("flag"));
    copied.erase("flag");
    CHECK_FALSE(copied.has("flag"));
}

TEST_CASE("a file that is not finished leaves nothing, and what was there before stays")
{
    temporary_folder const folder;
    auto const path = folder.write("model.gguf", "before");
    {
        gguf_writer writer(path, keys(), table());
        writer.write(data(24));
        CHECK(files_in(folder.path()) == 2);
        check_failure([&] { writer.finish(); }, errc::invalid_argument, {"tensor 'second': is not whole"});
    }
    CHECK(files_in(folder.path()) == 1);
    CHECK(std::filesystem::file_size(path) == 6);
}

TEST_CASE("a piece that reaches into the next tensor is refused")
{
    temporary_folder const folder;
    gguf_writer writer(folder.path() / "model.gguf", keys(), table());
    check_failure([&] { writer.write(data(25)); }, errc::invalid_argument, {"'first'", "25 bytes where 24 are left"});
    writer.write(data(20));
    check_failure([&] { writer.write(data(5)); }, errc::invalid_argument, {"5 bytes where 4 are left"});
    writer.write(data(4));
    writer.write(data(34));
    writer.write(data(10));
    check_failure([&] { writer.write(data(1)); }, errc::invalid_argument, {"more data than its tensors take"});
    writer.finish();
    check_failure([&] { writer.finish(); }, errc::invalid_argument, {"finished already"});
}

TEST_CASE("a table that no GGUF file could have is refused before a file is made")
{
    temporary_folder const folder;
    auto const refused = [&](gguf_tensor const& tensor, char const* part) {
        check_failure([&] { gguf_writer(folder.path() / "model.gguf", keys(), {{"w", {1}, ggml_type::f32}, tensor}); },
                      errc::invalid_argument, {part});
    };
    refused({"", {1}, ggml_type::f32}, "has no name");
    refused({std::string(64, 'n'), {1}, ggml_type::f32}, "longer than 63 bytes");
    refused({"w", {1}, ggml_type::f32}, "'w': is there twice");
    refused({"x", {}, ggml_type::f32}, "1 to 4 dimensions");
    refused({"x", {1, 1, 1, 1, 1}, ggml_type::f32}, "1 to 4 dimensions");
    refused({"x", {4, 0}, ggml_type::f32}, "a dimension is 0");
    refused({"x", {std::int64_t{1} << 31, std::int64_t{1} << 31}, ggml_type::f32}, "is too large");
    refused({"x", {33}, ggml_type::q8_0}, "33 columns is not made of whole blocks of Q8_0");
    CHECK(files_in(folder.path()) == 0);
    check_failure([&] { gguf_writer(folder.path() / "no" / "model.gguf", keys(), table()); }, errc::io,
                  {"model.gguf.partial: cannot be written"});
}

TEST_CASE("a full disk is an error that names the file")
{
    if (!std::filesystem::exists("/dev/full")) return;
    temporary_folder const folder;
    std::filesystem::create_symlink("/dev/full", folder.path() / "model.gguf.partial");
    check_failure([&] { gguf_writer(folder.path() / "model.gguf", keys(), table()); }, errc::io,
                  {"cannot be written at byte 0"});
}
