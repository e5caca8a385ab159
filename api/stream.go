package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// stream answers a batch line by line while it comes in.
type stream struct {
	*service
	control *http.ResponseController
	// writeWithin is how long the client may take to accept the answers to
	// one group; zero for ever.
	writeWithin time.Duration
	out         *bufio.Writer
	encoder     *json.Encoder
	trace       job.Trace
	end         v1.BatchEnd
}

// stream stores each line's job for itself, in groups of what has come in
// while the group before was stored.
func (s *service) stream(ctx context.Context, e exchange, share *share) {
	defer share.release()
	control := http.NewResponseController(e.answer)
	out := bufio.NewWriterSize(e.answer, readAtOnce)
	st := &stream{
		service: s, control: control, writeWithin: serverOf(e.request).WriteTimeout,
		out: out, encoder: newEncoder(out), trace: traceOf(e.request.Header),
	}
	// Not supported by HTTP/2, which needs it not, and by recorders.
	_ = control.EnableFullDuplex()
	e.answer.Header().Set("Content-Type", mediaLines)
	if e.request.Header.Get("Expect") == "" {
		// Some clients send their first line when they have the header. Those
		// that wait for 100 Continue, as curl does, would not get it any more.
		e.answer.WriteHeader(http.StatusOK)
		_ = control.Flush()
	}
	endSpan(ctx, http.StatusOK) // it may listen for hours
	in := startIntake(newPacedBody(e.request, control), s.maxBodyBytes, share)
	defer func() {
		if !st.end.Done {
			in.stop()
			hangUp(e.answer)
		}
		<-in.done
	}()

	var lines pile
	for {
		var ended error
		share.done(len(lines.text))
		lines.reset()
		lines, ended = in.take(lines, s.stopping)
		if len(lines.lines) > 0 {
			err := st.answer(ctx, &lines)
			if err != nil && !errors.Is(err, errStopping) {
				return // The client has left, or reads no answers.
			}
			ended = cmp.Or(err, ended)
		}
		if ended != nil {
			st.finish(ended)
			return
		}
	}
}

// answer stores a group, as fast as the caller's rate limit lets it, and writes
// what became of it. What was read is stored, even if the client stops sending
// in the meantime. It returns errStopping, or that the client does not take the
// answers.
func (st *stream) answer(ctx context.Context, lines *pile) error {
	ctx = context.WithoutCancel(ctx)
	var g group
	for i := range lines.lines {
		_ = st.admitTo(ctx, &g, lines.line(i), st.end.Accepted+st.end.Refused+i, st.trace)
	}
	stored, written := 0, 0
	for stored < len(g.batch) {
		n, err := st.allowed(ctx, len(g.batch)-stored)
		if err != nil {
			return err
		}
		st.store(ctx, &g, stored, stored+n)
		if stored += n; stored < len(g.batch) {
			if err := st.write(g.results[written:g.places[stored]]); err != nil {
				return err
			}
			written = g.places[stored]
		}
	}
	return st.write(g.results[written:])
}

func (st *stream) store(ctx context.Context, g *group, from, to int) {
	ctx, cancel := context.WithTimeout(ctx, st.requestTimeout)
	defer cancel()
	st.storeEach(ctx, g, from, to)
}

// atLeastAtOnce lets some jobs gather behind a rate limit, rather than storing
// each as soon as it is allowed.
const atLeastAtOnce = 100 * time.Millisecond

// allowed returns how many of so many jobs the caller may submit now. It waits
// until that is one at least: a stream is slowed down, not refused.
func (st *stream) allowed(ctx context.Context, wanted int) (int, error) {
	for {
		var allowance guard.Allowance
		for n := wanted; n > 0; n /= 2 {
			if allowance = st.guard.Take(ctx, guard.Jobs, n); allowance.Allowed {
				return n, nil
			}
		}
		wait := time.NewTimer(max(allowance.Wait, atLeastAtOnce))
		select {
		case <-wait.C:
		case <-st.stopping:
			wait.Stop()
			return 0, errStopping
		}
	}
}

func (st *stream) write(results []v1.BatchResult) error {
	st.allowWrite()
	for i := range results {
		if results[i].Job != nil {
			st.end.Accepted++
		} else {
			st.end.Refused++
		}
		if err := st.encoder.Encode(&results[i]); err != nil {
			return err
		}
	}
	return st.flush()
}

// finish writes the last line.
func (st *stream) finish(ended error) {
	switch {
	case errors.Is(ended, io.EOF):
		st.end.Done = true
	case errors.Is(ended, errStopping):
		st.end.Problem = problem(http.StatusServiceUnavailable, "the server is stopping; send the rest again")
	default:
		st.end.Problem = refusal(ended)
	}
	st.allowWrite()
	if st.encoder.Encode(st.end) == nil {
		_ = st.flush()
	}
}

func (st *stream) flush() error {
	if err := st.out.Flush(); err != nil {
		return err
	}
	return st.control.Flush()
}

func (st *stream) allowWrite() {
	if st.writeWithin > 0 {
		_ = st.control.SetWriteDeadline(time.Now().Add(st.writeWithin))
	}
}
