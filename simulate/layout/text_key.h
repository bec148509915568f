// Members of a struct that are set by name from text: of flags, of columns of a table, of a YAML file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tbdsim {

// A whole number from `least` to `most`. Throws UsageError.
[[nodiscard]] std::int64_t number_of(std::string_view key, const std::string& value, std::int64_t least,
                                     std::int64_t most);
// A number from `least` to `most`. Throws UsageError.
[[nodiscard]] double real_of(std::string_view key, const std::string& value, double least, double most);
// true, yes, false or no. Throws UsageError.
[[nodiscard]] bool flag_of(std::string_view key, const std::string& value);
// The index of the value among the names. Throws UsageError, with "did you mean".
[[nodiscard]] std::size_t choice_of(std::string_view key, const std::string& value,
                                    std::span<const std::string_view> names);

// A name, and what sets the member of that name. `set` throws UsageError for a value that is out of range.
template <class Owner>
struct TextKey {
  std::string_view name;
  void (*set)(Owner& owner, std::string_view key, const std::string& value);
};

template <auto Member, std::int64_t Least, std::int64_t Most, class Owner>
void set_number(Owner& owner, std::string_view key, const std::string& value) {
  using Number = std::remove_reference_t<decltype(owner.*Member)>;
  owner.*Member = static_cast<Number>(number_of(key, value, Least, Most));
}

template <auto Member, class Owner>
void set_flag(Owner& owner, std::string_view key, const std::string& value) {
  owner.*Member = flag_of(key, value);
}

template <class Owner, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> names_of(const TextKey<Owner> (&keys)[N]) {
  std::array<std::string_view, N> names{};
  for (std::size_t i = 0; i < N; ++i) names[i] = keys[i].name;
  return names;
}

// Sets what the key names; nothing where none of the keys has this name.
template <class Owner, std::size_t N>
void set_by_name(const TextKey<Owner> (&keys)[N], Owner& owner, std::string_view key,
                 const std::string& value) {
  for (const TextKey<Owner>& known : keys) {
    if (known.name == key) known.set(owner, key, value);
  }
}

}  // namespace tbdsim
