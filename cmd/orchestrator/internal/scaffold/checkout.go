package scaffold

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// published is a version under which the module can be downloaded; one of a
// build from a checkout, such as v0.0.0-20260102030405-abcdefabcdef, cannot
// be relied upon.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+(\.\d+)*)?$`)

// Published reports whether the version is that of a release.
func Published(version string) bool { return published.MatchString(version) }

// IsCheckout reports whether the directory is the root of the module's source.
func IsCheckout(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); found {
			return strings.TrimSpace(name) == Module
		}
	}
	return false
}

// Checkout finds the module's source in or above one of the directories; empty
// when there is none.
func Checkout(directories ...string) string {
	for _, dir := range directories {
		for dir != "" {
			if IsCheckout(dir) {
				return dir
			}
			above := filepath.Dir(dir)
			if above == dir {
				break
			}
			dir = above
		}
	}
	return ""
}
