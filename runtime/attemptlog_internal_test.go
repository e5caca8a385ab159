package runtime

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const carried = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// logText is what has been written to a log, by whatever goroutine.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *logText) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *logText) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *logText) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Reset()
}

// logged returns a log, and what has been written to it.
func logged() (*slog.Logger, *logText) {
	var written logText
	return slog.New(slog.NewJSONHandler(&written, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	})), &written
}

func endedAs(kind job.OutcomeKind) *ending {
	return &ending{decision: job.Decision{Kind: kind}, trace: &job.Trace{}}
}

func TestALineSaysHowAnAttemptEndedWithoutItsPayload(t *testing.T) {
	log, written := logged()
	l := newAttemptLog(log, LogAll)
	l.settled(&ending{
		lease: job.Lease{JobID: job.ID{1}, Fence: 7}, history: job.History{Attempt: 2},
		decision: job.Decision{Kind: job.Failure, To: job.Retry},
		outcome:  job.Outcome{Code: "smtp_451", Message: "SECRET", Stack: "SECRET", Result: json.RawMessage(`"SECRET"`)},
		pool:     &job.Pool{Plugin: "mail", Version: "1.0"}, jobType: "MAIL", trace: &job.Trace{Parent: carried},
		ran: true, took: 1500 * time.Millisecond,
	})
	require.JSONEq(t, `{
		"level": "INFO", "msg": "attempt ended", "job_id": "01000000-0000-0000-0000-000000000000", "job_type": "MAIL",
		"attempt": 2, "fence": 7, "outcome": "failed", "state": "retry", "error_code": "smtp_451",
		"plugin": "mail", "plugin_version": "1.0", "seconds": 1.5, "trace_id": "0af7651916cd43dd8448eb211c80319c"
	}`, written.String())
}

func TestTheLineOfAnAttemptThatNeverBeganNamesNoHandler(t *testing.T) {
	log, written := logged()
	w := endedAs(job.Interrupted)
	w.lostBy = "worker/1"
	newAttemptLog(log, LogSampled).settled(w)
	for _, absent := range []string{"plugin", "seconds", "trace_id", "error_code"} {
		require.NotContains(t, written.String(), absent)
	}
	require.Contains(t, written.String(), `"lost_by":"worker/1"`)
}

func TestUnderLoadTheFirstOfEachSecondAreLoggedAndTheOthersCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, written := logged()
		l := newAttemptLog(log, LogSampled)
		lines := func(text string) int { return strings.Count(written.String(), text) }
		for range 1000 {
			l.settled(endedAs(job.Success))
		}
		for range 60 {
			l.settled(endedAs(job.Failure))
		}
		l.settled(endedAs(job.Timeout))
		require.Equal(t, linesOfSuccess, lines(`"outcome":"succeeded"`))
		require.Equal(t, linesOfOthers, lines(`"outcome":"failed"`), "successes do not crowd out failures")
		require.Equal(t, 1, lines(`"outcome":"timeout"`))
		require.Zero(t, lines("more attempts ended"))

		time.Sleep(time.Second)
		synctest.Wait()
		require.Contains(t, written.String(), `"msg":"more attempts ended","attempts":{"succeeded":995,"failed":10}`)
		l.settled(endedAs(job.Success))
		require.Equal(t, linesOfSuccess+1, lines(`"outcome":"succeeded"`), "the next second begins anew")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, lines("more attempts ended"), "nothing is said of a second in which all had a line")
	})
}

func TestTheLastSecondIsLoggedAtTheEnd(t *testing.T) {
	log, written := logged()
	l := newAttemptLog(log, LogSampled)
	for range linesOfSuccess + 3 {
		l.settled(endedAs(job.Success))
	}
	l.close()
	l.close()
	require.Equal(t, 1, strings.Count(written.String(), `"attempts":{"succeeded":3}`))
}

func TestNoLineCostsNothing(t *testing.T) {
	log, written := logged()
	silent := slog.New(slog.NewJSONHandler(written, &slog.HandlerOptions{Level: slog.LevelWarn}))
	full := newAttemptLog(log, LogSampled)
	for range linesOfSuccess {
		full.settled(endedAs(job.Success))
	}
	written.Reset()
	w := endedAs(job.Success)
	w.trace.Parent = carried
	for name, l := range map[string]*attemptLog{
		"none": newAttemptLog(log, LogNone), "another level": newAttemptLog(silent, LogAll), "suppressed": full,
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { l.settled(w) }), name)
	}
	require.NotContains(t, written.String(), "attempt ended")
	full.close()
}

func TestEverySettledAttemptHasALine(t *testing.T) {
	log, written := logged()
	results := []job.SettleResult{job.Refused, job.Canceling, job.Settled}
	p := settling(t, &ledger{settle: func([]job.Settlement) ([]job.SettleResult, error) {
		result := results[0]
		results = results[1:]
		return []job.SettleResult{result}, nil
	}})
	p.log = newAttemptLog(log, LogAll)
	a := begun(p, 1)
	a.claimed.Trace.Parent, a.pool.Plugin = carried, "mail"
	a.began = time.Now()
	p.inFlight.starting()
	a.Finished(job.Outcome{Kind: job.Success})
	require.Eventually(t, func() bool { return written.String() != "" }, patience, time.Millisecond)
	require.Equal(t, 1, strings.Count(written.String(), "\n"))
	for _, want := range []string{`"outcome":"canceled"`, `"plugin":"mail"`, `"seconds":`, `"trace_id":"0af7`} {
		require.Contains(t, written.String(), want)
	}
}

func TestTheLineOfAnAttemptThatAReaperEndsNamesTheLostWorker(t *testing.T) {
	log, written := logged()
	p := settling(t, &ledger{settle: func([]job.Settlement) ([]job.SettleResult, error) { return []job.SettleResult{job.Settled}, nil }})
	p.log = newAttemptLog(log, LogAll)
	r := reaper{jobs: p.jobs, path: p}
	r.takeOver(job.Expired{
		Lease: job.Lease{JobID: job.ID{1}, Fence: 2}, Type: "MAIL", Worker: "gone/1", WorkerGone: true,
		Attempt: 1, MaxAttempts: 3, Trace: job.Trace{Parent: carried},
	})
	require.Eventually(t, func() bool { return written.String() != "" }, patience, time.Millisecond)
	for _, want := range []string{`"outcome":"interrupted"`, `"lost_by":"gone/1"`, `"job_type":"MAIL"`, `"trace_id":"0af7`} {
		require.Contains(t, written.String(), want)
	}
}

// BenchmarkJobLog is what the log of jobs costs an attempt, of which a thousand
// or more end in a second.
func BenchmarkJobLog(b *testing.B) {
	for _, which := range []JobLog{LogNone, LogSampled, LogAll} {
		b.Run(string(which), func(b *testing.B) {
			l := newAttemptLog(slog.New(slog.NewJSONHandler(discard{}, nil)), which)
			defer l.close()
			w := endedAs(job.Success)
			b.ReportAllocs()
			for range b.N {
				l.settled(w)
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
