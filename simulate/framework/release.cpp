#include "simulate/framework/release.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <tuple>

namespace tbdsim {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSeparators = " =-_v";
constexpr std::array<std::string_view, 6> kFrameworkWords{"pytorch", "torch", "tensorflow",
                                                          "tf",      "mxnet", "cntk"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_separators(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSeparators), text.size()));
  return text;
}

struct Numbers {
  int major = 0;
  std::optional<int> minor;
  std::string_view digits_of_major, digits_of_minor;
};

// "1.12" at the front of a text; none where another character or a longer number is there.
std::optional<Numbers> numbers_at(std::string_view text) {
  constexpr std::size_t kMostDigits = 3;
  const auto taken = [&]() -> std::string_view {
    const std::string_view digits = text.substr(0, text.find_first_not_of(kDigits));
    text.remove_prefix(digits.size());
    return digits;
  };
  const auto value = [](std::string_view digits) {
    int number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  };
  Numbers found;
  found.digits_of_major = taken();
  if (found.digits_of_major.empty() || found.digits_of_major.size() > kMostDigits) return std::nullopt;
  found.major = value(found.digits_of_major);
  const bool more = text.size() > 1 && (text[0] == '.' || text[0] == '_') && is_digit(text[1]);
  if (!more) return found;
  text.remove_prefix(1);
  found.digits_of_minor = taken();
  if (found.digits_of_minor.size() > kMostDigits) return std::nullopt;
  found.minor = value(found.digits_of_minor);
  return found;
}

// The numbers behind the first place where `word` stands with numbers that are good.
template <class Good>
std::optional<Numbers> numbers_behind(std::string_view word, std::string_view text, Good good) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::optional<Numbers> found = numbers_at(without_separators(text.substr(at + word.size())));
    if (found && good(*found)) return found;
  }
  return std::nullopt;
}

// False for the number of TF32, which is a precision.
bool is_release(const Numbers& numbers) {
  constexpr int kOfTf32 = 32;
  return numbers.minor || numbers.major != kOfTf32;
}

bool is_year_and_month(const Numbers& numbers) {
  constexpr int kMonths = 12;
  return numbers.digits_of_major.size() == 2 && numbers.digits_of_minor.size() == 2 && *numbers.minor >= 1 &&
         *numbers.minor <= kMonths;
}

// The major version behind "cudnn": 7 of "7.6" and of "7605", 9 of "90100".
std::optional<int> cudnn_of(std::string_view text) {
  constexpr std::string_view kWord = "cudnn";
  const std::size_t at = text.find(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = without_separators(text.substr(at + kWord.size()));
  if (rest.empty() || !is_digit(rest[0])) return std::nullopt;
  const std::size_t digits = std::min(rest.find_first_not_of(kDigits), rest.size());
  constexpr std::size_t kDigitsOfAWholeVersion = 4;
  if (digits >= kDigitsOfAWholeVersion) return rest[0] - '0';
  const std::optional<Numbers> numbers = numbers_at(rest);
  return numbers ? std::optional(numbers->major) : std::nullopt;
}

std::optional<Numbers> numbers_of_framework(std::string_view text) {
  if (const auto found = numbers_at(text)) return found;
  for (const std::string_view word : kFrameworkWords) {
    if (const auto found = numbers_behind(word, text, is_release)) return found;
  }
  return std::nullopt;
}

// The release that a file stands for by one of its `versions`: a number with a point, or a container's.
std::optional<Release> named_release(std::string_view version) {
  const bool number = version.find('.') != std::string_view::npos &&
                      version.find_first_not_of("0123456789.") == std::string_view::npos;
  return number || version.starts_with("NGC ") ? release_in(version) : std::nullopt;
}

// True for what may follow the numbers of a release: nothing, further numbers, "a0", "rc1", "+cu113".
bool ends_a_release(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of("0123456789._x"), rest.size()));
  for (const std::string_view letters : {"a", "b", "rc"}) {
    if (!rest.starts_with(letters)) continue;
    rest.remove_prefix(letters.size());
    if (rest.empty() || !is_digit(rest[0])) return false;
    rest.remove_prefix(std::min(rest.find_first_not_of(kDigits), rest.size()));
    break;
  }
  return rest.empty() || rest[0] == '+';
}

}  // namespace

std::optional<Release> release_in(std::string_view written) {
  const std::string text = lower(written);
  Release release;
  release.cudnn = cudnn_of(text);
  std::optional<Numbers> found = numbers_behind("ngc", text, is_year_and_month);
  if (!found) found = numbers_behind("release", text, is_year_and_month);
  if (found) {
    release.of = ReleaseOf::container;
  } else if (text.find("ngc") != std::string::npos) {
    release.of = ReleaseOf::framework_in_container;
    found = numbers_behind("torch", text, is_release);
  } else {
    found = numbers_of_framework(text);
  }
  if (!found) return std::nullopt;
  release.major = found->major;
  release.minor = found->minor;
  return release;
}

std::optional<std::pair<std::string, std::string>> family_and_release(std::string_view name) {
  constexpr std::string_view kContainer = "ngc";
  std::string_view family = name.substr(0, name.find_first_of(kDigits));
  const std::string_view rest = name.substr(family.size());
  family = family.substr(0, family.find_last_not_of(kSeparators) + 1);
  std::string prefix;
  if (lower(family).ends_with(kContainer)) {
    prefix = "NGC ";
    family.remove_suffix(kContainer.size());
    family = family.substr(0, family.find_last_not_of(kSeparators) + 1);
  }
  const std::optional<Numbers> numbers = numbers_at(rest);
  if (family.empty() || !numbers || !is_release(*numbers) || !ends_a_release(lower(rest)))
    return std::nullopt;
  return std::pair(std::string(family), prefix + std::string(rest));
}

std::optional<std::size_t> nearest_release(const Release& release, std::span<const Framework* const> family) {
  const std::pair asked(release.major, release.minor.value_or(std::numeric_limits<int>::max()));
  using Rank = std::tuple<bool, bool, int, int>;  // the same cuDNN, not later, the order among such
  std::optional<std::pair<Rank, std::size_t>> best;
  for (std::size_t file = 0; file < family.size(); ++file) {
    for (const std::string& version : family[file]->versions) {
      const std::optional<Release> named = named_release(version);
      if (!named || named->of != release.of) continue;
      const std::pair own(named->major, named->minor.value_or(0));
      const bool earlier = own <= asked;
      const int sign = earlier ? 1 : -1;  // the latest of earlier ones, the earliest of later ones
      const auto cudnn = family[file]->libraries.find("cudnn");
      const bool same_cudnn =
          !release.cudnn || (cudnn != family[file]->libraries.end() && cudnn->second == *release.cudnn);
      const Rank rank(same_cudnn, earlier, sign * own.first, sign * own.second);
      if (!best || rank > best->first) best.emplace(rank, file);
    }
  }
  return best ? std::optional(best->second) : std::nullopt;
}

}  // namespace tbdsim
