package licenses

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/swaggest/swgui/v5/static"
)

var update = flag.Bool("update", false, "write third_party.txt anew")

// swaggerBundle is the SHA-256 of the one file of Swagger UI that has the code of
// others in it. When it is another, put the license files of the release that it
// is from (npm pack swagger-ui-dist) into swagger-ui, and its sum here.
const swaggerBundle = "a600ebf8f885c92373e2210b1fd7422b24a4ff9cad93d3d7d6481f40b7704564"

const head = `THIRD-PARTY SOFTWARE

The programs orchestrator and handlers contain the software that is listed below,
under the licenses whose texts follow each list. The source of a Go module is at
https://pkg.go.dev/MODULE@VERSION.
`

// licenseFile knows the files that have a license, or what must go along with one.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents)([-.].*)?$`)

// platforms are those whose dependencies are listed: a module may be linked on
// one of them alone.
var platforms = [][]string{
	{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"},
	{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"},
	{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"},
	{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"},
	{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=1"},
}

func goCommand(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Env = append(os.Environ(), environ...)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	require.NoError(t, err, errs.String())
	return strings.TrimSpace(string(out))
}

// linked returns the directories of all packages that are linked into the
// programs, by the module that they are of and its directory.
func linked(t *testing.T) map[[2]string][]string {
	t.Helper()
	modules := map[[2]string][]string{}
	for _, platform := range platforms {
		listed := goCommand(t, platform, "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "github.com/holdfast-jobs/holdfast/cmd/...")
		for line := range strings.Lines(listed) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) == 3 {
				module := [2]string{fields[0], fields[1]}
				modules[module] = append(modules[module], fields[2])
			}
		}
	}
	return modules
}

// textsIn returns the texts of a module's license files: of those at its root and
// above the packages that are linked.
func textsIn(t *testing.T, root string, packages []string) []string {
	t.Helper()
	directories := map[string]bool{root: true}
	for _, directory := range packages {
		for ; len(directory) > len(root); directory = filepath.Dir(directory) {
			directories[directory] = true
		}
	}
	var texts []string
	for _, directory := range slices.Sorted(maps.Keys(directories)) {
		entries, err := os.ReadDir(directory)
		require.NoError(t, err)
		for _, entry := range entries {
			if entry.Type().IsRegular() && licenseFile.MatchString(entry.Name()) {
				text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
				require.NoError(t, err)
				texts = append(texts, string(text))
			}
		}
	}
	return texts
}

// gather is what third_party.txt should be.
func gather(t *testing.T) string {
	t.Helper()
	users := map[string][]string{} // by text
	add := func(name string, texts []string) {
		require.NotEmpty(t, texts, "%s has no license", name)
		for _, text := range texts {
			text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
			if !slices.Contains(users[text], name) {
				users[text] = append(users[text], name)
			}
		}
	}
	for module, packages := range linked(t) {
		add(module[0], textsIn(t, module[1], packages))
	}
	add("The Go standard library", textsIn(t, goCommand(t, nil, "env", "GOROOT"), nil))
	add("Swagger UI", textsIn(t, "swagger-ui", nil))
	vendored, err := filepath.Glob("../../../../api/ui/assets/files/vendor/*/LICENSE")
	require.NoError(t, err)
	for _, file := range vendored {
		add(filepath.Base(filepath.Dir(file))+" (npm)", textsIn(t, filepath.Dir(file), nil))
	}
	bundled, err := os.ReadFile("swagger-ui/swagger-ui-bundle.js.LICENSE.txt")
	require.NoError(t, err)
	add("JavaScript libraries in Swagger UI", []string{string(bundled)})

	texts := slices.Collect(maps.Keys(users))
	for _, names := range users {
		slices.Sort(names)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(slices.Compare(users[a], users[b]), strings.Compare(a, b))
	})
	var out strings.Builder
	out.WriteString(head)
	for _, text := range texts {
		out.WriteString("\n" + strings.Repeat("=", 80) + "\n" + strings.Join(users[text], "\n") + "\n" + strings.Repeat("-", 80) + "\n\n" + text + "\n")
	}
	return out.String()
}

func TestTheLicensesAreThoseOfWhatIsLinked(t *testing.T) {
	for _, name := range []string{"go.mod", "go.sum"} { // a result that is kept is not for others
		_, err := os.ReadFile(filepath.Join("../../../..", name))
		require.NoError(t, err)
	}
	gathered := gather(t)
	if *update {
		require.NoError(t, os.WriteFile("third_party.txt", []byte(gathered), 0o644))
		return
	}
	if gathered != ThirdParty {
		t.Fatal("third_party.txt is not current: run make licenses")
	}
}

func TestTheLicensesOfSwaggerUIAreThoseOfItsRelease(t *testing.T) {
	file, err := static.FS.Open("swagger-ui-bundle.js.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	bundle, err := gzip.NewReader(file)
	require.NoError(t, err)
	sum := sha256.New()
	_, err = io.Copy(sum, bundle)
	require.NoError(t, err)
	require.Equal(t, swaggerBundle, hex.EncodeToString(sum.Sum(nil)))
}
