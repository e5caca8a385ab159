package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobLog says which attempts get a line in the log when they have ended.
type JobLog string

const (
	// LogAll gives each a line.
	LogAll JobLog = "all"
	// LogSampled gives a line to the first of each outcome in a second, and counts the
	// others in one more line.
	LogSampled JobLog = "sampled"
	// LogNone gives none a line.
	LogNone JobLog = "none"
)

// How many sampled lines each outcome gets in a second. People look into the log for
// what went wrong.
const (
	linesOfSuccess = 5
	linesOfOthers  = 50
)

// attemptLog writes a line for each attempt whose end is in the ledger. It leaves out
// the payload, the result, and the text of an error, which may contain parts of the
// payload.
type attemptLog struct {
	log   *slog.Logger
	which JobLog

	mu sync.Mutex
	// ended counts the attempts that have ended in this second.
	ended map[job.OutcomeKind]int
	// second ends it; nil while no attempt has ended in it.
	second *time.Timer
}

func newAttemptLog(log *slog.Logger, which JobLog) *attemptLog {
	return &attemptLog{log: log, which: which, ended: make(map[job.OutcomeKind]int)}
}

// settled takes an attempt whose end is in the ledger.
func (l *attemptLog) settled(e *ending) {
	if l.which == LogNone || !l.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if l.which == LogSampled && !l.admits(e.decision.Kind) {
		return
	}
	l.write(e)
}

func (l *attemptLog) write(e *ending) {
	attrs := append(make([]slog.Attr, 0, 12),
		slog.String("job_id", e.lease.JobID.String()), slog.String("job_type", e.jobType), slog.Int("attempt", e.history.Attempt),
		slog.Int64("fence", e.lease.Fence), slog.String("outcome", string(e.decision.Kind)), slog.String("state", string(e.decision.To)))
	if e.outcome.Code != "" {
		attrs = append(attrs, slog.String("error_code", e.outcome.Code))
	}
	if e.pool != nil {
		attrs = append(attrs, slog.String("plugin", e.pool.Plugin), slog.String("plugin_version", e.pool.Version))
	}
	if e.ran {
		attrs = append(attrs, slog.Float64("seconds", e.took.Seconds()))
	}
	if e.lostBy != "" {
		attrs = append(attrs, slog.String("lost_by", e.lostBy))
	}
	if id := e.trace.ID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "attempt ended", attrs...)
}

// admits counts an attempt, and returns whether it is among the first.
func (l *attemptLog) admits(outcome job.OutcomeKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.second == nil {
		l.second = time.AfterFunc(time.Second, l.sum)
	}
	l.ended[outcome]++
	return l.ended[outcome] <= linesOf(outcome)
}

func linesOf(outcome job.OutcomeKind) int {
	if outcome == job.Success {
		return linesOfSuccess
	}
	return linesOfOthers
}

// sum ends a second: it logs how many attempts got no line.
func (l *attemptLog) sum() {
	l.mu.Lock()
	var unlogged []any
	for _, outcome := range job.OutcomeKinds() {
		if more := l.ended[outcome] - linesOf(outcome); more > 0 {
			unlogged = append(unlogged, slog.Int(string(outcome), more))
		}
	}
	clear(l.ended)
	l.second = nil
	l.mu.Unlock()
	if len(unlogged) > 0 {
		l.log.Info("more attempts ended", slog.Group("attempts", unlogged...))
	}
}

// close logs the sum of the last second. Nothing may be settled after it.
func (l *attemptLog) close() {
	l.mu.Lock()
	waits := l.second != nil && l.second.Stop()
	l.mu.Unlock()
	if waits {
		l.sum()
	}
}
