#!/bin/sh
# The browser that tests of the page drive, and a font with 中文: Debian's, installed where absent and where this may be.
# Ends well in any case: without a browser its tests are skipped, and say so.
set -u

found() { command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; }
font() { command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=zh 2>/dev/null | head -n 1)" ]; }

if found && font; then exit 0; fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
  echo "no Chromium or no font with 中文: tests of the page are skipped (Debian: apt-get install chromium fonts-noto-cjk)"
  exit 0
fi
echo "installing Debian's chromium and fonts-noto-cjk for the tests of the page …"
log=$(mktemp)
if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-noto-cjk fontconfig; } >"$log" 2>&1
then rm -f "$log"
else echo "they could not be installed; tests of the page are skipped. The log: $log"
fi
exit 0
