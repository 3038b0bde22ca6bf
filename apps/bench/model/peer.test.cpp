#include <plait/apps/bench/model/peer.hpp>

#include <plait/actors/error.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

using namespace plait;
using namespace plait::bench;

namespace {

/// A folder with the two programs, which print what they are told to and note how they were called.
class fake_peer {
public:
    explicit fake_peer(std::string_view bench_prints, std::string_view batched_prints, int status = 0)
        : name_(std::span<std::byte const>(), "")
        , folder_(name_.path().string() + " it's a folder")
    {
        std::filesystem::create_directory(folder_);
        write("llama-bench", bench_prints, status);
        write("llama-batched-bench", batched_prints, status);
    }
    ~fake_peer() { std::filesystem::remove_all(folder_); }
    fake_peer(fake_peer const&) = delete;
    fake_peer& operator=(fake_peer const&) = delete;

    peer where() const { return {"fake", folder_}; }

    /// The arguments of the last call, one a line.
    std::string called() const
    {
        std::ifstream file(folder_ / "called");
        return {std::istreambuf_iterator<char>(file), {}};
    }

private:
    void write(char const* program, std::string_view prints, int status) const
    {
        auto const path = folder_ / program;
        std::ofstream(path) << "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$(dirname \"$0\")/called\"\ncat <<'END'\n"
                            << prints << "\nEND\nexit " << status << "\n";
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }

    test::temporary_file name_;
    std::filesystem::path folder_;
};

constexpr auto bench_json = R"([
  {
    "model_filename": "m.gguf",
    "n_prompt": 512,
    "avg_ts": 149.5,
    "samples_ts": [ 149.5 ]
  }
])";

constexpr auto batched_table = R"(
llama_batched_bench: n_kv_max = 512, n_batch = 2048

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|     1 |     16 |    2 |     34 |    1.595 |     1.25 |   24.776 |   116.42 |   26.371 |     1.29 |
)";

} // namespace

TEST_CASE("a peer's prefill and single decode come from llama-bench")
{
    fake_peer fake(bench_json, "");
    CHECK(peer_prefill_rate(fake.where(), "/my model.gguf", 2, 512) == 149.5);
    CHECK(fake.called() == "-m\n/my model.gguf\n-t\n2\n-p\n512\n-n\n0\n-r\n1\n-o\njson\n");
    CHECK(peer_decode_rate(fake.where(), "/my model.gguf", 1, 1, 128) == 149.5);
    CHECK(fake.called() == "-m\n/my model.gguf\n-t\n1\n-p\n0\n-n\n128\n-r\n1\n-o\njson\n");
}

TEST_CASE("a peer's batched decode comes from llama-batched-bench")
{
    fake_peer fake("", batched_table);
    CHECK(peer_decode_rate(fake.where(), "/m.gguf", 2, 8, 128) == 116.42);
    CHECK(fake.called() == "-m\n/m.gguf\n-t\n2\n-tb\n2\n-c\n1536\n-npp\n1\n-ntg\n128\n-npl\n8\n");
}

TEST_CASE("a peer that is not there, fails or prints something else is an error that names the program")
{
    auto outcome = [](fake_peer const& fake, std::int64_t sequences) {
        try {
            peer_decode_rate(fake.where(), "m.gguf", 1, sequences, 16);
        } catch (error const& e) {
            CHECK(e.condition() == errc::io);
            return std::string(e.what());
        }
        return std::string();
    };
    for (auto prints : {"", "no figure", "{}", "[]", "[{\"avg_ts\": \"fast\"}]", "[{\"avg_ts\": 0}]", "[1]"}) {
        CAPTURE(prints);
        fake_peer fake(prints, prints);
        CHECK(outcome(fake, 1).find("llama-bench") != std::string::npos);
        CHECK(outcome(fake, 2).find("llama-batched-bench") != std::string::npos);
    }
    fake_peer fails(bench_json, batched_table, 1);
    CHECK(outcome(fails, 1).find("llama-bench") != std::string::npos);
    peer nowhere{"nowhere", "/nowhere"};
    CHECK_THROWS_AS(peer_prefill_rate(nowhere, "m.gguf", 1, 16), error);
}

TEST_CASE("a peer is given as a name and a folder")
{
    auto one = parse_peer("llama.cpp=/opt/llama=cpp/bin");
    CHECK(one.name == "llama.cpp");
    CHECK(one.programs == "/opt/llama=cpp/bin");
    for (auto bad : {"", "=", "name", "name=", "=folder"})
        CHECK_THROWS_AS(parse_peer(bad), error);
}
