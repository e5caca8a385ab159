package author

import (
	"context"
	"log/slog"
	"strings"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const timeOfDay = "15:04:05.000 "

// showLog prints a line that the handler has logged above the one that shows the
// progress.
func showLog(line *show.Line, said job.LogLine) {
	text := strings.ToUpper(string(said.Level)) + " " + said.Message
	if len(said.Attributes) > 0 {
		text += " " + string(said.Attributes)
	}
	line.Above(said.Time.Local().Format(timeOfDay) + show.Clean(text) + "\n")
}

// newLog shows what the process prints and what goes wrong with it, in the same
// way. It leaves out the supervisor's other messages, and what handlers log:
// showLog has printed that.
func newLog(line *show.Line) *slog.Logger { return slog.New(&logLines{line: line}) }

type logLines struct{ line *show.Line }

// Enabled implements slog.Handler.
func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. There is one plugin and one process.
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *logLines) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	text, printed, ofHandler := r.Level.String()+" "+r.Message, "", false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "line":
			printed = a.Value.String()
		case "job_id":
			ofHandler = true
		}
		text += " " + a.Key + "=" + a.Value.String()
		return true
	})
	switch {
	case r.Message == host.LaunchFailed: // the command's error says why
		return nil
	case printed != "":
		text = "printed: " + printed
	case ofHandler, r.Level < slog.LevelWarn:
		return nil
	}
	l.line.Above(r.Time.Format(timeOfDay) + show.Clean(text) + "\n")
	return nil
}
