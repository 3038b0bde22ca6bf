#include <algorithm>
#include <array>
#include <cstdio>

#include <plait/actors/error.hpp>
#include <plait/kv/planner.hpp>

namespace plait {

namespace {

std::string with_commas(std::int64_t value)
{
    auto text = std::to_string(value);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
        text.insert(static_cast<std::size_t>(at), ",");
    return text;
}

/// "30 layers × 3 KV heads × 64 × 2 (K, V) × 2 B = 23,040 B a token"
std::string token_derivation(kv_group const& group, kv_type type)
{
    auto element = element_bytes(type);
    auto values = static_cast<std::int64_t>(group.layers.size()) * group.kv_heads * group.head_dim * 2 * element;
    return std::to_string(group.layers.size()) + " layers × " + std::to_string(group.kv_heads) + " KV heads × " +
           std::to_string(group.head_dim) + " × 2 (K, V) × " + std::to_string(element) + " B = " + with_commas(values) +
           " B a token";
}

std::vector<memory_line> kv_lines(kv_geometry const& kv, std::int64_t pages)
{
    std::vector<memory_line> lines;
    auto tokens = pages * page_tokens;
    for (auto const& group : kv.groups) {
        auto values = static_cast<std::int64_t>(group.layers.size()) * group.kv_heads * group.head_dim * 2 *
                      static_cast<std::int64_t>(element_bytes(kv.type));
        auto name = std::string("KV cache");
        if (group.window > 0) name += ", window " + std::to_string(group.window);
        lines.push_back({name,
                         token_derivation(group, kv.type) + " × " + with_commas(tokens) + " tokens (" +
                             with_commas(pages) + " pages)",
                         values * tokens});
        // What a page holds beside the values: the 8-bit type's scales, and the padding of a page to whole cache lines.
        if (auto rest = group.page_bytes(kv.type) * pages - values * tokens; rest > 0)
            lines.push_back({name + " scales",
                             std::to_string(group.layers.size()) + " layers × " + with_commas(pages) + " pages", rest});
    }
    return lines;
}

std::int64_t sum(std::vector<memory_line> const& lines)
{
    std::int64_t bytes = 0;
    for (auto const& line : lines)
        bytes += line.bytes;
    return bytes;
}

} // namespace

std::string human_bytes(std::int64_t bytes)
{
    static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < units.size(); ++unit)
        value /= 1024;
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(),
                  unit == 0      ? "%.0f %s"
                  : value >= 100 ? "%.0f %s"
                                 : "%.1f %s",
                  value, units[unit]);
    return text.data();
}

memory_plan plan_memory(memory_request const& request)
{
    if (request.context <= 0) throw error(errc::invalid_argument, "context: " + std::to_string(request.context));
    if (request.sequences <= 0) throw error(errc::invalid_argument, "sequences: " + std::to_string(request.sequences));
    if (request.kv_tokens < 0) throw error(errc::invalid_argument, "KV tokens: " + std::to_string(request.kv_tokens));

    std::int64_t page = 0;
    for (auto const& group : request.kv.groups)
        page += group.page_bytes(request.kv.type);
    auto fixed = sum(request.fixed);
    auto least = pages_of(request.context);
    auto fitting = request.memory > fixed ? (request.memory - fixed) / page : 0;
    auto wanted = request.kv_tokens > 0 ? pages_of(request.kv_tokens) : least * request.sequences;
    auto pages = request.kv_tokens > 0 ? wanted : std::min(wanted, std::max(fitting, least));

    memory_plan plan;
    plan.memory = request.memory;
    plan.pages = pages;
    plan.lines = request.fixed;
    for (auto& line : kv_lines(request.kv, pages))
        plan.lines.push_back(std::move(line));
    plan.kv_bytes = page * pages;
    plan.total = fixed + plan.kv_bytes;
    if (plan.total > plan.memory) throw error(errc::never_fits, "memory\n" + to_table(plan));
    return plan;
}

std::string to_table(memory_plan const& plan)
{
    std::size_t name_width = 5, bytes_width = 5;
    for (auto const& line : plan.lines) {
        name_width = std::max(name_width, line.name.size());
        bytes_width = std::max(bytes_width, with_commas(line.bytes).size());
    }
    bytes_width = std::max({bytes_width, with_commas(plan.total).size(), with_commas(plan.memory).size()});
    std::string out;
    auto row = [&](std::string const& name, std::int64_t bytes, std::string const& derivation) {
        auto figure = with_commas(bytes);
        out += "  " + name + std::string(name_width - name.size() + 2, ' ') +
               std::string(bytes_width - figure.size(), ' ') + figure + " B  " + derivation + "\n";
    };
    for (auto const& line : plan.lines)
        row(line.name, line.bytes, line.derivation);
    auto spare = plan.memory - plan.total;
    row("total", plan.total,
        human_bytes(plan.total) + " of " + human_bytes(plan.memory) +
            (spare >= 0 ? ", " + human_bytes(spare) + " spare" : ": " + human_bytes(-spare) + " too much"));
    return out;
}

} // namespace plait
