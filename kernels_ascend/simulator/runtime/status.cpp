#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <utility>

#include "settings.h"

namespace sim {
namespace {
std::string &LastText() {
  static thread_local std::string text;
  return text;
}
Status &LastNumber() {
  static thread_local Status status = kOk;
  return status;
}
std::string Printed(const char *format, va_list arguments) {
  char line[2048];
  vsnprintf(line, sizeof line, format, arguments);
  return line;
}
}  // namespace

std::string Format(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = Printed(format, arguments);
  va_end(arguments);
  return text;
}

void Log(int level, const char *format, ...) {
  if (level > TheSettings().log) return;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "[simulated NPU, process %d] %s\n", getpid(), Printed(format, arguments).c_str());
  va_end(arguments);
}

Status Report(Status status, const std::string &text) {
  LastText() = "[simulated NPU] " + text;
  LastNumber() = status;
  Log(1, "error %d: %s", status, text.c_str());
  return status;
}

Status LastStatus() { return LastNumber(); }
Status TakeStatus() { return std::exchange(LastNumber(), kOk); }
const char *LastReport() { return LastText().c_str(); }
const char *TakeReport() {
  static thread_local std::string taken;
  taken = std::exchange(LastText(), "");
  return taken.c_str();
}
}  // namespace sim
