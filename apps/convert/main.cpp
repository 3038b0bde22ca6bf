#include <plait/apps/convert/options.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

namespace {

using namespace plait;

int run(converting::settings const& what)
{
    bool const shown = ::isatty(STDERR_FILENO) == 1;
    int percent = -1;
    auto const report = [&](double part) {
        int const now = static_cast<int>(part * 100);
        if (!shown || now == percent) return;
        percent = now;
        std::fprintf(stderr, "\r%3d %%", percent);
    };
    auto const done = convert(what.in, what.out, what.how, report);
    if (shown) std::fputs("\r     \r", stderr);
    std::fprintf(stderr, "plait-convert: %s: %lld tensors, %llu bytes\n", what.out.c_str(),
                 static_cast<long long>(done.tensors), static_cast<unsigned long long>(done.bytes));
    return converting::exit_ok;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        auto const line = converting::parse(argc, argv, PLAIT_VERSION);
        std::fputs(line.output.c_str(), stdout);
        if (!line.error.empty()) std::fprintf(stderr, "plait-convert: %s\n", line.error.c_str());
        return line.given ? run(*line.given) : line.status;
    } catch (std::exception const& failure) {
        std::fprintf(stderr, "plait-convert: %s\n", failure.what());
        return converting::exit_failure;
    }
}
