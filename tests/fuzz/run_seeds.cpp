// The program of a fuzzer where libFuzzer is not there: each file of the folders in the command line is one input.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

int main(int argc, char** argv)
{
    int seeds = 0;
    for (int i = 1; i < argc; ++i)
        for (auto const& file : std::filesystem::directory_iterator(argv[i])) {
            std::printf("%s\n", file.path().c_str());
            std::fflush(stdout); // a crash is the last one's
            std::ifstream in(file.path(), std::ios::binary);
            std::vector<char> const read{std::istreambuf_iterator<char>(in), {}};
            // In a block of its own length, so that a sanitizer sees a read past the end.
            std::vector<std::uint8_t> const bytes(read.begin(), read.end());
            LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
            ++seeds;
        }
    std::printf("%d inputs\n", seeds);
    return seeds == 0;
}
