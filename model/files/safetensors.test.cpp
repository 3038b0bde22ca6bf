#include <plait/model/files/safetensors.hpp>

#include <plait/actors/error.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;
using test::safetensors_writer;

namespace {

constexpr std::uint64_t huge = std::uint64_t{1} << 62;

std::vector<std::byte> floats(std::vector<float> const& values)
{
    return test::encode(ggml_type::f32, values);
}

/// A small well-formed file.
safetensors_writer sample()
{
    safetensors_writer file;
    file.add("first", "F32", {2, 3}, floats({1, 2, 3, 4, 5, 6}));
    file.add("second", "BF16", {4}, std::vector<std::byte>(8, std::byte{1}));
    file.add("third", "U8", {2, 1, 5}, std::vector<std::byte>(10, std::byte{2}));
    return file;
}

void check_refused(std::vector<std::byte> const& bytes, errc code, std::initializer_list<char const*> parts)
{
    check_failure([&] { safetensors_file::parse(bytes, "file"); }, code, parts);
}

void check_refused(safetensors_writer const& file, std::initializer_list<char const*> parts)
{
    check_refused(file.bytes(), errc::bad_file, parts);
}

/// The sample with one change.
template<class Change>
safetensors_writer with(Change change)
{
    safetensors_writer file = sample();
    change(file.tensors[1]);
    return file;
}

void check_header_refused(std::string_view header, std::initializer_list<char const*> parts)
{
    CAPTURE(header);
    check_refused(safetensors_writer().bytes(header), errc::bad_file, parts);
}

} // namespace

TEST_CASE("a well-formed safetensors file gives back what was written, columns first")
{
    std::vector<std::byte> const bytes = sample().bytes();
    safetensors_file const file = safetensors_file::parse(bytes, "file");
    REQUIRE(file.tensors().size() == 3);
    stored_tensor const& first = file.tensor("first");
    CHECK(first.type == ggml_type::f32);
    CHECK(shape(first) == "[3, 2]");
    CHECK(first.cols() == 3);
    CHECK(first.rows() == 2);
    CHECK(first.bytes == 24);
    std::array<float, 2> part{};
    file.read(first, 16, std::as_writable_bytes(std::span(part)));
    CHECK(part == std::array<float, 2>{5, 6});
    CHECK(file.format(first) == weight_format::f32);
    CHECK(file.format(file.tensor("second")) == weight_format::bf16);
    CHECK(shape(file.tensor("third")) == "[5, 1, 2]");
    CHECK(file.find_tensor("fourth") == nullptr);
    check_failure([&] { file.tensor("fourth"); }, errc::bad_file, {"file: tensor 'fourth': missing"});
    check_failure([&] { file.read(first, 20, std::as_writable_bytes(std::span(part))); }, errc::invalid_argument,
                  {"tensor 'first'", "not inside its 24"});
}

TEST_CASE("types that cannot be computed with are listed, and refused by name when asked for")
{
    for (auto const& [dtype, bytes] :
         {std::pair{"U8", 1}, std::pair{"BOOL", 1}, std::pair{"I8", 1}, std::pair{"I16", 2}, std::pair{"I32", 4},
          std::pair{"I64", 8}, std::pair{"U16", 2}, std::pair{"U32", 4}, std::pair{"U64", 8}, std::pair{"F64", 8},
          std::pair{"F8_E4M3", 1}, std::pair{"F8_E5M2", 1}}) {
        safetensors_writer file;
        file.add("odd", dtype, {3}, std::vector<std::byte>(static_cast<std::size_t>(3 * bytes)));
        auto const image = file.bytes();
        auto const opened = safetensors_file::parse(image);
        CHECK(type_name(opened.tensor("odd")) == dtype);
        check_failure([&] { opened.format(opened.tensor("odd")); }, errc::unsupported, {"tensor 'odd': type ", dtype});
    }
    check_refused(with([](auto& t) { t.dtype = "F4"; }).bytes(), errc::unsupported, {"'second'", "unknown type 'F4'"});
}

TEST_CASE("a scalar is a tensor of one, and leading dimensions past four are taken as one")
{
    safetensors_writer file;
    file.add("scalar", "F32", {}, floats({7}));
    file.add("six", "F32", {2, 1, 3, 1, 1, 2}, floats(std::vector<float>(12)));
    auto const bytes = file.bytes();
    auto const opened = safetensors_file::parse(bytes);
    CHECK(shape(opened.tensor("scalar")) == "[1]");
    CHECK(shape(opened.tensor("six")) == "[2, 1, 1, 6]");
}

TEST_CASE("tensors come in the order of their bytes, whatever that of the header, and padding is spaces")
{
    safetensors_writer data;
    data.rest.resize(12);
    auto const bytes = data.bytes(R"({"b":{"data_offsets":[4,12],"shape":[2],"dtype":"F32"},)"
                                  R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )");
    auto const file = safetensors_file::parse(bytes);
    CHECK(file.tensors()[0].name == "a");
    CHECK(file.tensors()[1].name == "b");
}

TEST_CASE("a header length that is none is refused")
{
    check_refused(std::vector<std::byte>(), errc::bad_file, {"has 0 bytes", "not a safetensors file"});
    check_refused(std::vector<std::byte>(7), errc::bad_file, {"has 7 bytes"});
    std::string const header = sample().header();
    check_refused(sample().bytes(header, 0), errc::bad_file, {"header length: is 0"});
    check_refused(sample().bytes(header, 100'000'001), errc::bad_file, {"header length: 100000001 bytes; at most"});
    check_refused(sample().bytes(header, std::numeric_limits<std::uint64_t>::max()), errc::bad_file,
                  {"header length: 18446744073709551615"});
    check_refused(sample().bytes(header, 99'999'999), errc::bad_file, {"header length: 99999999", "truncated?"});
    check_refused(sample().bytes(header, header.size() - 1), errc::bad_file, {"expected '}'"});
    check_refused(sample().bytes(header, header.size() + 1), errc::bad_file, {"after the 41 bytes"});
}

TEST_CASE("a header that is not a table of tensors is refused")
{
    check_header_refused(" {}", {"does not begin with '{'"});
    check_header_refused("[]", {"does not begin with '{'"});
    check_header_refused("{", {"header: byte 1"});
    check_header_refused("{}x", {"header: byte 2", "more text"});
    check_header_refused(std::string_view("{}\0", 3), {"header: byte 2", "more text"});
    check_header_refused(R"({"a":1})", {"tensor 'a'", "a number where none belongs"});
    check_header_refused(R"({"a":"x"})", {"tensor 'a'", "a string where none belongs"});
    check_header_refused(R"({"a":[]})", {"tensor 'a'", "an array where none belongs"});
    check_header_refused(R"({"a":null})", {"tensor 'a'", "null"});
    check_header_refused(R"({"a":true})", {"tensor 'a'", "a boolean"});
    check_header_refused(R"({"":{}})", {"a name is empty"});
    check_header_refused(R"({"a\u0000b":{}})", {"holds a NUL byte"});
    check_header_refused(R"({")" + std::string(1025, 'n') + R"(":{}})", {"longer than 1024 bytes"});
    check_header_refused(R"({"a":{}})", {"tensor 'a'", "has no dtype"});
    check_header_refused(R"({"a":{"dtype":"F32"}})", {"tensor 'a'", "has no shape"});
    check_header_refused(R"({"a":{"dtype":"F32","shape":[]}})", {"tensor 'a'", "has no data_offsets"});
    check_header_refused(R"({"a":{"dtype":1}})", {"tensor 'a'", "a number where none belongs"});
    check_header_refused(R"({"a":{"dtype":[]}})", {"tensor 'a'", "an array where none belongs"});
    check_header_refused(R"({"a":{"shape":"2"}})", {"tensor 'a'", "a string where none belongs"});
    check_header_refused(R"({"a":{"shape":{}}})", {"tensor 'a'", "an object where none belongs"});
    check_header_refused(R"({"a":{"shape":[-1]}})", {"tensor 'a'", "shape: -1 is negative"});
    check_header_refused(R"({"a":{"shape":[1.5]}})", {"tensor 'a'", "not a whole one"});
    check_header_refused(R"({"a":{"shape":[9223372036854775808]}})", {"tensor 'a'", "63 bits"});
    check_header_refused(R"({"a":{"shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}})", {"shape: more than 16 numbers"});
    check_header_refused(R"({"a":{"stride":[1]}})", {"tensor 'a'", "unknown field 'stride'"});
    check_header_refused(R"({"__metadata__":{"a":1}})", {"__metadata__", "a number where none belongs"});
    check_header_refused(R"({"__metadata__":{"a":{}}})", {"__metadata__", "an object where none belongs"});
    check_header_refused(R"({"__metadata__":[]})", {"__metadata__", "an array where none belongs"});
}

TEST_CASE("duplicate keys and deep nesting are refused")
{
    check_header_refused(R"({"a":{"dtype":"F32","dtype":"F16"}})", {"key 'dtype' appears twice"});
    check_header_refused(R"({"__metadata__":{"a":"","a":""}})", {"key 'a' appears twice"});
    safetensors_writer file = sample();
    file.tensors[2].name = "first";
    check_refused(file, {"key 'first' appears twice"});
    check_header_refused(R"({"a":{"shape":[[1]]}})", {"nested deeper than 3 levels"});
    check_header_refused(R"({"a":{"shape":)" + std::string(50'000, '[') + "}}", {"nested deeper than 3 levels"});
}

TEST_CASE("more tensors than any model has are refused")
{
    std::string header = "{";
    for (int i = 0; i <= 131072; ++i)
        header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"I8","shape":[],"data_offsets":[0,1]})";
    safetensors_writer file;
    file.rest.resize(1);
    check_refused(file.bytes(header + "}"), errc::bad_file, {"more than 131072 tensors"});
}

TEST_CASE("types, shapes and offsets that contradict each other are refused")
{
    check_refused(with([](auto& t) { t.shape = {5}; }), {"'second'", "8 bytes", "need 10"});
    check_refused(with([](auto& t) { t.dtype = "F32"; }), {"'second'", "8 bytes", "need 16"});
    check_refused(with([](auto& t) { t.shape = {huge}; }), {"'second'", "size in bytes overflows"});
    check_refused(with([](auto& t) { t.shape = {1u << 31, 1u << 31, 4}; }), {"'second'", "size in bytes overflows"});
    check_refused(with([](auto& t) { t.begin = 33; }), {"'second'", "begin 33 is after end 32"});
    check_refused(with([](auto& t) { t.end = 43; }), {"'second'", "end 43 is after the 42 bytes"});
    check_refused(with([](auto& t) { t.end = huge; }), {"'second'", "truncated?"});
    check_refused(with([](auto& t) { t.shape = {0}; }).bytes(), errc::unsupported, {"'second'", "no elements"});
    check_header_refused(R"({"a":{"dtype":"I8","shape":[],"data_offsets":[0]}})", {"'a'", "1 numbers, expected 2"});
    check_header_refused(R"({"a":{"dtype":"I8","shape":[],"data_offsets":[0,1,2]}})", {"3 numbers, expected 2"});
}

TEST_CASE("holes, overlaps and a rest are refused")
{
    auto const moved = [](std::uint64_t begin) {
        return with([&](auto& t) {
            t.begin = begin;
            t.end = begin + 8;
        });
    };
    check_refused(moved(23), {"'second'", "begins at byte 23", "ends at byte 24", "an overlap"});
    check_refused(moved(25), {"'second'", "begins at byte 25", "ends at byte 24", "a hole"});
    check_refused(moved(0), {"an overlap"});
    safetensors_writer file = sample();
    file.rest.resize(1);
    check_refused(file, {"end at byte 42", "has 43 bytes"});
    file = sample();
    file.tensors.pop_back();
    file.rest.resize(10);
    check_refused(file, {"end at byte 32", "has 42 bytes"});
}

TEST_CASE("every shorter piece of a safetensors file is refused")
{
    std::vector<std::byte> const bytes = sample().bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        std::vector<std::byte> const piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        CAPTURE(length);
        REQUIRE(test::failure_of([&] { safetensors_file::parse(piece); }).code == errc::bad_file);
    }
}

TEST_CASE("a safetensors file on disk is read without a mapping, and one that changes is an error")
{
    test::temporary_file const on_disk(sample().bytes(), ".safetensors");
    safetensors_file opened = safetensors_file::open(on_disk.path());
    safetensors_file const file = std::move(opened);
    std::array<float, 6> values{};
    file.read(file.tensor("first"), 0, std::as_writable_bytes(std::span(values)));
    CHECK(values == std::array<float, 6>{1, 2, 3, 4, 5, 6});
    CHECK_NOTHROW(file.check_unchanged());
    auto const bytes = sample().bytes();
    CHECK(file.fingerprint() == safetensors_file::parse(bytes).fingerprint());

    std::filesystem::resize_file(on_disk.path(), 16);
    check_failure([&] { file.read(file.tensor("first"), 0, std::as_writable_bytes(std::span(values))); }, errc::io,
                  {"shortened"});
    check_failure([&] { file.check_unchanged(); }, errc::io, {"was changed"});
    check_failure([&] { safetensors_file::open(on_disk.path()); }, errc::bad_file, {"truncated?"});
    check_failure([&] { safetensors_file::open(on_disk.path().string() + ".none"); }, errc::not_found, {".none"});
}

TEST_CASE("the fingerprint of a safetensors file follows its header and its weights")
{
    auto const fingerprint = [](safetensors_writer const& file) {
        auto const bytes = file.bytes();
        return safetensors_file::parse(bytes).fingerprint();
    };
    auto const original = fingerprint(sample());
    CHECK(fingerprint(sample()) == original);
    CHECK(fingerprint(with([](auto& t) { t.data[3] ^= std::byte{1}; })) != original);
    CHECK(fingerprint(with([](auto& t) { t.name = "another"; })) != original);
}

TEST_CASE("twenty thousand mutations of a safetensors file are read or refused, never worse")
{
    std::vector<std::byte> const original = sample().bytes();
    std::mt19937_64 random(20260823);
    auto const below = [&](std::uint64_t bound) { return static_cast<std::size_t>(random() % bound); };
    int read = 0;
    int refused = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> bytes = original;
        for (std::size_t changes = 1 + below(2); changes != 0; --changes) {
            auto const at = static_cast<std::ptrdiff_t>(below(bytes.size()));
            switch (below(4)) {
            case 0:
                bytes[static_cast<std::size_t>(at)] ^= std::byte{1} << below(8);
                break;
            case 1:
                bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>("0123456789{}[],:\"\\ "[below(19)]);
                break;
            case 2:
                bytes.erase(bytes.begin() + at);
                break;
            case 3:
                bytes.insert(bytes.begin() + at, bytes[below(bytes.size())]);
                break;
            }
        }
        bytes.shrink_to_fit(); // a read past the end must leave the block
        try {
            auto const file = safetensors_file::parse(bytes);
            file.fingerprint();
            ++read;
        } catch (error const&) {
            ++refused;
        }
    }
    CHECK(read > 500);
    CHECK(refused > 500);
    CHECK(read + refused == 20'000);
    MESSAGE(read << " read, " << refused << " refused");
}
