package host

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// log reports a record to the attempt that it belongs to, nil for none, and logs
// it as often as the process may print.
func (p *process) log(a *attempt, record *handlerv1.Log) {
	line := message.ReadLog(record)
	if a != nil {
		a.reporter.Log(line)
	}
	if !p.child.Output().Allow() {
		return
	}
	attributes := make([]slog.Attr, 0, 7)
	if a != nil {
		attributes = append(attributes, slog.String("job_id", a.jobID.String()),
			slog.String("job_type", a.jobType), slog.Int("attempt", a.number), slog.Int64("fence", a.fence))
		if id := a.trace.ID(); id != "" {
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

var levels = map[job.LogLevel]slog.Level{
	job.LogDebug: slog.LevelDebug, job.LogInfo: slog.LevelInfo, job.LogWarn: slog.LevelWarn, job.LogError: slog.LevelError,
}
