package scaffold

import (
	"os"
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
	sdk func() ([]file, error)
}

var languages = map[string]*language{
	"go": {
		prepare: func(p Project) []string {
			return []string{"go mod tidy", "go test ./...", "go build -o bin/" + p.Name + " ."}
		},
		binary: func(p Project) string { return "bin/" + p.Name },
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
	for _, name := range l.executable {
		if l.target(template) == name {
			return 0o755
		}
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
	commands := append([]string{"cd " + Quote(p.Dir)}, l.prepare(p)...)
	return append(commands,
		p.Orchestrator+" handlers run "+l.binary(p)+" --payload "+Quote(payload),
		p.Orchestrator+" handlers check "+l.binary(p)+" --payload "+Quote(payload)+" --slow-payload "+Quote(slowPayload),
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
