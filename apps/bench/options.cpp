#include <plait/apps/bench/options.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/parsing.hpp>

#include <CLI/CLI.hpp>

#include <sstream>

namespace plait::bench {

namespace {

constexpr auto footer = R"(Rows: pp512 is the prefill of 512 tokens, timed from the request to its first token. tg128 is
128 tokens of one sequence, timed from its first token; "tg128 x 8" is 8 sequences at once, timed while all of
them run. Both are tokens over time through the engine's public face, greedy, with fixed prompts.
"first token" is opening the model and answering a prompt of 20 tokens, the file being in the page cache.
"resident" is the process's memory after all that, over the size of the file and what the plan gives to the KV
cache and to activations. "idle" is processor time used while the engine waits for requests.

--beside runs llama-bench and llama-batched-bench of another folder by turns with the first rows. The targets of
those rows are multiples of the first such peer: 3 for prefill and for 8 sequences, 1.5 for decode with one
thread and 1.2 with more.

Exit status: 0 measured, whatever the figures; 1 a file, the memory or the engine failed; 2 the command line is wrong)";

constexpr auto runtime_footer =
    R"(Everybody does the same work in the same run, by turns: in each round plait, then each of the others. Every
figure is the median of the rounds, every ratio the median of the rounds' own ratios; less is better. A time is that
of one operation: an await, a round trip, a value, a message, a leaf, a task, a timer. Targets are multiples of
another's time, or bounds. Each row of allocations counts what operator new and exceptions take in a round of its
own, in which nothing is timed.

Rows: "await" and "ask" go one after the other; "spinning" is between two threads that look for work without sleeping,
each on its processor, "sleeping" between two that sleep. "channel" has 4 senders and 4 receivers on a channel of 64,
on one thread or each side on its own. "flood" is 4 actors that tell one whose mailbox is bounded (CAF's is not).
"tree" is Skynet: each node makes ten. "cancel" stops 100,000 tasks that wait in one channel. "timers" are 1,000,000
sleepers: cancelled, fired, and what waiting costs. "actors.hpp alone" is what clang++-19 takes to read the header.

Peers: bare coroutines, cache lines and futexes; Asio's awaitables; std::thread, std::mutex and
std::condition_variable. CAF and oneTBB are there when plait was configured with -D PLAIT_BENCH_PEERS=ON. CAF puts two
actors that ask each other on one worker ("its choice"); "a thread each" are detached actors, which sleep.

Exit status: 0 measured, whatever the figures; 1 a workload gave a wrong result; 2 the command line is wrong)";

constexpr auto weave_footer =
    R"(Rows: "two flows" is a step of two flows that a weave runs, beside a hand-written loop that issues the same kernels in
the same order: nanoseconds of a part of four kernels of 5 us, after which a flow passes its turn. "a turn" is what
passing it costs: the same with one kernel of next to nothing, woven less by hand. "hidden" is the part of what could be
hidden that two woven halves of a step hide, of sums that are a link's time under way and over by the machine's clock:
two ranks, a processor each, parts of a quarter more than that time. "sum" is one all-reduce of 576 floats or 1 MiB
among ranks that share a pool, beside threads that meet at a std::barrier. "resident" is what opening an engine on so
many ranks adds to the process's resident memory, by rank.

Exit status: 0 measured, whatever the figures; 1 a workload gave a wrong result, or the model can't be opened; 2 the
command line is wrong)";

} // namespace

command_line parse(int count, char const* const* arguments)
{
    model_bench out;
    std::string kv = "f16";
    std::string mode = "native";
    double idle_seconds = 5;
    std::vector<std::string> beside;

    CLI::App app("Measures plait on this machine.", "plait-bench");
    app.require_subcommand(1);
    auto* const model = app.add_subcommand("model", "Prefill, decode and batched decode of a model");
    model->footer(footer);
    model->add_option("--model", out.model, "A GGUF file, the first of several, or a Hugging Face folder")
        ->type_name("PATH")
        ->required();
    model->add_option("--threads", out.threads, "Counts, such as 1,2; default: what this process may use")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    model->add_option("--prompt", out.prompt, "Tokens of the prefill row")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    model->add_option("--generate", out.generate, "Tokens of the decode rows")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    model->add_option("--batch", out.batches, "Sequences that decode at once; default: 1,2,4,8,16")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    model->add_option("--repetitions", out.repetitions, "Of each row, after one that warms up")
        ->type_name("N")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    model->add_option("--idle", idle_seconds, "Seconds that the engine idles for the last row; 0: not at all")
        ->type_name("S")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    model->add_option("--kv", kv, "How keys and values are stored")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"f32", "f16", "q8"}))
        ->capture_default_str();
    model->add_option("--numerics", mode, "f32: the reference, slower and larger")
        ->type_name("MODE")
        ->check(CLI::IsMember({"native", "f32"}))
        ->capture_default_str();
    model->add_option("--tp", out.spread.tensor, "Devices that share every layer")
        ->type_name("N")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    model->add_option("--pp", out.spread.pipeline, "Stages of layers that follow each other")
        ->type_name("N")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    model->add_option("--replicas", out.replicas, "Of all that; requests are shared out")
        ->type_name("N")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    model->add_option("--sum-parts", out.spread.sum_parts, "Summands of a product that devices share; 0: --tp")
        ->type_name("N")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    model->add_option("--beside", beside, "Compares with another engine's programs; may be given several times")
        ->type_name("NAME=FOLDER")
        ->allow_extra_args(false)
        ->check([](std::string const& text) {
            try {
                parse_peer(text);
                return std::string();
            } catch (error const&) {
                return text + " is not NAME=FOLDER";
            }
        });
    add_trace_option(*model, out.trace);
    model->add_flag("--json", out.json, "Prints JSON instead of a table");

    runtime_bench ours;
    auto* const runtime_command =
        app.add_subcommand("runtime", "Tasks, actors, channels and timers beside their peers");
    runtime_command->footer(runtime_footer);
    runtime_command->add_option("--only", ours.only, "Rows whose names contain one of these")
        ->type_name("TEXT,...")
        ->delimiter(',');
    runtime_command->add_option("--rounds", ours.rounds, "Turns of everybody in each row")
        ->type_name("N")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    runtime_command->add_option("--scale", ours.scale, "Multiplies the operations of a turn")
        ->type_name("X")
        ->check(CLI::Range(0.0001, 100.0))
        ->capture_default_str();
    runtime_command
        ->add_option("--headers", ours.headers, "A folder with plait/actors/actors.hpp, to time its compiling")
        ->type_name("FOLDER")
        ->check(CLI::ExistingDirectory);
    runtime_command->add_flag("--json", ours.json, "Prints JSON, at the end, instead of a table, row by row");

    weave_bench woven;
    auto* const weave_command =
        app.add_subcommand("weave", "Flows that take turns, sums that computing hides, and ranks' memory");
    weave_command->footer(weave_footer);
    weave_command->add_option("--only", woven.only, "Rows whose names contain one of these")
        ->type_name("TEXT,...")
        ->delimiter(',');
    weave_command->add_option("--rounds", woven.rounds, "Turns of everybody in each row")
        ->type_name("N")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    weave_command->add_option("--scale", woven.scale, "Multiplies the operations of a turn")
        ->type_name("X")
        ->check(CLI::Range(0.0001, 100.0))
        ->capture_default_str();
    auto* const woven_model =
        weave_command->add_option("--model", woven.model, "A model, to measure what its ranks keep resident")
            ->type_name("FILE")
            ->check(CLI::ExistingFile);
    weave_command->add_option("--tp", woven.tensor, "Numbers of ranks; default: those up to 8 that divide the model")
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(2, 64))
        ->needs(woven_model);
    weave_command->add_flag("--json", woven.json, "Prints JSON, at the end, instead of a table, row by row");

    command_line line;
    try {
        app.parse(count, arguments);
    } catch (CLI::ParseError const& e) {
        std::ostringstream output, errors;
        line.status = app.exit(e, output, errors) == 0 ? 0 : 2;
        line.output = output.str();
        line.error = errors.str();
        return line;
    }
    if (runtime_command->parsed()) {
        line.given = std::move(ours);
        return line;
    }
    if (weave_command->parsed()) {
        line.given = std::move(woven);
        return line;
    }
    if (out.threads.empty()) out.threads.push_back(runtime::available_cpus());
    out.idle = std::chrono::nanoseconds(static_cast<std::int64_t>(idle_seconds * 1e9));
    out.kv = kv == "f32" ? kv_type::f32 : kv == "q8" ? kv_type::q8 : kv_type::f16;
    out.mode = mode == "f32" ? numerics::f32 : numerics::native;
    for (auto const& one : beside)
        out.beside.push_back(parse_peer(one));
    line.given = std::move(out);
    return line;
}

} // namespace plait::bench
