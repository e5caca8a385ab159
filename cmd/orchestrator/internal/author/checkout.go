package author

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// published matches the version of a release, which can be downloaded. A build from
// a checkout has a version such as v0.0.0-20260102030405-abcdefabcdef.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+(\.\d+)*)?$`)

// isRelease reports whether the version is that of a release.
func isRelease(version string) bool { return published.MatchString(version) }

// isCheckout reports whether the directory is the root of the module's source.
func isCheckout(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); found {
			return strings.TrimSpace(name) == module
		}
	}
	return false
}

// findCheckout finds the module's source in or above one of the directories; empty
// if there is none.
func findCheckout(directories ...string) string {
	for _, dir := range directories {
		for dir != "" {
			if isCheckout(dir) {
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
