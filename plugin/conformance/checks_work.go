package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// largePayload is more than gRPC accepts by default, in bytes.
const largePayload = 5 << 20

// unknownType is a job type without a handler.
const unknownType = "HOLDFAST_CONFORMANCE_NO_SUCH_TYPE"

func checkSuccess(_ context.Context, k *kit, s *session) finding {
	outcome := s.await(s.start(k.Work, nil), k.Patience)
	switch {
	case outcome == nil:
		return unanswered(s, k.Patience)
	case outcome.GetSucceeded() == nil:
		return failed("%s", describe(outcome))
	}
	if wrong := wrongFollowUps(outcome.GetSucceeded().GetFollowUps()); wrong != "" {
		return failed("%s", wrong)
	}
	if len(outcome.GetSucceeded().GetResult()) == 0 {
		return passed("succeeded, without a result")
	}
	return passed("succeeded with %.100s", outcome.GetSucceeded().GetResult())
}

// wrongFollowUps says what an orchestrator would refuse of the jobs that an attempt submits,
// whatever their types; empty for nothing.
func wrongFollowUps(all [][]byte) string {
	bytes := 0
	for i, one := range all {
		bytes += len(one)
		submission := struct {
			JobType string `json:"jobType"`
		}{}
		if err := json.Unmarshal(one, &submission); err != nil || submission.JobType == "" {
			return fmt.Sprintf("follow-up %d is not a JSON object with a jobType: %.100q", i, one)
		}
	}
	if len(all) > protocol.DefaultMaxFollowUps || bytes > protocol.DefaultMaxFollowUpBytes {
		return fmt.Sprintf("it submits %d jobs of together %d bytes, more than max_follow_ups or max_follow_up_bytes", len(all), bytes)
	}
	return ""
}

// needsFailure asks for a job that fails. If none is given, a payload that the
// schema refuses may do.
func needsFailure(o Options) string {
	if !o.Fail.given() && !o.Work.given() {
		return "it needs a job that fails: --fail-payload, and --fail-type"
	}
	return ""
}

func checkFailure(ctx context.Context, k *kit) finding {
	sample, madeUp := k.Fail, !k.Fail.given()
	if madeUp {
		sample = Sample{Type: k.Work.Type, Payload: misfit(schemaOf(k.declared(k.Work.Type)))}
		if !sample.given() {
			return skipped("it needs a job that fails: --fail-payload, and --fail-type")
		}
	}
	return k.with(ctx, func(_ context.Context, s *session) finding {
		outcome := s.await(s.start(sample, nil), k.Patience)
		switch {
		case outcome == nil:
			return unanswered(s, k.Patience)
		case outcome.GetFailed() == nil && madeUp:
			return skipped("it %[2]s with the payload %[1]s, which its schema refuses; give a job that fails with --fail-payload",
				sample.Payload, describe(outcome))
		case outcome.GetFailed() == nil:
			return failed("%s", describe(outcome))
		case outcome.GetFailed().GetMessage() == "":
			return failed("it failed without a message")
		}
		return k.goesOn(s, outcome)
	})
}

// goesOn passes if the process still works after a failure.
func (k *kit) goesOn(s *session, failure *handlerv1.Outcome) finding {
	if k.Work.given() {
		next := s.await(s.start(k.Work, nil), k.Patience)
		switch {
		case next == nil:
			return failed("after %q: %s", describe(failure), unanswered(s, k.Patience).happened)
		case next.GetSucceeded() == nil:
			return failed("after %q the job that succeeds %s", describe(failure), describe(next))
		}
	} else if s.ends(settle) {
		return failed("after %q: %s", describe(failure), s.broken())
	}
	return passed("%s", describe(failure))
}

func checkUnknownType(_ context.Context, k *kit, s *session) finding {
	outcome := s.await(s.start(Sample{Type: unknownType, Payload: []byte(`{}`)}, nil), k.Patience)
	switch {
	case outcome == nil:
		return unanswered(s, k.Patience)
	case outcome.GetFailed() == nil:
		return failed("%s", describe(outcome))
	case outcome.GetFailed().GetPermanent():
		return failed("%s: the job would be dead-lettered", describe(outcome))
	}
	return k.goesOn(s, outcome)
}

func checkDuplicate(_ context.Context, k *kit, s *session) finding {
	same := func(start *handlerv1.Start) {
		start.JobId, start.Fence = "00000000-0000-7000-8000-0000000000aa", 7
	}
	first := s.start(k.Work, same)
	if k.wanted(k.Work.Type) == 1 {
		s.await(first, k.Patience)
	}
	second := s.start(k.Work, same)
	for _, handle := range []uint64{first, second} {
		if outcome := s.await(handle, k.Patience); outcome == nil {
			found := unanswered(s, k.Patience)
			return failed("start %d of 2: %s", handle, found.happened)
		}
	}
	return passed("both were answered: %s, %s", describe(s.await(first, 0)), describe(s.await(second, 0)))
}

func checkLargePayload(_ context.Context, k *kit, s *session) finding {
	sample, work := Sample{Type: unknownType, Payload: []byte(`{}`)}, k.Work.given()
	if work {
		sample = k.Work
	}
	// Whitespace changes nothing about what JSON says.
	sample.Payload = append(sample.Payload[:len(sample.Payload):len(sample.Payload)], bytes.Repeat([]byte(" "), largePayload)...)
	outcome := s.await(s.start(sample, nil), k.Patience)
	switch {
	case outcome == nil:
		return unanswered(s, k.Patience)
	case work && outcome.GetSucceeded() == nil:
		return failed("%s, with %d MiB of spaces after the same payload", describe(outcome), largePayload>>20)
	}
	return passed("%s", describe(outcome))
}

func checkNoise(_ context.Context, k *kit, s *session) finding {
	if k.Work.given() {
		s.await(s.start(k.Work, nil), k.Patience)
	}
	outBefore, errBefore := s.process.out.counts()
	s.ends(noiseTime)
	stdout, stderr := s.process.out.counts()
	lines := stdout + stderr - outBefore - errBefore
	remark := ""
	if stdout > 0 {
		remark = fmt.Sprintf("; %d of them on standard output, which should have the handshake only", stdout)
	}
	if float64(lines) > maxLinesPerSecond*noiseTime.Seconds() {
		return failed("%d lines within %s, with nothing to do%s", lines, noiseTime, remark)
	}
	return passed("%d lines%s", stdout+stderr, remark)
}

func checkOutcomes(ctx context.Context, k *kit) finding {
	if k.Work.given() {
		k.with(ctx, func(_ context.Context, s *session) finding {
			for range 3 {
				s.await(s.start(k.Work, nil), k.Patience)
			}
			s.send(&handlerv1.WorkRequest{Drain: true})
			s.ends(k.Grace) // late messages count too
			return finding{}
		})
	}
	if len(k.wrong) > 0 {
		return failed("it sent %s", few(k.wrong))
	}
	return passed("it sent nothing else")
}

func checkLeftovers(_ context.Context, k *kit) finding {
	if len(k.left) > 0 {
		return failed("left behind, and killed: %s", few(k.left))
	}
	return passed("none did")
}
