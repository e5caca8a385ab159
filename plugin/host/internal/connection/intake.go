package connection

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// An attempt may report this much a second, log lines included, without delay. SDKs
// send far less: if a handler reports in a loop, they send only the last value.
const (
	freeReports = 200
	freeBytes   = 4 << 20
)

// Each report beyond that delays the next read from the process.
const (
	perReport = 100 * time.Microsecond
	perMiB    = 15 * time.Millisecond
)

// usualBytes is more than an SDK puts into one message, unless the message holds a
// single large item. The bytes beyond it delay the next read.
const usualBytes = 4 << 20

// Delays add up until they reach minPause. No pause is longer than maxPause.
const (
	minPause = 5 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// intake passes the reports of a process on to its attempts. If a process reports too
// much, intake reads from it later, so that the pipe fills up instead of the
// orchestrator's memory. This does not slow down other processes, which have their own
// streams.
type intake struct {
	process *Process
	caps    Caps
	now     time.Time
	// delay has added up since the last pause.
	delay time.Duration
	// room is closed when a reporter can take more; nil if it can already.
	room <-chan struct{}
}

// quota is what an attempt has reported in the present second.
type quota struct {
	second  time.Time
	reports int
	bytes   int
}

func (in *intake) received(box *message.Inbox) error {
	in.chargeBytes(box.Bytes() - usualBytes)
	for part, err := range box.Parts(in.caps.longest()) {
		if err != nil {
			return err
		}
		in.now = time.Now()
		in.take(part)
		in.pause()
	}
	return nil
}

// take handles reports before outcomes, which end their attempts.
func (in *intake) take(part *handlerv1.WorkResponse) {
	for _, record := range part.GetLogs() {
		a := in.process.running(record.GetHandle())
		in.charge(a, len(record.GetMessage())+len(record.GetAttributes()))
		in.log(a, record)
	}
	for _, progress := range part.GetProgress() {
		if a := in.attemptOf(progress.GetHandle(), "progress", progress.GetProgress()); a != nil {
			in.progress(a, progress.GetProgress())
		}
	}
	for _, checkpoint := range part.GetCheckpoints() {
		if a := in.attemptOf(checkpoint.GetHandle(), "checkpoint", checkpoint.GetCheckpoint()); a != nil {
			in.checkpoint(a, checkpoint.GetCheckpoint())
		}
	}
	if len(part.GetOutcomes()) > 0 {
		in.process.finish(part.GetOutcomes())
	}
}

// attemptOf returns the attempt that the value belongs to; nil for none.
func (in *intake) attemptOf(handle uint64, what string, value []byte) *Attempt {
	a := in.process.running(handle)
	in.charge(a, len(value))
	if a == nil {
		in.process.complain("plugin reports on an attempt that is not running", handle, what)
	}
	return a
}

// progress drops a value that is too large or not JSON.
func (in *intake) progress(a *Attempt, value []byte) {
	switch {
	case len(value) > in.caps.Progress:
		in.process.complain("plugin reports a value that is too large", a.handle, "progress")
		if !a.dropped {
			a.dropped = true
			a.reporter.Log(job.LogLine{
				Time: in.now.UTC(), Level: job.LogWarn,
				Message: fmt.Sprintf("progress was dropped: it is larger than %d bytes", in.caps.Progress),
			})
		}
	case !message.IsJSON(value):
		in.process.complain("plugin reports a value that is not JSON", a.handle, "progress")
	default:
		in.waitFor(a.reporter.Progress(value))
	}
}

// checkpoint fails the attempt if the value is too large: if it were dropped, the next
// attempt would resume from an older checkpoint.
func (in *intake) checkpoint(a *Attempt, value []byte) {
	switch {
	case len(value) > in.caps.Checkpoint:
		in.process.complain("plugin reports a value that is too large", a.handle, "checkpoint")
		a.reject(message.CheckpointTooLarge(in.caps.Checkpoint))
	case !message.IsJSON(value):
		in.process.complain("plugin reports a value that is not JSON", a.handle, "checkpoint")
	default:
		in.waitFor(a.reporter.Checkpoint(value))
	}
}

var levels = map[job.LogLevel]slog.Level{
	job.LogDebug: slog.LevelDebug, job.LogInfo: slog.LevelInfo, job.LogWarn: slog.LevelWarn, job.LogError: slog.LevelError,
}

// log passes a record to its attempt, and logs it unless the limit for output is
// reached. The attempt is nil if the record belongs to none.
func (in *intake) log(a *Attempt, record *handlerv1.Log) {
	out := in.process.child.Output()
	line := message.ReadLog(record)
	if a != nil {
		a.reporter.Log(line)
	}
	if !out.Allow() {
		return
	}
	attributes := make([]slog.Attr, 0, 7)
	if a != nil {
		attributes = append(attributes, slog.String("job_id", a.jobID.String()),
			slog.String("job_type", a.JobType), slog.Int("attempt", a.number), slog.Int64("fence", a.fence))
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
	out.Log.LogAttrs(context.Background(), levels[line.Level], line.Message, attributes...)
}

func (in *intake) waitFor(room <-chan struct{}) {
	if room != nil {
		in.room = room
	}
}

// charge counts a report. A report that belongs to no attempt always causes a delay.
func (in *intake) charge(a *Attempt, bytes int) {
	if a == nil {
		in.delay += perReport
		in.chargeBytes(bytes)
		return
	}
	if q := &a.recent; in.now.Sub(q.second) >= time.Second {
		*q = quota{second: in.now}
	}
	a.recent.reports++
	a.recent.bytes += bytes
	if a.recent.reports > freeReports {
		in.delay += perReport
	}
	if a.recent.bytes > freeBytes {
		in.chargeBytes(bytes)
	}
}

func (in *intake) chargeBytes(bytes int) {
	if bytes > 0 {
		in.delay += perMiB * time.Duration(bytes) >> 20
	}
}

// pause waits until there is room, and then for the delay of the reports. If the
// process is gone, it reads the rest without delay.
func (in *intake) pause() {
	p := in.process
	if in.room != nil {
		select {
		case <-in.room:
		case <-p.child.Gone():
		case <-p.stream.Context().Done():
		}
		in.room = nil
	}
	if in.delay < minPause {
		return
	}
	timer := time.NewTimer(min(in.delay, maxPause))
	defer timer.Stop()
	in.delay = 0
	select {
	case <-timer.C:
	case <-p.child.Gone():
	case <-p.stream.Context().Done():
	}
}
