package host

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxLogText is how much of a log record's message is logged, in bytes, and how
// long its attributes may be.
const maxLogText = 16 << 10

// log reports a record to the attempt that it belongs to, and logs it as often
// as the process may print.
func (p *process) log(record *handlerv1.Log) {
	p.mu.Lock()
	a := p.attempts[record.GetHandle()]
	p.mu.Unlock()
	line := readLog(record)
	if a != nil {
		a.reporter.Log(line)
	}
	if !p.child.Output().Allow() {
		return
	}
	attributes := make([]slog.Attr, 0, 6)
	if a != nil {
		attributes = append(attributes, slog.String("job_id", a.jobID.String()),
			slog.String("job_type", a.jobType), slog.Int("attempt", a.number))
		if id := a.traceID(); id != "" {
			attributes = append(attributes, slog.String("trace_id", id))
		}
	}
	if len(line.Attributes) > 0 {
		attributes = append(attributes, slog.Any("attributes", line.Attributes))
	}
	if record.GetTime() != "" {
		attributes = append(attributes, slog.String("plugin_time", job.CleanText(record.GetTime(), 64)))
	}
	p.child.Output().Log.LogAttrs(context.Background(), levels[line.Level], line.Message, attributes...)
}

// readLog takes what can be used of a record: logging is never a reason to end
// anything.
func readLog(record *handlerv1.Log) job.LogLine {
	line := job.LogLine{
		Level: job.LogInfo, Message: job.CleanText(record.GetMessage(), maxLogText),
		Dropped: int(min(record.GetDropped(), math.MaxInt32)),
	}
	line.Truncated = len(record.GetMessage()) > maxLogText
	switch record.GetLevel() {
	case handlerv1.Log_LEVEL_DEBUG:
		line.Level = job.LogDebug
	case handlerv1.Log_LEVEL_WARN:
		line.Level = job.LogWarn
	case handlerv1.Log_LEVEL_ERROR:
		line.Level = job.LogError
	case handlerv1.Log_LEVEL_INFO, handlerv1.Log_LEVEL_UNSPECIFIED:
	}
	if raw := record.GetAttributes(); len(raw) > maxLogText {
		line.Truncated = true
	} else if isObject(raw) {
		line.Attributes = raw
	}
	said, err := time.Parse(time.RFC3339Nano, record.GetTime())
	line.Time = said.UTC()
	if year := line.Time.Year(); err != nil || year < 1 || year > 9999 { // which JSON has no times of
		line.Time = time.Now().UTC()
	}
	return line
}

func isObject(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && isJSON(text)
}

var levels = map[job.LogLevel]slog.Level{
	job.LogDebug: slog.LevelDebug, job.LogInfo: slog.LevelInfo, job.LogWarn: slog.LevelWarn, job.LogError: slog.LevelError,
}
