#include <plait/model/files/gguf.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/model/families/family.hpp>

#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <sys/stat.h>

using namespace plait;
using test::gguf_writer;

namespace {

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

/// A small well-formed file with something of everything.
gguf_writer sample()
{
    gguf_writer file;
    file.set("general.architecture", "sample");
    file.set("a.u32", std::uint32_t{7});
    file.set("a.u64", std::uint64_t{1} << 40);
    file.set("a.i32", std::int32_t{-5});
    file.set("a.f32", 0.5f);
    file.set("a.f64", 0.25);
    file.set("a.bool", true);
    file.set("a.strings", std::vector<std::string>{"one", "", "three"});
    file.set("a.i32s", std::vector<std::int32_t>{1, -2, 3});
    file.set("a.f32s", std::vector<float>{1.5f, -2.5f});
    file.add("first", {32, 2}, ggml_type::q4_0);
    file.add("second", {3}, ggml_type::f32, test::encode(ggml_type::f32, std::vector<float>{1, 2, 3}));
    file.add("third", {256, 1, 2}, ggml_type::q6_k);
    return file;
}

/// What parsing `bytes` throws: its code, and its text for CHECK_CONTAINS.
struct refusal {
    std::optional<errc> code;
    std::string text;
};

refusal refuse(std::span<std::byte const> bytes)
{
    try {
        gguf_file::parse(bytes, "file");
    } catch (error const& failure) {
        return {failure.condition(), failure.what()};
    }
    return {};
}

void check_refused(std::span<std::byte const> bytes, errc code, std::initializer_list<char const*> parts)
{
    refusal const got = refuse(bytes);
    CAPTURE(got.text);
    REQUIRE(got.code.has_value());
    CHECK(*got.code == code);
    for (char const* part : parts) {
        CAPTURE(part);
        CHECK(got.text.find(part) != std::string::npos);
    }
}

void check_refused(gguf_writer const& file, std::initializer_list<char const*> parts)
{
    check_refused(file.bytes(), errc::bad_file, parts);
}

template<class F>
refusal failure_of(F&& f)
{
    try {
        f();
    } catch (error const& failure) {
        return {failure.condition(), failure.what()};
    }
    return {};
}

/// A value of one array: element type, count, payload.
std::vector<std::byte> array_value(std::uint32_t element, std::uint64_t count, std::size_t payload)
{
    std::vector<std::byte> value;
    test::append(value, element);
    test::append(value, count);
    value.resize(value.size() + payload);
    return value;
}

std::vector<std::byte> to_bytes(std::string_view text)
{
    auto const bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
}

} // namespace

TEST_CASE("a well-formed file gives back what was written")
{
    std::vector<std::byte> const bytes = sample().bytes();
    gguf_file const file = gguf_file::parse(bytes);
    CHECK(file.version() == 3);
    CHECK(file.size() == bytes.size());
    CHECK(file.metadata().size() == 10);
    CHECK(file.metadata()[0].key == "general.architecture");
    CHECK(file.string("general.architecture") == "sample");
    CHECK(file.u32("a.u32") == 7);
    CHECK(file.u64("a.u32") == 7);
    CHECK(file.u64("a.u64") == std::uint64_t{1} << 40);
    CHECK(file.f32("a.f32") == 0.5f);
    CHECK(file.f32("a.f64") == 0.25f);
    CHECK(file.boolean("a.bool"));
    CHECK(file.strings("a.strings") == std::vector<std::string_view>{"one", "", "three"});
    CHECK(file.i32s("a.i32s") == std::vector<std::int32_t>{1, -2, 3});
    CHECK(file.f32s("a.f32s") == std::vector<float>{1.5f, -2.5f});
    CHECK(file.find_entry("a.strings")->type == gguf_type::array);
    CHECK(file.find_entry("a.strings")->element == gguf_type::string);
    CHECK(file.find_entry("a.strings")->count == 3);
    CHECK_FALSE(file.has("a.u3"));
    CHECK(file.u32("missing", 9) == 9);
    CHECK(file.u32("a.u32", 9) == 7);
    CHECK(file.f32("missing", 2.0f) == 2.0f);
    CHECK(file.boolean("missing", true));
    CHECK(file.string("missing", "none") == "none");

    REQUIRE(file.tensors().size() == 3);
    stored_tensor const& first = file.tensor("first");
    CHECK(first.type == ggml_type::q4_0);
    CHECK(first.cols() == 32);
    CHECK(first.rows() == 2);
    CHECK(first.bytes == 36);
    CHECK(first.offset % 32 == 0);
    CHECK(shape(first) == "[32, 2]");
    CHECK(file.find_tensor("fourth") == nullptr);
    CHECK(file.tensor("third").rank == 3);
    CHECK(file.tensor("third").rows() == 2);
    CHECK(file.tensor("third").bytes == 420);

    std::array<float, 3> values{};
    std::memcpy(values.data(), file.data(file.tensor("second")).data(), sizeof values);
    CHECK(values == std::array<float, 3>{1, 2, 3});
    std::array<float, 2> part{};
    file.read(file.tensor("second"), 4, std::as_writable_bytes(std::span(part)));
    CHECK(part == std::array<float, 2>{2, 3});
}

TEST_CASE("version 2 is read like version 3")
{
    gguf_writer file = sample();
    file.version = 2;
    std::vector<std::byte> const bytes = file.bytes();
    CHECK(gguf_file::parse(bytes).version() == 2);
}

TEST_CASE("integers of every width are taken where the value fits, and refused by name where it does not")
{
    gguf_writer writer;
    auto const raw = [&](std::string_view key, gguf_type type, auto value) {
        std::vector<std::byte> bytes;
        test::append(bytes, value);
        writer.set_raw(key, static_cast<std::uint32_t>(type), bytes);
    };
    raw("u8", gguf_type::u8, std::uint8_t{200});
    raw("i8", gguf_type::i8, std::int8_t{100});
    raw("u16", gguf_type::u16, std::uint16_t{60000});
    raw("i16", gguf_type::i16, std::int16_t{-1});
    raw("i64", gguf_type::i64, std::int64_t{1} << 32);
    raw("u64", gguf_type::u64, huge);
    std::vector<std::byte> wide = array_value(static_cast<std::uint32_t>(gguf_type::u32), 1, 0);
    test::append(wide, std::uint32_t{0x80000000});
    writer.set_raw("u32s", static_cast<std::uint32_t>(gguf_type::array), wide);
    std::vector<std::byte> fits = array_value(static_cast<std::uint32_t>(gguf_type::i64), 2, 0);
    test::append(fits, std::int64_t{-0x80000000ll});
    test::append(fits, std::int64_t{0x7fffffff});
    writer.set_raw("i64s", static_cast<std::uint32_t>(gguf_type::array), fits);
    std::vector<std::byte> const bytes = writer.bytes();
    gguf_file const file = gguf_file::parse(bytes);

    CHECK(file.u32("u8") == 200);
    CHECK(file.u32("i8") == 100);
    CHECK(file.u32("u16") == 60000);
    CHECK(file.u64("u64") == huge);
    CHECK(file.u64("i64") == std::uint64_t{1} << 32);
    CHECK(failure_of([&] { file.u32("i16"); }).text.find("'i16': is negative") != std::string::npos);
    CHECK(failure_of([&] { file.u32("i64"); }).text.find("'i64': 4294967296 is above") != std::string::npos);
    CHECK(failure_of([&] { file.u32("u64"); }).code == errc::bad_file);
    CHECK(failure_of([&] { file.i32s("u32s"); }).text.find("element 0") != std::string::npos);
    CHECK(file.i32s("i64s") == std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), 0x7fffffff});
}

TEST_CASE("a key that is missing or of another type is an error that names it")
{
    std::vector<std::byte> const bytes = sample().bytes();
    gguf_file const file = gguf_file::parse(bytes, "some.gguf");
    auto const names = [](refusal const& got, std::string_view text) {
        CAPTURE(got.text);
        CHECK(got.code == errc::bad_file);
        CHECK(got.text.find(text) != std::string::npos);
        CHECK(got.text.starts_with("some.gguf: "));
    };
    names(failure_of([&] { file.u32("llama.block_count"); }), "key 'llama.block_count': missing");
    names(failure_of([&] { file.tensor("blk.0.attn_q.weight"); }), "tensor 'blk.0.attn_q.weight': missing");
    names(failure_of([&] { file.u32("a.f32"); }), "key 'a.f32': is f32, expected an integer");
    names(failure_of([&] { file.u32("a.bool"); }), "key 'a.bool': is bool, expected an integer");
    names(failure_of([&] { file.u32("a.i32s"); }), "key 'a.i32s': is array of i32, expected an integer");
    names(failure_of([&] { file.u32("a.u64", 3); }), "key 'a.u64': ");
    names(failure_of([&] { file.f32("a.u32"); }), "key 'a.u32': is u32, expected a floating-point number");
    names(failure_of([&] { file.boolean("a.u32"); }), "key 'a.u32': is u32, expected a bool");
    names(failure_of([&] { file.string("a.u32"); }), "key 'a.u32': is u32, expected a string");
    names(failure_of([&] { file.string("a.strings"); }), "key 'a.strings': is array of string, expected a string");
    names(failure_of([&] { file.strings("general.architecture"); }), "expected an array of strings");
    names(failure_of([&] { file.strings("a.i32s"); }), "key 'a.i32s': is array of i32, expected an array of strings");
    names(failure_of([&] { file.i32s("a.f32s"); }), "key 'a.f32s': is array of f32, expected an array of integers");
    names(failure_of([&] { file.f32s("a.i32s"); }), "expected an array of floating-point numbers");
}

TEST_CASE("opening reads a header longer than the first piece and keeps it when the object moves")
{
    gguf_writer writer = sample();
    std::vector<std::string> many(60'000);
    for (std::size_t i = 0; i < many.size(); ++i)
        many[i] = "token number " + std::to_string(i) + std::string(i % 64, '.');
    writer.set("many", many);
    test::temporary_file const on_disk(writer.bytes());

    gguf_file opened = gguf_file::open(on_disk.path());
    std::vector<std::string_view> const views = opened.strings("many");
    gguf_file const moved = std::move(opened);
    CHECK(moved.source() == on_disk.path().string());
    REQUIRE(views.size() == many.size());
    CHECK(std::equal(views.begin(), views.end(), many.begin()));
    CHECK(moved.tensor("second").bytes == 12);

    std::array<float, 3> mapped{};
    std::memcpy(mapped.data(), moved.data(moved.tensor("second")).data(), sizeof mapped);
    CHECK(mapped == std::array<float, 3>{1, 2, 3});
    moved.will_need(moved.tensor("second"));
    moved.release(moved.tensor("second")); // gone from memory, not from the file
    std::memcpy(mapped.data(), moved.data(moved.tensor("second")).data(), sizeof mapped);
    CHECK(mapped == std::array<float, 3>{1, 2, 3});
    std::array<float, 3> copied{};
    moved.read(moved.tensor("second"), 0, std::as_writable_bytes(std::span(copied)));
    CHECK(copied == mapped);
    CHECK_NOTHROW(moved.check_unchanged());
    CHECK(failure_of([&] { moved.read(moved.tensor("second"), 4, std::as_writable_bytes(std::span(copied))); }).code ==
          errc::invalid_argument);
    CHECK(failure_of([&] { moved.read(moved.tensor("second"), huge, {}); }).code == errc::invalid_argument);
}

TEST_CASE("a file that shrinks while open is an error for a copy, and its strings stay readable")
{
    test::temporary_file const on_disk(sample().bytes());
    gguf_file const file = gguf_file::open(on_disk.path());
    std::filesystem::resize_file(on_disk.path(), 16);
    CHECK(file.string("general.architecture") == "sample");
    CHECK(file.strings("a.strings").size() == 3);
    std::array<std::byte, 12> out{};
    CHECK(failure_of([&] { file.read(file.tensor("second"), 0, out); }).code == errc::io);
    refusal const changed = failure_of([&] { file.check_unchanged(); });
    CHECK(changed.code == errc::io);
    CHECK(changed.text.find("was changed") != std::string::npos);
}

TEST_CASE("what is not a GGUF file is refused with the reason")
{
    auto const opening = [](std::filesystem::path const& path) { return failure_of([&] { gguf_file::open(path); }); };
    std::filesystem::path const temporary = std::filesystem::temp_directory_path();
    CHECK(opening(temporary / "plait-no-such-file.gguf").code == errc::not_found);
    CHECK(opening(temporary / "plait-no-such-file.gguf").text.find("plait-no-such-file.gguf") != std::string::npos);
    CHECK(opening(temporary).code == errc::io);
    CHECK(opening(temporary).text.find("directory") != std::string::npos);

    test::temporary_file const empty(std::vector<std::byte>{});
    CHECK(opening(empty.path()).code == errc::bad_file);
    CHECK(opening(empty.path() / "child").code == errc::not_found);
    test::temporary_file const text(to_bytes("#!/bin/sh\nexit 0\n"));
    CHECK(opening(text.path()).code == errc::bad_file);
    CHECK(opening(text.path()).text.find("not a GGUF file") != std::string::npos);

    std::filesystem::path const pipe = empty.path().string() + ".pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    refusal const from_pipe = opening(pipe); // must not wait for a writer
    std::filesystem::remove(pipe);
    CHECK(from_pipe.code == errc::io);
    CHECK(from_pipe.text.find("not a regular file") != std::string::npos);
}

TEST_CASE("a wrong magic or version is refused")
{
    gguf_writer file = sample();
    file.magic = "GGML";
    check_refused(file, {"magic", "not a GGUF file"});
    file.magic = "GGUF";
    file.version = 0;
    check_refused(file, {"version"});
    file.version = 1;
    check_refused(file.bytes(), errc::unsupported, {"version", "1; versions 2 and 3"});
    file.version = 4;
    check_refused(file.bytes(), errc::unsupported, {"version", "4; versions 2 and 3"});
    file.version = 0x03000000;
    check_refused(file.bytes(), errc::unsupported, {"version", "big-endian"});
}

TEST_CASE("counts that the file cannot hold are refused before anything is reserved")
{
    for (std::uint64_t const count : {std::uint64_t{1000}, std::uint64_t{1} << 32, std::uint64_t{1} << 62, huge}) {
        gguf_writer file = sample();
        file.tensor_count = count;
        check_refused(file, {"tensor count", "cannot fit"});
        file.tensor_count.reset();
        file.entry_count = count;
        check_refused(file, {"metadata count", "cannot fit"});
    }
    gguf_writer file = sample();
    file.entry_count = 11; // the first tensor is read as an entry
    check_refused(file, {"tensor 0"});
}

TEST_CASE("malformed keys are refused")
{
    gguf_writer file = sample();
    file.entries[1].key = "";
    check_refused(file, {"metadata key 1", "empty"});
    file.entries[1].key = std::string("a\0b", 3);
    check_refused(file, {"metadata key 1", "NUL", "'a\\x00b'"});
    file.entries[1].key = std::string(65536, 'k');
    check_refused(file, {"metadata key 1", "65536 bytes", "at most 65535"});
    file.entries[1].key = std::string(65535, 'k');
    CHECK_FALSE(refuse(file.bytes()).code.has_value());
    file.entries[1].key = "a.u64";
    check_refused(file, {"key 'a.u64'", "twice"});

    std::vector<std::byte> bytes = sample().bytes();
    std::memcpy(bytes.data() + 24, &huge, 8); // the length of the first key
    check_refused(bytes, errc::bad_file, {"metadata key 0", "only"});
}

TEST_CASE("malformed values are refused")
{
    auto const with = [](std::uint32_t type, std::vector<std::byte> value) {
        gguf_writer file = sample();
        file.set_raw("odd", type, std::move(value));
        return file;
    };
    constexpr std::uint32_t array = 9;
    check_refused(with(13, std::vector<std::byte>(8)), {"key 'odd'", "unknown value type 13"});
    check_refused(with(0xffffffff, std::vector<std::byte>(8)), {"key 'odd'", "unknown value type"});
    check_refused(with(array, array_value(13, 1, 8)), {"key 'odd'", "unknown value type 13"});
    check_refused(with(array, array_value(array, 1, 12)), {"key 'odd'", "arrays of arrays"});
    check_refused(with(array, array_value(4, huge, 0)), {"key 'odd'", "elements", "left"});
    // 2^62 elements of 4 bytes are 2^64 bytes: the product would wrap to 0.
    check_refused(with(array, array_value(4, std::uint64_t{1} << 62, 0)), {"key 'odd'", "elements"});
    check_refused(with(array, array_value(12, (std::uint64_t{1} << 61) + 1, 0)), {"key 'odd'", "elements"});
    check_refused(with(array, array_value(8, 1000, 8)), {"key 'odd'", "1000 elements"});
    check_refused(with(array, array_value(0, 5000, 0)), {"key 'odd'", "5000 elements"});
    check_refused(with(7, {std::byte{2}}), {"key 'odd'", "neither 0 nor 1"});
    std::vector<std::byte> booleans = array_value(7, 2, 2);
    booleans.back() = std::byte{255};
    check_refused(with(array, booleans), {"key 'odd'", "neither 0 nor 1"});

    std::vector<std::byte> length;
    test::append(length, huge);
    check_refused(with(8, length), {"key 'odd'", "a string of"});
    length.clear();
    test::append(length, std::uint64_t{5000});
    check_refused(with(8, length), {"key 'odd'", "a string of 5000 bytes"});
    std::vector<std::byte> strings = array_value(8, 1, 0);
    test::append(strings, huge - 7); // the position plus the length would wrap
    check_refused(with(array, strings), {"key 'odd'", "a string of"});

    gguf_writer file = sample();
    file.set("long", std::string((16u << 20) + 1, 'x'));
    check_refused(file, {"key 'long'", "at most 16777216"});
}

TEST_CASE("an alignment that is no power of two from 8 to 65536 is refused")
{
    for (std::uint32_t const alignment : {0u, 1u, 4u, 24u, 33u, 131072u, 0x80000000u}) {
        gguf_writer file = sample();
        file.set("general.alignment", alignment);
        check_refused(file, {"key 'general.alignment'", "power of two"});
    }
    gguf_writer file = sample();
    file.set("general.alignment", std::uint64_t{32});
    check_refused(file, {"key 'general.alignment'", "is u64, expected u32"});
    for (std::uint32_t const alignment : {8u, 64u, 65536u}) {
        file.set("general.alignment", alignment);
        file.alignment = alignment;
        std::vector<std::byte> const bytes = file.bytes();
        gguf_file const good = gguf_file::parse(bytes);
        CHECK(good.tensor("second").offset % alignment == 0);
    }
}

TEST_CASE("malformed tensors are refused")
{
    auto const with = [](auto change) {
        gguf_writer file = sample();
        change(file.at("second"));
        return file;
    };
    using tensor = gguf_writer::tensor;
    check_refused(with([](tensor& t) { t.name = ""; }), {"name of tensor 1", "empty"});
    check_refused(with([](tensor& t) { t.name = std::string("x\0", 2); }), {"name of tensor 1", "NUL"});
    check_refused(with([](tensor& t) { t.name = std::string(65, 'n'); }), {"name of tensor 1", "at most 64"});
    check_refused(with([](tensor& t) { t.name = "third"; }), {"tensor 'third'", "twice"});
    check_refused(with([](tensor& t) { t.rank = 0; }), {"tensor 'second'", "0 dimensions"});
    check_refused(with([](tensor& t) { t.dims.assign(5, 1); }), {"tensor 'second'", "5 dimensions"});
    check_refused(with([](tensor& t) { t.rank = 0xffffffff; }), {"tensor 'second'", "dimensions"});
    check_refused(with([](tensor& t) { t.dims = {0}; }), {"tensor 'second'", "dimension 0 is 0"});
    check_refused(with([](tensor& t) { t.dims = {3, huge}; }), {"tensor 'second'", "dimension 1 is negative"});
    check_refused(with([](tensor& t) { t.dims = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}; }),
                  {"tensor 'second'", "product"});
    check_refused(with([](tensor& t) { t.dims = {std::uint64_t{1} << 31, std::uint64_t{1} << 31, 4}; }),
                  {"tensor 'second'", "product"});
    check_refused(with([](tensor& t) { t.dims = {std::uint64_t{1} << 61}; }), {"tensor 'second'", "size in bytes"});
    check_refused(with([](tensor& t) { t.dims = {std::uint64_t{1} << 60}; }), {"tensor 'second'", "truncated?"});
    check_refused(with([](tensor& t) { t.type = static_cast<std::uint32_t>(ggml_type::q8_0); }),
                  {"tensor 'second'", "3 columns", "block of 32 of Q8_0"});
    // 64 elements are two blocks of 32, but not in rows of 16.
    check_refused(with([](tensor& t) {
                      t.type = static_cast<std::uint32_t>(ggml_type::q4_1);
                      t.dims = {16, 4};
                  }),
                  {"tensor 'second'", "16 columns"});
    for (std::uint32_t const type : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 42u, 1000u, 0xffffffffu})
        check_refused(with([&](tensor& t) { t.type = type; }), {"tensor 'second'", "unknown or removed type"});
    check_refused(with([](tensor& t) { t.offset = 33; }), {"tensor 'second'", "offset 33", "alignment 32"});
    check_refused(with([](tensor& t) { t.offset = 32; }), {"overlaps", "'first'"});
    check_refused(with([](tensor& t) { t.offset = 0; }), {"overlaps", "'first'"});
    check_refused(with([](tensor& t) { t.offset = std::uint64_t{1} << 40; }), {"tensor 'second'", "truncated?"});
    check_refused(with([](tensor& t) { t.offset = huge - 31; }), {"tensor 'second'", "truncated?"});
}

TEST_CASE("a hole between tensors and bytes after the last are harmless")
{
    gguf_writer file = sample();
    file.at("third").offset = 128;
    file.at("second").data.resize(96);
    std::vector<std::byte> bytes = file.bytes();
    bytes.resize(bytes.size() + 100);
    CHECK_FALSE(refuse(bytes).code.has_value());
}

TEST_CASE("every shorter piece of a file is refused")
{
    std::vector<std::byte> const bytes = sample().bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        // A copy of its own, so that a sanitizer sees a read past the end.
        std::vector<std::byte> const piece(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        CAPTURE(length);
        REQUIRE(refuse(piece).code == errc::bad_file);
    }
    std::vector<std::byte> const piece(bytes.begin(), bytes.end() - 1);
    test::temporary_file const short_file(piece);
    refusal const got = failure_of([&] { gguf_file::open(short_file.path()); });
    CHECK(got.code == errc::bad_file);
    CHECK(got.text.find("tensor 'third'") != std::string::npos);
    CHECK(got.text.find("truncated?") != std::string::npos);
}

TEST_CASE("blocks have as many columns and bytes as the kernels that read them expect")
{
    for (std::uint32_t type = 0; type < ggml_layouts.size(); ++type) {
        if (find_layout(type) == nullptr) continue;
        auto const format = computable(static_cast<ggml_type>(type));
        if (!format) continue;
        CAPTURE(name(*format));
        CHECK(ggml_layouts[type].block == columns_of_block(*format));
        CHECK(ggml_layouts[type].bytes == host::file_row_bytes(*format, ggml_layouts[type].block));
    }
}

TEST_CASE("a well-formed type that plait cannot compute with is refused only when it is asked for")
{
    std::vector<std::byte> const bytes = sample().bytes();
    gguf_file const file = gguf_file::parse(bytes);
    CHECK(file.format(file.tensor("first")) == weight_format::q4_0);
    CHECK(file.format(file.tensor("second")) == weight_format::f32);
    CHECK(file.format(file.tensor("third")) == weight_format::q6_k);
    for (auto type : {ggml_type::q8_1, ggml_type::q8_k, ggml_type::iq1_s, ggml_type::iq1_m, ggml_type::iq2_xxs,
                      ggml_type::iq2_xs, ggml_type::iq2_s, ggml_type::iq3_xxs, ggml_type::iq3_s, ggml_type::tq1_0,
                      ggml_type::tq2_0, ggml_type::nvfp4, ggml_type::q1_0, ggml_type::i8, ggml_type::f64}) {
        gguf_writer other;
        other.set("general.architecture", "sample");
        other.add("odd", {256, 2}, type);
        std::vector<std::byte> const odd = other.bytes();
        gguf_file const read = gguf_file::parse(odd);
        refusal const got = failure_of([&] { read.format(read.tensor("odd")); });
        CHECK(got.code == errc::unsupported);
        CHECK(got.text.find("tensor 'odd': type " + std::string(layout(type).name) + " ") != std::string::npos);
        CHECK(got.text.find("Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16, MXFP4") !=
              std::string::npos);
    }
}

TEST_CASE("text from a file is shown with control characters escaped and cut short")
{
    gguf_writer file = sample();
    file.entries[1].key = "evil\x1b[31m\n" + std::string(500, 'x');
    file.entries[1].type = 99;
    refusal const got = refuse(file.bytes());
    CHECK(got.text.find("evil\\x1b[31m\\x0axxx") != std::string::npos);
    CHECK(got.text.find('\n') == std::string::npos);
    CHECK(got.text.size() < 250);
}

TEST_CASE("the fingerprint follows the header and the weights")
{
    auto const fingerprint = [](gguf_writer const& file) {
        std::vector<std::byte> const bytes = file.bytes();
        return gguf_file::parse(bytes).fingerprint();
    };
    gguf_writer file = sample();
    std::uint64_t const original = fingerprint(file);
    CHECK(fingerprint(sample()) == original);
    file.at("second").data[5] ^= std::byte{1};
    CHECK(fingerprint(file) != original);
    file = sample();
    file.set("a.u32", std::uint32_t{8});
    CHECK(fingerprint(file) != original);
    file = sample();
    std::swap(file.tensors[0].name, file.tensors[2].name);
    std::swap(file.tensors[0], file.tensors[2]);
    CHECK(fingerprint(file) != original);

    test::temporary_file const on_disk(sample().bytes());
    CHECK(gguf_file::open(on_disk.path()).fingerprint() == original);
}

TEST_CASE("twenty thousand mutations of a model are read or refused, never worse")
{
    test::tiny_model_options options;
    options.layers = 1;
    options.width = 32;
    options.heads = 2;
    options.kv_heads = 1;
    options.ffn = 32;
    options.vocabulary = 270;
    options.weights = ggml_type::q4_0;
    std::vector<std::byte> const original = test::tiny_model_bytes(options);
    std::size_t const header = gguf_file::parse(original).tensors()[0].offset;

    std::mt19937_64 random(20260823);
    auto const below = [&](std::uint64_t bound) { return random() % bound; };
    constexpr std::uint64_t values[] = {0,
                                        1,
                                        2,
                                        8,
                                        9,
                                        31,
                                        32,
                                        33,
                                        255,
                                        65535,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        huge,
                                        huge - 7};
    std::size_t read = 0;
    std::size_t described = 0;
    std::size_t refused = 0;
    std::vector<std::byte> bytes;
    for (int round = 0; round < 20'000; ++round) {
        bytes = original;
        for (std::uint64_t changes = 1 + below(3); changes != 0; --changes) {
            std::size_t const at = below(bytes.size() < header || below(10) == 0 ? bytes.size() : header);
            std::uint64_t const value = values[below(std::size(values))];
            switch (below(6)) {
            case 0:
                bytes[at] ^= std::byte{1} << below(8);
                break;
            case 1:
                bytes[at] = static_cast<std::byte>(random());
                break;
            case 2:
                std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(4, bytes.size() - at));
                break;
            case 3:
                std::memcpy(bytes.data() + at, &value, std::min<std::size_t>(8, bytes.size() - at));
                break;
            case 4:
                bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
                break;
            case 5:
                if (below(8) == 0)
                    bytes.resize(at + 1);
                else
                    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(random()));
                break;
            }
        }
        bytes.shrink_to_fit(); // a read past the end must leave the block
        try {
            gguf_file const file = gguf_file::parse(bytes);
            for (gguf_entry const& entry : file.metadata()) {
                if (entry.type != gguf_type::array) continue;
                if (entry.element == gguf_type::string) file.strings(entry.key);
                if (entry.element == gguf_type::f32) file.f32s(entry.key);
            }
            unsigned sum = 0;
            for (stored_tensor const& tensor : file.tensors())
                sum += std::to_integer<unsigned>(file.data(tensor).front()) +
                       std::to_integer<unsigned>(file.data(tensor).back());
            CHECK(sum <= 510 * file.tensors().size());
            ++read;
            describe(file);
            ++described;
        } catch (error const& failure) {
            ++refused;
        }
    }
    CHECK(read > 1000);
    CHECK(described > 1000);
    CHECK(refused > 1000);
    CHECK(described + refused == 20'000);
    MESSAGE(read << " read, " << described << " described, " << refused << " refused");
}
