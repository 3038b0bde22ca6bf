#include <plait/apps/bench/model/peer.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/bench/process.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

namespace plait::bench {

namespace {

enum class errors { hidden, shown };

/// What the program prints. It runs in the folder for temporary files: some leave a log where they run.
std::string run(std::filesystem::path const& program, std::string const& arguments, errors what)
{
    auto const folder = std::filesystem::temp_directory_path().string();
    auto const command = "cd " + quoted(folder) + " && " + quoted(std::filesystem::absolute(program).string()) + " " +
                         arguments + (what == errors::hidden ? " 2>/dev/null" : " 2>&1");
    auto* const from = ::popen(command.c_str(), "r");
    if (from == nullptr) throw error(errc::io, program.string());
    std::string out;
    char part[4096];
    for (std::size_t size = 0; (size = std::fread(part, 1, sizeof part, from)) > 0;)
        out.append(part, size);
    if (::pclose(from) != 0) throw error(errc::io, program.string() + " " + arguments + " failed");
    return out;
}

/// The only test's rate in the JSON of llama-bench.
std::optional<double> llama_bench_rate(std::string const& text)
{
    auto const all = nlohmann::json::parse(text, nullptr, false);
    if (!all.is_array() || all.size() != 1 || !all.front().is_object()) return std::nullopt;
    auto const found = all.front().find("avg_ts");
    if (found == all.front().end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
}

std::string_view trimmed(std::string_view text)
{
    auto const first = text.find_first_not_of(' ');
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The rate of generation in the only line of figures of llama-batched-bench:
/// | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
std::optional<double> batched_bench_rate(std::string_view text)
{
    constexpr std::size_t column_of_rate = 8; // before the first bar there is column 0
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        std::vector<std::string_view> cells;
        for (;;) {
            auto const bar = line.find('|');
            cells.push_back(trimmed(line.substr(0, bar)));
            if (bar == line.npos) break;
            line.remove_prefix(bar + 1);
        }
        if (cells.size() <= column_of_rate || cells[1].find_first_not_of("0123456789") != cells[1].npos) continue;
        double rate = 0;
        auto const cell = cells[column_of_rate];
        auto const [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), rate);
        if (failed == std::errc() && end == cell.data() + cell.size() && !cells[1].empty()) return rate;
    }
    return std::nullopt;
}

double required(std::optional<double> rate, std::filesystem::path const& program)
{
    if (!rate || !(*rate > 0)) throw error(errc::io, program.string() + " printed no figure");
    return *rate;
}

std::string common(std::filesystem::path const& model, unsigned threads)
{
    return "-m " + quoted(std::filesystem::absolute(model).string()) + " -t " + std::to_string(threads);
}

} // namespace

peer parse_peer(std::string_view text)
{
    auto const equals = text.find('=');
    if (equals == 0 || equals == text.npos || equals + 1 == text.size())
        throw error(errc::invalid_argument, "beside: " + std::string(text) + " is not NAME=FOLDER");
    return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

double peer_prefill_rate(peer const& who, std::filesystem::path const& model, unsigned threads, std::int64_t prompt)
{
    auto const program = who.programs / "llama-bench";
    auto const out =
        run(program, common(model, threads) + " -p " + std::to_string(prompt) + " -n 0 -r 1 -o json", errors::hidden);
    return required(llama_bench_rate(out), program);
}

double peer_decode_rate(peer const& who, std::filesystem::path const& model, unsigned threads, std::int64_t sequences,
                        std::int64_t generate)
{
    if (sequences == 1) {
        auto const program = who.programs / "llama-bench";
        auto const out = run(program, common(model, threads) + " -p 0 -n " + std::to_string(generate) + " -r 1 -o json",
                             errors::hidden);
        return required(llama_bench_rate(out), program);
    }
    auto const program = who.programs / "llama-batched-bench";
    // Room for every sequence's prompt of a token and its answer, and some to spare.
    auto const context = sequences * (generate + 64);
    auto const arguments = common(model, threads) + " -tb " + std::to_string(threads) + " -c " +
                           std::to_string(context) + " -npp 1 -ntg " + std::to_string(generate) + " -npl " +
                           std::to_string(sequences);
    auto const out = run(program, arguments, errors::shown); // where the table goes differs
    return required(batched_bench_rate(out), program);
}

} // namespace plait::bench
