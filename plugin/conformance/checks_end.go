package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// busy starts a slow job, if there is one, so that the process ends in the middle of
// it. It says what the process does.
func (k *kit) busy(s *session) (doing string, handle uint64, early *handlerv1.Outcome) {
	if !k.Slow.given() {
		return "with nothing to do", 0, nil
	}
	handle, early = k.begun(s)
	return "in the middle of a job", handle, early
}

func checkDrain(_ context.Context, k *kit, s *session) finding {
	doing, handle, early := k.busy(s)
	if early != nil {
		return tooShort(early)
	}
	s.send(&handlerv1.WorkRequest{Drain: true})
	if handle != 0 {
		if outcome := s.await(handle, settle); outcome != nil {
			return failed("it ended its job early: %s", describe(outcome))
		}
		if why := s.broken(); why != "" {
			return failed("it abandoned its job: %s", why)
		}
		s.cancel(handle, handlerv1.Cancel_REASON_SHUTDOWN)
		if s.await(handle, k.Grace) == nil {
			return failed("its last job was canceled and has not ended: %s", unanswered(s, k.Grace).happened)
		}
	}
	if !s.ends(k.Grace) {
		return failed("%s: the stream has not ended %s after the last outcome", doing, k.Grace)
	}
	if s.endErr != nil {
		return failed("%s: the stream ended with an error: %v", doing, s.endErr)
	}
	s.process.closeStdin()
	switch {
	case !s.process.leaves(k.Grace):
		return failed("%s: the process still runs %s after the stream and its standard input have ended", doing, k.Grace)
	case s.process.state.ExitCode() != 0:
		return failed("%s: it ended with %s%s", doing, s.process.state, s.process.out.said())
	}
	return passed("drained %s, it ended with exit code 0", doing)
}

func checkStdin(_ context.Context, k *kit, s *session) finding {
	doing, _, early := k.busy(s)
	if early != nil {
		return tooShort(early)
	}
	ended := time.Now()
	s.process.closeStdin()
	if !s.process.leaves(stdinWithin) {
		return failed("%s it still runs %s later", doing, stdinWithin)
	}
	return passed("%s it ended after %s", doing, time.Since(ended).Round(time.Millisecond))
}

func needsOrphans(Options) string {
	if !findsOrphans {
		return "only Linux can find the processes that are left"
	}
	return ""
}

func checkKill(_ context.Context, k *kit, s *session) finding {
	doing, _, early := k.busy(s)
	if early != nil {
		return tooShort(early)
	}
	with := ""
	if n := len(s.process.alive()) - 1; n > 0 {
		with = fmt.Sprintf(", with %d other processes,", n)
	}
	s.process.kill()
	if left := s.process.leftBehind(); len(left) > 0 {
		return failed("%s: process %s outlived it", doing, strings.Join(left, ", "))
	}
	return passed("killed %s%s it left no process", doing, with)
}
