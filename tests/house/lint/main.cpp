// plait-lint <source tree>: checks every source and header of the house and names what breaks a rule, one line each.
// Exit code 0 when there is nothing to say, 1 when there is, 2 when the tree can't be read.

#include <plait/tests/house/lint/coroutine_rules.hpp>
#include <plait/tests/house/lint/house_rules.hpp>
#include <plait/tests/house/lint/source.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv)
{
    namespace fs = std::filesystem;
    if (argc != 2) {
        std::cerr << "usage: plait-lint <source tree>\n";
        return 2;
    }
    fs::path const root = argv[1];
    std::vector<fs::path> files;
    for (char const* folder : {"actors", "streams", "kernels", "kv", "model", "engine", "apps", "tests"}) {
        std::error_code failure;
        for (auto it = fs::recursive_directory_iterator(root / folder, failure);
             it != fs::recursive_directory_iterator(); it.increment(failure)) {
            // The examples of what the lint must find.
            if (it->is_directory() && it->path() == root / "tests/house/lint/examples") {
                it.disable_recursion_pending();
            } else if (it->path().extension() == ".hpp" || it->path().extension() == ".cpp") {
                files.push_back(it->path());
            }
        }
        if (failure) {
            std::cerr << "plait-lint: cannot read " << root / folder << ": " << failure.message() << '\n';
            return 2;
        }
    }
    std::sort(files.begin(), files.end());

    std::size_t count = 0;
    for (auto const& path : files) {
        std::ifstream stream(path, std::ios::binary);
        std::string content(std::istreambuf_iterator<char>(stream), {});
        plait::house::source file(fs::relative(path, root).generic_string(), std::move(content));
        for (auto check : {plait::house::check_house, plait::house::check_coroutines}) {
            for (auto const& finding : check(file)) {
                std::cout << finding.path << ':' << finding.line << ": " << finding.message << " [" << finding.rule
                          << "]\n";
                ++count;
            }
        }
    }
    std::cout << files.size() << " files, " << count << " findings\n";
    return count == 0 ? 0 : 1;
}
