package author

import (
	"os"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/sdk"
)

// Payloads in the printed commands. The slow one runs for minutes.
const (
	payload     = `{"text": "hold fast"}`
	slowPayload = `{"text": "hold fast", "pauseMs": 300000}`
)

// language is what differs between languages.
type language struct {
	// prepare are the commands that test and build the project.
	prepare func(project) []string
	// binary is the path within the project of what an orchestrator launches.
	binary func(project) string
	// executable are the files that are executed directly.
	executable []string
	// sdk is the package of the SDK, which becomes a file of the project; nil for
	// none.
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

// target is the name of the file that a template makes.
func (l *language) target(template string) string {
	name := strings.TrimSuffix(template, ".tmpl")
	if name == "gitignore" {
		return ".gitignore" // the template would hide others under this name
	}
	return name
}

func (l *language) mode(template string) os.FileMode {
	if slices.Contains(l.executable, l.target(template)) {
		return 0o755
	}
	return 0o644
}

// commands are what to paste into a shell next, one after another. The last but one
// keeps running, and the last is for another shell.
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

// quote makes a text one word of a shell command.
func quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@%+,"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
