#include <plait/apps/chat/report.hpp>

#include <plait/kernels/paged_kv.hpp>
#include <plait/kv/planner.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>

#include <unistd.h>

namespace plait::chat {

namespace {

double seconds(duration d) noexcept
{
    return std::chrono::duration<double>(d).count();
}

std::string fixed(double value, int digits)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string rate(double tokens_per_second)
{
    return tokens_per_second > 0 ? fixed(tokens_per_second, 1) + " tok/s" : std::string("-");
}

} // namespace

void totals::add(summary const& answer) noexcept
{
    ++answers;
    prompt_tokens += answer.prompt_tokens;
    generated_tokens += answer.generated_tokens;
}

double prefill_rate(summary const& answer) noexcept
{
    auto const took = seconds(answer.time_to_first_token - answer.queued);
    return answer.generated_tokens > 0 && took > 0 ? static_cast<double>(answer.prompt_tokens) / took : 0;
}

double decode_rate(summary const& answer) noexcept
{
    auto const took = seconds(answer.total - answer.time_to_first_token);
    return answer.generated_tokens > 1 && took > 0 ? static_cast<double>(answer.generated_tokens - 1) / took : 0;
}

std::string statistics(std::optional<summary> const& last, totals const& all, engine_info const& model,
                       engine_stats const& now, std::optional<std::int64_t> resident)
{
    std::string out;
    if (last) {
        out += "last answer   prompt " + std::to_string(last->prompt_tokens) + " tokens, prefill " +
               rate(prefill_rate(*last)) + "\n";
        out += "              answer " + std::to_string(last->generated_tokens) + " tokens, decode " +
               rate(decode_rate(*last)) + "\n";
        out += "              first token after " + fixed(1e3 * seconds(last->time_to_first_token), 1) +
               " ms, all in " + fixed(seconds(last->total), 2) + " s\n";
    }
    out += "all " + std::to_string(all.answers) + (all.answers == 1 ? " answer" : " answers") + "  prompts " +
           std::to_string(all.prompt_tokens) + " tokens, answers " + std::to_string(all.generated_tokens) + " tokens\n";
    out += "context       " + std::to_string(model.context) + " tokens";
    if (last) out += ", " + std::to_string(last->prompt_tokens + last->generated_tokens) + " used by the last turn";
    out += "\n";
    out += "memory        planned " + human_bytes(model.memory.total) + " of " + human_bytes(model.memory.memory) +
           ", of it KV " + human_bytes(model.memory.kv_bytes) + " (" + std::to_string(now.pages - now.free_pages) +
           " of " + std::to_string(now.pages) + " pages in use)\n";
    if (resident) out += "              resident " + human_bytes(*resident) + "\n";
    out += "device        " + model.device + "\n";
    return out;
}

std::optional<std::int64_t> resident_bytes()
{
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0;
    std::int64_t resident = 0;
    if (!(file >> size >> resident)) return std::nullopt;
    return resident * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace plait::chat
