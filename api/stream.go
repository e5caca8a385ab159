package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
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
	end         BatchEnd
}

// stream stores each line's job for itself, in groups of what has come in
// while the group before was stored.
func (s *service) stream(ctx context.Context, e exchange) {
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
	in := startIntake(newPacedBody(e.request, control), s.maxBodyBytes)
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
		lines.reset()
		lines, ended = in.take(lines, s.stopping)
		if len(lines.lines) > 0 && st.answer(ctx, &lines) != nil {
			return // The client has left, or reads no answers.
		}
		if ended != nil {
			st.finish(ended)
			return
		}
	}
}

// answer stores a group and writes what became of it. What was read is
// stored, even if the client stops sending in the meantime.
func (st *stream) answer(ctx context.Context, lines *pile) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), st.requestTimeout)
	defer cancel()
	var g group
	for i := range lines.lines {
		_ = st.admitTo(ctx, &g, lines.line(i), st.end.Accepted+st.end.Refused+i, st.trace)
	}
	st.limit(ctx, &g)
	st.storeEach(ctx, &g)
	for _, result := range g.results {
		if result.Job != nil {
			st.end.Accepted++
		} else {
			st.end.Refused++
		}
	}
	return st.write(g.results...)
}

// limit refuses what is beyond the caller's rate limit: the last of the group.
func (st *stream) limit(ctx context.Context, g *group) {
	within, refused := 0, guard.Allowance{}
	for n := len(g.batch); n > 0; {
		allowance := st.guard.Take(ctx, guard.Jobs, n)
		if allowance.Allowed {
			within += n
			n = min(n, len(g.batch)-within)
		} else {
			refused = allowance
			n /= 2
		}
	}
	if within < len(g.batch) {
		g.refuse(within, tooMany(refused))
	}
}

// tooMany is the answer to a line; what a header would have said is in it.
func tooMany(allowance guard.Allowance) *huma.ErrorModel {
	detail := allowance.Detail
	if wait := allowance.Header.Get("Retry-After"); wait != "" {
		detail += "; try again after " + wait + " seconds"
	}
	return problem(http.StatusTooManyRequests, detail)
}

func (st *stream) write(results ...BatchResult) error {
	st.allowWrite()
	for i := range results {
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
