package author

import (
	"os"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/sdk"
)

// Payloads for the commands that are printed. The slow one runs for minutes.
const (
	payload     = `{"text": "hold fast"}`
	slowPayload = `{"text": "hold fast", "pauseMs": 300000}`
)

// language is what is peculiar to one.
type language struct {
	// prepare are the commands that lead to a binary that passes its test.
	prepare func(project) []string
	// binary is the path of what an orchestrator launches, within the project.
	binary func(project) string
	// executable are the files that are run as they are.
	executable []string
	// sdk is the package of the SDK, which becomes a file of the project; nil when
	// the project gets the SDK otherwise.
	sdk func() (file, error)
}

var languages = map[string]*language{
	"go": {
		prepare: func(p project) []string {
			return []string{"go mod tidy", "go test ./...", "go build -o bin/" + p.Name + " ."}
		},
		binary: func(p project) string { return "bin/" + p.Name },
	},
	"python": {
		prepare:    preparePython,
		binary:     func(project) string { return "./handler.py" },
		executable: []string{"handler.py"},
		sdk:        func() (file, error) { return vendored(sdk.Wheel()) },
	},
	"node": {
		prepare:    func(project) []string { return []string{"npm install", "npm test"} },
		binary:     func(project) string { return "./main.js" },
		executable: []string{"main.js"},
		sdk:        func() (file, error) { return vendored(sdk.Tarball()) },
	},
}

// target is the file that a template becomes.
func (l *language) target(template string) string {
	name := strings.TrimSuffix(template, ".tmpl")
	if name == "gitignore" {
		return ".gitignore" // as a template it would hide others
	}
	return name
}

func (l *language) mode(template string) os.FileMode {
	if slices.Contains(l.executable, l.target(template)) {
		return 0o755
	}
	return 0o644
}

// Commands are what to do next, to be pasted into a shell one after another.
// The last but one goes on running; the last is for another shell.
func (p project) commands() []string {
	l := languages[p.Lang]
	jobType := p.Type
	if jobType == "" {
		jobType = typeOf(p.Name)
	}
	binary := l.binary(p)
	commands := append([]string{"cd " + quote(p.Dir)}, l.prepare(p)...)
	return append(commands,
		p.Orchestrator+" plugins run "+binary+" --payload "+quote(payload),
		p.Orchestrator+" plugins check "+binary+" --payload "+quote(payload)+" --slow-payload "+quote(slowPayload),
		p.Orchestrator+" serve",
		p.Orchestrator+" submit "+jobType+" --payload "+quote(payload)+" --wait")
}

// quote makes one word of a text for a shell.
func quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@%+,"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
