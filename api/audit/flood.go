package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// floodAfter is how many failures of a source are written down in a window. Further ones
	// are counted, and written down as one when the window is over: whoever repeats what is
	// refused must not fill the disk.
	floodAfter  = 20
	floodWindow = time.Minute
)

// source is who fails with what. There are as many as callers times actions.
type source struct{ actor, action string }

// flood counts the failures of a source in a window.
type flood struct {
	written int
	// more counts those that were not written down, and last is the last of them.
	more int64
	last job.Act
}

// mayWrite counts a failure, and reports whether to write it down by itself.
func (r *Recorder) mayWrite(act job.Act) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := source{act.Actor, act.Action}
	f := r.floods[from]
	if f == nil {
		f = &flood{}
		r.floods[from] = f
		time.AfterFunc(floodWindow, func() { r.endWindow(from) })
	}
	if f.written < floodAfter {
		f.written++
		return true
	}
	f.more++
	f.last = act
	return false
}

// endWindow writes down how many failures the window had beyond those written down.
func (r *Recorder) endWindow(from source) {
	r.mu.Lock()
	f := r.floods[from]
	delete(r.floods, from)
	r.mu.Unlock()
	if f.more == 0 {
		return
	}
	act := job.Act{Actor: from.actor, Action: from.action, Tenant: f.last.Tenant, Count: new(f.more)}
	act.Result = fmt.Sprintf("%s (the last of %d within a minute that are not in the log)", f.last.Result, f.more)
	r.write(context.Background(), act)
}
