// The charts of a page as pictures for papers, drawn by a headless Chromium that opens the page.
#pragma once

#include <filesystem>
#include <string>

#include "simulate/report/html/page.h"

namespace tbdsim {

// Writes "<number>_<section>_<chart>.<format>" for each chart of `page`, which lies in `file`; `format` is
// svg or png. Makes the directory where it is missing. Throws UsageError where no Chromium is installed or it
// fails.
void write_chart_pictures(const Page& page, const std::filesystem::path& file, const std::string& format,
                          const std::filesystem::path& directory);

}  // namespace tbdsim
