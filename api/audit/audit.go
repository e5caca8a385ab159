// Package audit writes down what people do: who, when, what, and what came of it. It does so
// once it is known what came of it, and an act never fails because it could not be written
// down; then it is logged instead.
package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// writeWithin bounds how long an answer waits until its act is written down.
	writeWithin = 2 * time.Second
	// maxText bounds a text of an act, in bytes.
	maxText = 2000
	// MaxReason bounds a reason, in characters.
	MaxReason = 500
)

// Log is where acts are kept. Every method can return job.ErrUnavailable, or the error of a
// context that is done.
type Log interface {
	RecordAct(ctx context.Context, act job.Act) error
	// Acts returns those that match the filter, newest first.
	Acts(ctx context.Context, filter job.ActFilter) ([]job.Act, error)
}

// Recorder writes acts down. It may be used concurrently.
type Recorder struct {
	log    Log
	trace  *slog.Logger
	actor  string
	mu     sync.Mutex
	floods map[source]*flood
}

// NewRecorder returns a recorder. The log may be nil: then nothing is written down. The actor
// is whoever acts without credentials.
func NewRecorder(log Log, trace *slog.Logger, actor string) *Recorder {
	return &Recorder{log: log, trace: trace, actor: actor, floods: map[source]*flood{}}
}

// Write writes down an act of the caller in the context, unless it failed like many others
// just before: see flood.
func (r *Recorder) Write(ctx context.Context, act job.Act) {
	if r.log == nil {
		return
	}
	if act.Actor == "" {
		act.Actor = guard.Name(ctx)
	}
	if act.Actor == "" {
		act.Actor = r.actor
	}
	if bound := guard.Tenant(ctx); bound != "" {
		act.Tenant = bound
	}
	if act.Result != job.ActDone && !r.mayWrite(act) {
		return
	}
	r.write(ctx, act)
}

func (r *Recorder) write(ctx context.Context, act job.Act) {
	for _, text := range []*string{&act.Actor, &act.Tenant, &act.Reason, &act.Result} {
		*text = storable(*text)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	if err := r.log.RecordAct(ctx, act); err != nil {
		r.trace.ErrorContext(ctx, "act not written to the audit log", "actor", act.Actor, "action", act.Action, "tenant", act.Tenant,
			"filter", string(act.Filter), "reason", act.Reason, "result", act.Result, "error", err)
	}
}

// storable is a text that the database can keep, or what is left of it.
func storable(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// filterOf is JSON of names and values; nil for none.
func filterOf(values map[string]string) []byte {
	if len(values) == 0 {
		return nil
	}
	kept := make(map[string]string, len(values))
	for name, value := range values {
		kept[storable(name)] = storable(value)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return text
}
