package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// stream answers a batch line by line while it comes in.
type stream struct {
	*submitRoutes
	deadline deadline
	control  *http.ResponseController
	// writeWithin is how long the client may take to accept the answers to one
	// group; zero for no bound.
	writeWithin time.Duration
	out         *bufio.Writer
	answers     *answers
	trace       job.Trace
	end         v1.BatchEnd
}

// outBuffer is one of the buffers that intake.StreamBytes counts.
const outBuffer = 64 << 10

// answerLineByLine stores the jobs of a body of lines one by one. It stores them in
// groups: the lines that arrived while the previous group was stored.
func (s *submitRoutes) answerLineByLine(ctx context.Context, limits deadline, in call, share *intake.Share) {
	defer share.Release()
	control := http.NewResponseController(in.answer)
	out := bufio.NewWriterSize(in.answer, outBuffer)
	st := &stream{
		submitRoutes: s, deadline: limits, control: control, writeWithin: intake.ServerOf(in.request).WriteTimeout,
		out: out, answers: newAnswers(out), trace: traceOf(in.request.Header),
	}
	// HTTP/2 does not need it, and recorders in tests cannot do it.
	_ = control.EnableFullDuplex()
	in.answer.Header().Set("Content-Type", mediaLines)
	if in.request.Header.Get("Expect") == "" {
		// Some clients send their first line when they have the header. Those that
		// wait for 100 Continue, as curl does, would no longer get it.
		in.answer.WriteHeader(http.StatusOK)
		_ = control.Flush()
	}
	endSpan(ctx, http.StatusOK) // A stream may last for hours.
	lines := intake.ReadAhead(in.request, control, s.maxBytes, share)
	defer func() {
		if !st.end.Done {
			lines.Stop()
			intake.HangUp(in.answer)
		}
	}()
	for {
		group, ended := lines.Take(limits.stopping)
		if ended == nil {
			ended = st.answer(ctx, group)
			if ended != nil && !errors.Is(ended, intake.ErrStopped) {
				return // The client has left, or reads no answers.
			}
		}
		if ended != nil {
			st.finish(ended)
			return
		}
	}
}

// answer stores a group, as fast as the caller's rate limit allows, and writes the
// results. It stores what was read even if the client stops sending in the
// meantime. It returns intake.ErrStopped, or why the client cannot be answered.
func (st *stream) answer(ctx context.Context, group []intake.Line) error {
	ctx = context.WithoutCancel(ctx)
	var g results
	for i, line := range group {
		_ = st.admitTo(ctx, &g, st.itemOf(line), st.end.Accepted+st.end.Refused+i, st.trace)
	}
	stored, written := 0, 0
	for stored < len(g.batch) {
		n, err := st.allowed(ctx, len(g.batch)-stored)
		if err != nil {
			return err
		}
		st.store(ctx, &g, stored, stored+n)
		if stored += n; stored < len(g.batch) {
			if err := st.write(g.all[written:g.places[stored]]); err != nil {
				return err
			}
			written = g.places[stored]
		}
	}
	return st.write(g.all[written:])
}

func (st *stream) store(ctx context.Context, g *results, from, to int) {
	ctx, cancel := context.WithTimeout(ctx, st.deadline.usual)
	defer cancel()
	st.storeEach(ctx, g, from, to)
}

// gatherFor is how long jobs gather behind a rate limit, instead of being stored one
// by one.
const gatherFor = 100 * time.Millisecond

// allowed returns how many jobs the caller may submit now, up to most. It waits until
// that is at least one: a stream is slowed down, not refused.
func (st *stream) allowed(ctx context.Context, most int) (int, error) {
	for {
		var allowance guard.Allowance
		for n := most; n > 0; n /= 2 {
			if allowance = st.guard.Take(ctx, guard.Jobs, n); allowance.Allowed {
				return n, nil
			}
		}
		wait := time.NewTimer(max(allowance.Wait, gatherFor))
		select {
		case <-wait.C:
		case <-st.deadline.stopping:
			wait.Stop()
			return 0, intake.ErrStopped
		}
	}
}

func (st *stream) write(results []v1.BatchResult) error {
	accepted, refused := countOf(results)
	st.end.Accepted += accepted
	st.end.Refused += refused
	st.allowWrite()
	for i := range results {
		if err := st.answers.result(&results[i]); err != nil {
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
	case errors.Is(ended, intake.ErrStopped):
		st.end.Problem = problem(http.StatusServiceUnavailable, "the server is stopping; send the rest again")
	default:
		st.end.Problem = problemOf(context.Background(), st.log, ended)
	}
	st.allowWrite()
	if st.answers.Encode(st.end) == nil {
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
