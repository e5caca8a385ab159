package host

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What an attempt may report in a second, log lines included, without slowing
// down how its process is read. SDKs send far less: of what a handler reports in
// a loop they send the last.
const (
	freeReports = 200
	freeBytes   = 4 << 20
)

// What reports beyond that cost: the process is read no further for so long.
const (
	perReport = 100 * time.Microsecond
	perMiB    = 15 * time.Millisecond
)

// usualBytes is more than a message of an SDK has, which sends a single large
// item alone. A larger one costs what it has more.
const usualBytes = 4 << 20

// The pauses that reading makes: shorter ones add up first, and none is longer.
const (
	minPause = 5 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// intake hands what a process reports to its attempts. It slows the process down
// that reports without end, by reading on later: its pipe fills, and neither the
// orchestrator's memory nor its processors' time. Other processes have streams of
// their own.
type intake struct {
	process *process
	caps    Caps
	now     time.Time
	// owed is the pause that has added up.
	owed time.Duration
	// room is closed when there is room for more; nil while there is.
	room <-chan struct{}
}

// quota is what an attempt has reported in its present second.
type quota struct {
	second  time.Time
	reports int
	bytes   int
}

// received takes a message.
func (in *intake) received(box *message.Inbox) error {
	in.owe(box.Bytes() - usualBytes)
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

// take hands on reports before outcomes, which end their attempts.
func (in *intake) take(part *handlerv1.WorkResponse) {
	p := in.process
	for _, record := range part.GetLogs() {
		a := p.running(record.GetHandle())
		in.count(a, len(record.GetMessage())+len(record.GetAttributes()))
		p.log(a, record)
	}
	for _, progress := range part.GetProgress() {
		if a := in.hears(progress.GetHandle(), "progress", progress.GetProgress()); a != nil {
			in.progress(a, progress.GetProgress())
		}
	}
	for _, checkpoint := range part.GetCheckpoints() {
		if a := in.hears(checkpoint.GetHandle(), "checkpoint", checkpoint.GetCheckpoint()); a != nil {
			in.checkpoint(a, checkpoint.GetCheckpoint())
		}
	}
	if len(part.GetOutcomes()) > 0 {
		p.finish(part.GetOutcomes())
	}
}

// hears returns the attempt that the value belongs to; nil when there is none.
func (in *intake) hears(handle uint64, what string, value []byte) *attempt {
	a := in.process.running(handle)
	in.count(a, len(value))
	if a == nil {
		in.process.complain("plugin reports on an attempt that is not running", handle, what)
	}
	return a
}

// progress drops a value that is too large or not JSON.
func (in *intake) progress(a *attempt, value []byte) {
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
		in.wait(a.reporter.Progress(value))
	}
}

// checkpoint fails the attempt when the value is too large: the next one would go
// on from an older checkpoint.
func (in *intake) checkpoint(a *attempt, value []byte) {
	switch {
	case len(value) > in.caps.Checkpoint:
		in.process.complain("plugin reports a value that is too large", a.handle, "checkpoint")
		a.refuse(message.CheckpointTooLarge(in.caps.Checkpoint))
	case !message.IsJSON(value):
		in.process.complain("plugin reports a value that is not JSON", a.handle, "checkpoint")
	default:
		in.wait(a.reporter.Checkpoint(value))
	}
}

func (in *intake) wait(room <-chan struct{}) {
	if room != nil {
		in.room = room
	}
}

// count charges a report. What belongs to no attempt is never free.
func (in *intake) count(a *attempt, bytes int) {
	if a == nil {
		in.owed += perReport
		in.owe(bytes)
		return
	}
	if q := &a.quota; in.now.Sub(q.second) >= time.Second {
		*q = quota{second: in.now}
	}
	a.quota.reports++
	a.quota.bytes += bytes
	if a.quota.reports > freeReports {
		in.owed += perReport
	}
	if a.quota.bytes > freeBytes {
		in.owe(bytes)
	}
}

// owe charges bytes.
func (in *intake) owe(bytes int) {
	if bytes > 0 {
		in.owed += perMiB * time.Duration(bytes) >> 20
	}
}

// pause waits until the process may be read on: until there is room, and for as
// long as its reports have cost. What a process that is gone has left is read at
// once.
func (in *intake) pause() {
	p := in.process
	if in.room != nil {
		select {
		case <-in.room:
		case <-p.stream.Context().Done():
		}
		in.room = nil
	}
	if in.owed < minPause {
		return
	}
	timer := time.NewTimer(min(in.owed, maxPause))
	defer timer.Stop()
	in.owed = 0
	select {
	case <-timer.C:
	case <-p.child.Gone():
	case <-p.stream.Context().Done():
	}
}
