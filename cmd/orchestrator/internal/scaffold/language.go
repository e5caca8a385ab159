package scaffold

import (
	"os"
	"slices"
	"strings"
)

// Payloads for the commands that are printed. The slow one runs for minutes.
const (
	payload     = `{"text": "hold fast"}`
	slowPayload = `{"text": "hold fast", "pauseMs": 300000}`
)

// language is what is peculiar to one.
type language struct {
	// prepare are the commands that lead to a binary that passes its test.
	prepare func(Project) []string
	// binary is the path of what an orchestrator launches, within the project.
	binary func(Project) string
	// executable are the files that are run as they are.
	executable []string
	// sdk are files that the project brings along; nil when it gets the SDK
	// otherwise.
	sdk func(Project) ([]file, error)
}

var languages = map[string]*language{
	"go": {
		prepare: func(p Project) []string {
			return []string{"go mod tidy", "go test ./...", "go build -o bin/" + p.Name + " ."}
		},
		binary: func(p Project) string { return "bin/" + p.Name },
	},
	"python": {
		prepare:    preparePython,
		binary:     func(Project) string { return "./handler.py" },
		executable: []string{"handler.py"},
		sdk:        func(Project) ([]file, error) { return sdkOf("python") },
	},
	"node": {
		prepare:    func(Project) []string { return []string{"npm ci", "npm test"} },
		binary:     func(Project) string { return "./main.js" },
		executable: []string{"main.js"},
		sdk:        nodeSDK,
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
func (p Project) Commands() []string {
	l := languages[p.Lang]
	jobType := p.Type
	if jobType == "" {
		jobType = TypeOf(p.Name)
	}
	binary := l.binary(p)
	commands := append([]string{"cd " + Quote(p.Dir)}, l.prepare(p)...)
	return append(commands,
		p.Orchestrator+" handlers run "+binary+" --payload "+Quote(payload),
		p.Orchestrator+" handlers check "+binary+" --payload "+Quote(payload)+" --slow-payload "+Quote(slowPayload),
		p.Orchestrator+" serve",
		p.Orchestrator+" submit "+jobType+" --payload "+Quote(payload)+" --wait")
}

// Quote makes one word of a text for a shell.
func Quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:@%+,"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
