// Draws what overlap is worth: plait-overlap MODEL FOLDER [--trace FILE] writes split_prompt.svg and
// decode_beside_prefill.svg, each with a step's first layers in one lane and in two. The devices are simulated; nothing
// is computed. The trace is that of the last picture's second half, with all of its steps.
#include "overlap.hpp"

#include <plait/streams/trace_file.hpp>

#include <fstream>
#include <iostream>

int main(int argc, char** argv)
{
    auto const traced = plait::take_trace_option(argc, argv);
    if (argc != 3) {
        std::cerr << "plait-overlap MODEL FOLDER [--trace FILE]\n";
        return 2;
    }
    try {
        plait::trace_file trace(traced);
        std::filesystem::path const model = argv[1], folder = argv[2];
        struct picture {
            overlap::scene scene;
            char const* file;
            char const* title;
        };
        for (auto const& p :
             {picture{overlap::scene::split_prompt, "split_prompt.svg", "A prompt of 256 tokens, in two halves"},
              picture{overlap::scene::decode_beside_prefill, "decode_beside_prefill.svg",
                      "Twelve sequences that decode beside a prompt"}}) {
            auto const off = overlap::run(model, p.scene, false);
            auto const last = p.scene == overlap::scene::decode_beside_prefill;
            auto const on = overlap::run(model, p.scene, true, last ? trace.record() : nullptr);
            std::ofstream file(folder / p.file);
            overlap::draw(file, p.title, off, on, 3);
            file.close();
            if (!file) {
                std::cerr << "plait-overlap: " << (folder / p.file).string() << " was not written\n";
                return 1;
            }
            std::cout << p.file << ": " << off.length.count() / 1000 << " us, overlapped " << on.length.count() / 1000
                      << " us\n";
        }
        trace.write();
    } catch (std::exception const& e) {
        std::cerr << "plait-overlap: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
