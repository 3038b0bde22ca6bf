#include <plait/model/files/json_config.hpp>

#include <plait/actors/error.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;

namespace {

json_config parse(std::string_view text)
{
    return json_config::parse(text, "config.json");
}

void check_refused(std::string_view text, std::initializer_list<char const*> parts)
{
    CAPTURE(text);
    check_failure([&] { parse(text); }, errc::bad_file, parts);
}

} // namespace

TEST_CASE("a config gives its fields by name and type")
{
    auto const config = parse(R"({
        "hidden_size": 2048, "rope_theta": 10000.0, "eps": 1e-05, "tie": true, "model_type": "llama",
        "eos_token_id": [1, 2, -3], "factors": [1, 2.5], "layer_types": ["full", "sliding"], "flags": [true, false],
        "rope_scaling": {"factor": 8.0, "inner": {"deep": 4}}, "nothing": null,
        "templates": [{"name": "default"}, {"name": "tool_use"}], "empty": [], "text": "a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00"
    })");
    CHECK(config.integer("hidden_size") == 2048);
    CHECK(config.number("hidden_size") == 2048.0);
    CHECK(config.number("rope_theta") == 10000.0);
    CHECK(config.integer("rope_theta") == 10000); // without a fraction
    CHECK(config.number("eps") == 1e-5);
    CHECK(config.boolean("tie"));
    CHECK(config.string("model_type") == "llama");
    CHECK(config.integers("eos_token_id") == std::vector<std::int64_t>{1, 2, -3});
    CHECK(config.numbers("factors") == std::vector<double>{1, 2.5});
    CHECK(config.strings("layer_types") == std::vector<std::string>{"full", "sliding"});
    CHECK(config.booleans("flags") == std::vector<bool>{true, false});
    CHECK(config.strings("empty").empty());
    CHECK(config.object("rope_scaling").number("factor") == 8.0);
    CHECK(config.object("rope_scaling").object("inner").integer("deep") == 4);
    CHECK(config.objects("templates").at(1).string("name") == "tool_use");
    CHECK(config.string("text") == "a\"\\/\b\f\n\r\té\u00e9\U0001f600");
    CHECK(config.find_object("rope_scaling").has_value());
    CHECK_FALSE(config.find_object("rope_parameters").has_value());
    CHECK(config.keys().size() == 13);

    CHECK(config.is_integer("hidden_size"));
    CHECK_FALSE(config.is_integer("eps"));
    CHECK(config.is_number("eps"));
    CHECK(config.is_array("eos_token_id"));
    CHECK(config.is_string("model_type"));
    CHECK(config.is_boolean("tie"));
    CHECK(config.is_object("rope_scaling"));
    CHECK_FALSE(config.is_object("nothing"));
}

TEST_CASE("a nested object outlives the config that it came from")
{
    auto inner = parse(R"({"a": {"b": {"c": [7]}}})").object("a").object("b");
    CHECK(inner.integers("c").at(0) == 7);
    CHECK(inner.where("c") == "config.json: field 'a.b.c'");
}

TEST_CASE("a field that is null or absent takes the fallback")
{
    auto const config = parse(R"({"nothing": null, "there": 3})");
    CHECK_FALSE(config.has("nothing"));
    CHECK(config.integer("nothing", 5) == 5);
    CHECK(config.integer("there", 5) == 3);
    CHECK(config.number("missing", 0.5) == 0.5);
    CHECK(config.boolean("missing", true));
    CHECK(config.string("missing", "none") == "none");
    CHECK_FALSE(config.find_object("nothing").has_value());
    CHECK(config.keys() == std::vector<std::string_view>{"there"});
}

TEST_CASE("a field of another kind is an error that names file, field and both kinds")
{
    auto const config = parse(R"({"i": 1, "n": 0.5, "b": true, "s": "x", "a": [1, "two"], "o": {"inner": "x"}})");
    auto const refused = [](auto const& read, std::initializer_list<char const*> parts) {
        check_failure(read, errc::bad_file, parts);
    };
    refused([&] { config.integer("q"); }, {"config.json: field 'q': missing"});
    refused([&] { config.integer("n"); }, {"field 'n': is a number, expected an integer"});
    refused([&] { config.integer("s"); }, {"field 's': is a string, expected an integer"});
    refused([&] { config.number("b"); }, {"field 'b': is a boolean, expected a number"});
    refused([&] { config.boolean("i"); }, {"field 'i': is an integer, expected a boolean"});
    refused([&] { config.string("a"); }, {"field 'a': is an array, expected a string"});
    refused([&] { config.integers("i"); }, {"field 'i': is an integer, expected an array"});
    refused([&] { config.integers("a"); }, {"field 'a[1]': is a string, expected an integer"});
    refused([&] { config.numbers("a"); }, {"field 'a[1]': is a string, expected a number"});
    refused([&] { config.booleans("a"); }, {"field 'a[0]': is an integer, expected a boolean"});
    refused([&] { config.strings("a"); }, {"field 'a[0]': is an integer, expected a string"});
    refused([&] { config.objects("a"); }, {"field 'a[0]': is an integer, expected an object"});
    refused([&] { config.object("s"); }, {"field 's': is a string, expected an object"});
    refused([&] { config.object("o").integer("inner"); }, {"field 'o.inner': is a string, expected an integer"});
    refused(
        [&] {
            config.integer("i", 2);
            config.integer("s", 2);
        },
        {"field 's'"});
}

TEST_CASE("the numbers of Python's writer are read, and integers keep 64 bits")
{
    auto const config = parse(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": 9223372036854775807,
        "e": -9223372036854775808, "f": 9223372036854775808, "g": -0.5E+2, "h": 1e300, "i": 0})");
    CHECK(config.number("a") == INFINITY);
    CHECK(config.number("b") == -INFINITY);
    CHECK(std::isnan(config.number("c")));
    CHECK_FALSE(config.is_integer("a"));
    CHECK_FALSE(config.is_integer("c"));
    CHECK(config.integer("d") == INT64_MAX);
    CHECK(config.integer("e") == INT64_MIN);
    CHECK(config.number("f") == 0x1p63);
    CHECK_FALSE(config.is_integer("f"));
    CHECK(config.number("g") == -50.0);
    CHECK(config.integer("g") == -50);
    CHECK_FALSE(config.is_integer("h"));
    CHECK(config.integer("i") == 0);
}

TEST_CASE("what is not JSON is refused with the byte and the reason")
{
    check_refused("", {"config.json: byte 0", "expected a value, but the text ends"});
    check_refused("[]", {"is an array, expected an object"});
    check_refused("3", {"is an integer, expected an object"});
    check_refused("{", {"byte 1", "expected a key"});
    check_refused(R"({"a")", {"byte 4", "expected ':'", "but the text ends"});
    check_refused(R"({"a":})", {"byte 5", "expected a value"});
    check_refused(R"({"a":1)", {"byte 6", "expected '}'"});
    check_refused(R"({"a":1,})", {"byte 7", "expected a key"});
    check_refused(R"({"a":[1,]})", {"byte 8", "expected a value"});
    check_refused(R"({"a":[1)", {"byte 7", "expected ']'"});
    check_refused(R"({'a':1})", {"byte 1", "expected a key"});
    check_refused(R"({"a":1} x)", {"byte 8", "more text"});
    check_refused(std::string_view("{\"a\":1}\0", 8), {"byte 7", "more text"});
    check_refused(R"({"a":tru})", {"byte 5", "expected a value"});
    check_refused(R"({"a":01})", {"byte 6", "expected '}'"});
    check_refused(R"({"a":-})", {"byte 6", "expected a digit"});
    check_refused(R"({"a":1.})", {"byte 7", "expected a digit"});
    check_refused(R"({"a":1e})", {"byte 7", "expected a digit"});
    check_refused(R"({"a":1e999})", {"byte 5", "a double cannot hold"});
    check_refused(R"({"a":.5})", {"byte 5", "expected a value"});
    check_refused(R"({"a":"x)", {"byte 5", "does not end"});
    check_refused("{\"a\":\"x\ny\"}", {"byte 7", "control character"});
    check_refused(R"({"a":"\x"})", {"byte 7", "unknown escape"});
    check_refused(R"({"a":"\u12"})", {"byte 8", "four hexadecimal digits"});
    check_refused(R"({"a":"\ud800"})", {"byte 7", "surrogate"});
    check_refused(R"({"a":"\ud800\u0041"})", {"byte 7", "surrogate"});
    check_refused(R"({"a":"\udc00"})", {"byte 7", "surrogate"});
    check_refused("{\"a\":\"\xff\"}", {"byte 6", "not UTF-8"});
}

TEST_CASE("a key that appears twice in one object is refused, in two objects it is not")
{
    check_refused(R"({"a": 1, "b": {"c": 1, "c": 2}})", {"key 'c' appears twice"});
    check_refused(R"({"a": 1, "\u0061": 2})", {"key 'a' appears twice"});
    CHECK(parse(R"({"a": {"x": 1}, "b": {"x": 2}})").object("b").integer("x") == 2);
}

TEST_CASE("nesting, size and number of values are bounded")
{
    auto const nested = [](std::size_t levels) {
        return R"({"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
    };
    CHECK(parse(nested(64)).is_array("a"));
    check_refused(nested(65), {"nested deeper than 64 levels"});
    check_refused(nested(100'000), {"nested deeper than 64 levels"});
    check_refused(std::string((16 << 20) + 1, ' '), {"at most 16777216 are read"});
    std::string many = R"({"a":[0)";
    for (int i = 0; i < 1 << 20; ++i)
        many += ",0";
    check_refused(many + "]}", {"more than 1048576 values"});
}

TEST_CASE("a config is opened from its file, whatever mark an editor put before it")
{
    test::temporary_folder const folder;
    auto const path = folder.write("config.json", "\xef\xbb\xbf{\"a\": 1}\n");
    CHECK(json_config::open(path).integer("a") == 1);
    CHECK(json_config::open(path).source() == path.string());
    check_failure([&] { json_config::open(folder.path() / "none.json"); }, errc::not_found, {"none.json"});
    check_failure([&] { json_config::open(folder.path()); }, errc::io, {"directory"});
    std::filesystem::resize_file(folder.write("large.json", "{"), 1 << 30);
    check_failure([&] { json_config::open(folder.path() / "large.json"); }, errc::bad_file, {"1073741824 bytes"});
}
