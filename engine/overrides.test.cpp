#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/failure_of.hpp>

using namespace plait;
using namespace plait::test;

namespace {

/// The log-probabilities of some tokens.
task<std::vector<float>> scores_of(runtime& rt, engine_options how)
{
    auto running = co_await open(rt, std::move(how));
    request what;
    for (std::int32_t i = 0; i < 100; ++i)
        what.tokens.push_back(3 + i * 37 % 300);
    auto scores = co_await running.score(std::move(what));
    co_await running.close();
    co_return scores;
}

} // namespace

CO_TEST_CASE("an override gives the bits of the same value in the model's header")
{
    struct change {
        char const* name;
        std::function<void(gguf_writer&)> header;
        model_overrides overrides;
    };
    std::vector<change> changes(3);
    changes[0].name = "base";
    changes[0].header = [](gguf_writer& file) { file.set("llama.rope.freq_base", 777.0f); };
    changes[0].overrides.rope_base = 777;
    changes[1].name = "linear";
    changes[1].header = [](gguf_writer& file) {
        file.set("llama.rope.scaling.type", "linear");
        file.set("llama.rope.scaling.factor", 3.0f);
    };
    changes[1].overrides.rope_scaling = rope_stretch::linear;
    changes[1].overrides.rope_factor = 3;
    changes[2].name = "yarn";
    changes[2].header = [](gguf_writer& file) {
        file.set("llama.rope.scaling.type", "yarn");
        file.set("llama.rope.scaling.factor", 8.0f);
        file.set("llama.rope.scaling.original_context_length", std::uint32_t{32});
    };
    changes[2].overrides.rope_scaling = rope_stretch::yarn;
    changes[2].overrides.rope_factor = 8;
    changes[2].overrides.original_context = 32;

    temporary_file const plain(tiny_model_bytes());
    auto const unchanged = co_await scores_of(rt, tiny_engine(plain.path()));
    for (auto const& one : changes) {
        CAPTURE(std::string(one.name));
        auto model = tiny_model();
        one.header(model);
        temporary_file const file(model.bytes());
        auto const expected = co_await scores_of(rt, tiny_engine(file.path()));
        auto how = tiny_engine(plain.path());
        how.overrides = one.overrides;
        auto const found = co_await scores_of(rt, how);
        CHECK(found == expected);
        CHECK(found != unchanged);
        how.spread.tensor = 2;
        how.spread.sum_parts = 2;
        auto both = tiny_engine(file.path());
        both.spread = how.spread;
        auto const divided = co_await scores_of(rt, how);
        auto const of_header = co_await scores_of(rt, both);
        CHECK(divided == of_header);
    }
}

TEST_CASE("a stretched model has a longer context, and a wrong override its own error")
{
    temporary_file const plain(tiny_model_bytes());
    auto how = tiny_engine(plain.path());
    how.context = 512;
    check_failure([&] { plan(how); }, errc::invalid_argument, {"context: 512, but the model was made for 256"});
    how.overrides.rope_scaling = rope_stretch::yarn;
    check_failure([&] { plan(how); }, errc::invalid_argument, {"rope_factor: missing"});
    how.overrides.rope_factor = 2;
    CHECK_NOTHROW(plan(how));
    how.context = 513;
    check_failure([&] { plan(how); }, errc::invalid_argument, {"context: 513, but the model was made for 512"});
}
