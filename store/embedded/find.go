package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// oldestMajor is the oldest PostgreSQL that the schema works on.
const oldestMajor = 14

// ErrNoPostgres says that no usable PostgreSQL is installed. The error that wraps it
// names the commands that install one.
var ErrNoPostgres = errors.New("no usable PostgreSQL found")

const advice = `install PostgreSQL %d or newer with one of
  Debian, Ubuntu:  sudo apt-get install -y postgresql
  Fedora, RHEL:    sudo dnf install -y postgresql-server
  macOS:           brew install postgresql@17
or start Docker, or configure the URL of a PostgreSQL that runs elsewhere`

// usualDirectories are where packages put binaries that are not on $PATH.
var usualDirectories = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // PGDG on Fedora and RHEL
	"/usr/lib*/pgsql/bin",
	"/usr/lib/postgresql*/bin", // SUSE
	"/usr/libexec/postgresql*", // Alpine
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// installation is a directory with initdb and postgres.
type installation struct {
	dir   string
	major int
}

// find returns the first installation that can serve the home. It searches only binDir
// if that is set, else $PATH, pg_config's directory and the usual ones. An existing
// cluster needs the version that made it.
func find(ctx context.Context, binDir string, home home) (installation, error) {
	needed := clusterVersion(home.data())
	var rejected []string
	for dir := range candidates(ctx, binDir) {
		found, err := inspect(ctx, dir, home.owner)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			rejected = append(rejected, err.Error())
		case found.major < oldestMajor:
			rejected = append(rejected, fmt.Sprintf("%s has version %d", dir, found.major))
		case needed != "" && needed != strconv.Itoa(found.major):
			rejected = append(rejected, fmt.Sprintf("%s has version %d", dir, found.major))
		default:
			return found, nil
		}
	}
	if ctx.Err() != nil {
		return installation{}, context.Cause(ctx)
	}
	seen := ""
	if len(rejected) > 0 {
		seen = " (" + strings.Join(rejected, "; ") + ")"
	}
	if needed != "" {
		return installation{}, fmt.Errorf("%w%s: the data in %s was made by PostgreSQL %s; install that version, or move the data with pg_dumpall",
			ErrNoPostgres, seen, home.data(), needed)
	}
	if binDir != "" {
		return installation{}, fmt.Errorf("%w in the configured directory %s%s: %s",
			ErrNoPostgres, binDir, seen, fmt.Sprintf(advice, oldestMajor))
	}
	return installation{}, fmt.Errorf("%w%s: %s", ErrNoPostgres, seen, fmt.Sprintf(advice, oldestMajor))
}

// candidates yields directories in order of preference. They may not exist.
func candidates(ctx context.Context, binDir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if binDir != "" {
			yield(binDir)
			return
		}
		if path, err := exec.LookPath("initdb"); err == nil {
			// A link in /usr/local/bin leads to the directory with the other binaries.
			if target, err := filepath.EvalSymlinks(path); err == nil && !yield(filepath.Dir(target)) {
				return
			}
		}
		if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
			if !yield(strings.TrimSpace(string(out))) {
				return
			}
		}
		for _, pattern := range usualDirectories {
			for _, dir := range newestFirst(pattern) {
				if !yield(dir) {
					return
				}
			}
		}
	}
}

var number = regexp.MustCompile(`\d+`)

func newestFirst(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil // only for a bad pattern, and tests cover all of ours
	}
	version := func(dir string) int {
		numbers := number.FindAllString(dir, -1)
		if len(numbers) == 0 {
			return 0 // sorts last
		}
		n, _ := strconv.Atoi(numbers[len(numbers)-1])
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// inspect asks the binaries in dir for their version, as the user that will run them.
// If there are none, the error wraps fs.ErrNotExist.
func inspect(ctx context.Context, dir string, owner account) (installation, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return installation{}, err
		}
	}
	cmd := childOf(ctx, home{dir: "/", owner: owner}, filepath.Join(dir, "postgres"), []string{"--version"}, syscall.SIGKILL)
	out, err := outputOf(ctx, cmd)
	if err != nil {
		return installation{}, fmt.Errorf("%s: %w", dir, err)
	}
	match := versionLine.FindStringSubmatch(out)
	if match == nil {
		return installation{}, fmt.Errorf("%s says %q about its version", dir, out)
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return installation{}, fmt.Errorf("%s: %w", dir, err)
	}
	return installation{dir: dir, major: major}, nil
}

// hasLZ4 reports whether the server can compress the pages in its log with LZ4, which
// depends on how it was built. The only other method costs more than it saves.
func (i installation) hasLZ4(ctx context.Context, home home) bool {
	args := []string{"-D", home.data(), "-c", "wal_compression=lz4", "-C", "wal_compression"}
	_, err := outputOf(ctx, childOf(ctx, home, filepath.Join(i.dir, "postgres"), args, syscall.SIGKILL))
	return err == nil
}

// clusterVersion is the major version of the cluster in dir, or "" if there is none.
func clusterVersion(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
