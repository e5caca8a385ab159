package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestASubmissionIsKeptToTheLetter(t *testing.T) {
	s := open(t)
	want := job.Submission{
		ID: newID(t), Type: "SEND \"EMAIL\"", Tenant: "acme", IdempotencyKey: "k'1\\",
		Payload:  json.RawMessage("{ \"b\":1,\"a\" : [1.0, 1e400],\"b\":\"\\u0000 \\ud800\" }"),
		Priority: -7, MaxAttempts: 9, Timeout: 1500 * time.Millisecond,
		Tags:  []string{"plain", `with "quotes"`, "{braces,comma}", `back\slash`, "null", "", "ünïcode", "<&>"},
		Trace: job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b,c=d"},
	}
	submit(t, s, want)

	claimed, err := s.Claim(t.Context(), worker, []string{want.Type}, 1, aMinute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	got := claimed[0]
	require.Equal(t, want.ID, got.JobID)
	require.Equal(t, want.Type, got.Type)
	require.Equal(t, want.Tenant, got.Tenant)
	require.Equal(t, string(want.Payload), string(got.Payload))
	require.Equal(t, want.Priority, got.Priority)
	require.Equal(t, want.MaxAttempts, got.MaxAttempts)
	require.Equal(t, want.Timeout, got.Timeout)
	require.Equal(t, want.Trace, got.Trace)
	require.Equal(t, 1, got.Attempt)
	require.Zero(t, got.Interruptions)
	require.Nil(t, got.Checkpoint)
	require.Equal(t, want.Tags, ask[[]string](t, s, "select tags from jobs"))
	require.Equal(t, want.IdempotencyKey, ask[string](t, s, "select idempotency_key from jobs"))
	require.Equal(t, got.CreatedAt, got.RunAt, "due when it was created")
}

func TestAnyJSONValueIsAPayload(t *testing.T) {
	s := open(t)
	for _, payload := range []string{`null`, `0`, `"{\"text\": \"in a string\"}"`, `[]`, ` {} `, "[1,\n\t2]"} {
		c := running(t, s, func(j *job.Submission) { j.Payload = json.RawMessage(payload) })
		require.Equal(t, payload, string(c.Payload))
	}
}

func TestWhenAJobIsDueDecidesWhereItIsBorn(t *testing.T) {
	s := open(t)
	now := ask[time.Time](t, s, "select now()")
	cases := map[string]struct {
		change func(*job.Submission)
		state  job.State
		runAt  string // a condition on the ledger row
	}{
		"at once":           {func(*job.Submission) {}, job.Queued, "run_at = created_at"},
		"without delay":     {func(j *job.Submission) { j.Delay = 0 }, job.Queued, "run_at = created_at"},
		"after a delay":     {func(j *job.Submission) { j.Delay = time.Hour }, job.Created, "run_at = created_at + interval '1 hour'"},
		"at an instant":     {func(j *job.Submission) { j.RunAt = now.Add(time.Hour) }, job.Created, "run_at > created_at"},
		"at one long gone":  {func(j *job.Submission) { j.RunAt = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC) }, job.Queued, "run_at = '0001-01-02 00:00+00'"},
		"at one far away":   {func(j *job.Submission) { j.RunAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }, job.Created, "run_at = '9999-12-31 23:59:59+00'"},
		"held":              {func(j *job.Submission) { j.Hold = true }, job.Created, "run_at = 'infinity'"},
		"held with a delay": {func(j *job.Submission) { j.Hold, j.Delay = true, time.Second }, job.Created, "run_at = 'infinity'"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			done := s.Submit(t.Context(), []job.Submission{submission(t, c.change)})[0]
			require.NoError(t, done.Err)
			require.Equal(t, c.state, done.Receipt.State)
			require.True(t, ask[bool](t, s, "select "+c.runAt+" from jobs where job_id = $1", postgres.UUID(done.Receipt.ID)))
			requireState(t, s, done.Receipt.ID, c.state)
		})
	}
}

func TestAReplayIsAnsweredLikeTheFirst(t *testing.T) {
	s := open(t)
	keyed := func(j *job.Submission) { j.IdempotencyKey = "order-1" }
	first := s.Submit(t.Context(), []job.Submission{submission(t, keyed)})[0]
	require.NoError(t, first.Err)
	require.False(t, first.Receipt.Replayed)

	again := submission(t, keyed)
	again.Payload = json.RawMessage(`{"n":1}`) // different white space is still the same request
	again.Priority = 9
	replay := s.Submit(t.Context(), []job.Submission{again})[0]
	require.NoError(t, replay.Err)
	require.True(t, replay.Receipt.Replayed)
	replay.Receipt.Replayed = false
	require.Equal(t, first.Receipt, replay.Receipt)

	settled(t, s, claim(t, s, 10)[0], job.Success)
	late := s.Submit(t.Context(), []job.Submission{submission(t, keyed)})[0]
	require.NoError(t, late.Err)
	require.Equal(t, first.Receipt.ID, late.Receipt.ID)
	require.Equal(t, job.Succeeded, late.Receipt.State)
	require.Equal(t, 1, ask[int](t, s, "select count(*) from jobs"))
	requireSound(t, s)
}

func TestAKeyMeansOneJobInItsTenant(t *testing.T) {
	s := open(t)
	first := given(t, s, func(j *job.Submission) { j.IdempotencyKey = "k" })
	before := row(t, s, first)
	for name, change := range map[string]func(*job.Submission){
		"another payload": func(j *job.Submission) { j.Payload = json.RawMessage(`{"n": 2}`) },
		"another type":    func(j *job.Submission) { j.Type = "OTHER" },
	} {
		done := s.Submit(t.Context(), []job.Submission{submission(t, func(j *job.Submission) { j.IdempotencyKey = "k" }, change)})[0]
		require.ErrorIs(t, done.Err, job.ErrKeyReused, name)
	}
	require.Equal(t, before, row(t, s, first))

	elsewhere := given(t, s, func(j *job.Submission) { j.IdempotencyKey, j.Tenant = "k", "acme" })
	require.NotEqual(t, first, elsewhere)
	requireSound(t, s)
}

func TestDuplicatesWithinABatch(t *testing.T) {
	s := open(t)
	keyed := func(j *job.Submission) { j.IdempotencyKey = "k" }
	batch := []job.Submission{
		submission(t, keyed),
		submission(t),
		submission(t, keyed),
		submission(t, keyed, func(j *job.Submission) { j.Payload = json.RawMessage(`"another"`) }),
	}
	batch = append(batch, batch[1])
	done := s.Submit(t.Context(), batch)
	require.NoError(t, done[0].Err)
	require.NoError(t, done[1].Err)
	require.NoError(t, done[2].Err)
	require.ErrorIs(t, done[3].Err, job.ErrKeyReused)
	require.NoError(t, done[4].Err)
	require.Equal(t, done[0].Receipt.ID, done[2].Receipt.ID)
	require.Equal(t, done[1].Receipt.ID, done[4].Receipt.ID)
	require.True(t, done[2].Receipt.Replayed)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
	requireSound(t, s)
}

func TestTheSameIDSentAgainMakesOneJob(t *testing.T) {
	s := open(t)
	plain := submission(t)
	first, again := submit(t, s, plain), submit(t, s, plain, submission(t))
	require.Equal(t, first[0], again[0])
	require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
	requireSound(t, s)
}

func TestAnIDUnderTwoKeysIsOneJobAndHarmsNoOther(t *testing.T) {
	s := open(t)
	one := submission(t, func(j *job.Submission) { j.IdempotencyKey = "a" })
	two := one
	two.IdempotencyKey = "b"
	ids := submit(t, s, one, submission(t), two, submission(t))
	require.Equal(t, ids[0], ids[2])
	ids = submit(t, s, two, submission(t))
	require.Equal(t, one.ID, ids[0])
	require.Equal(t, 4, ask[int](t, s, "select count(*) from jobs"))
	requireSound(t, s)
}

func TestAHundredRacersOnOneKeyMakeOneJob(t *testing.T) {
	url := pgtest.URL(t)
	stores := []*Store{openAt(t, url), openAt(t, url), openAt(t, url)}
	const racers = 100
	results := make([]job.Submitted, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range racers {
		// Each in its own batch, between two other jobs.
		batch := submissions(t, 3)
		batch[1].IdempotencyKey = "the one"
		all.Go(func() {
			<-start
			results[i] = stores[i%len(stores)].Submit(context.Background(), batch)[1]
		})
	}
	close(start)
	all.Wait()
	fresh := 0
	for _, result := range results {
		require.NoError(t, result.Err)
		require.Equal(t, results[0].Receipt.ID, result.Receipt.ID)
		if !result.Receipt.Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh, "racers that made the job")
	require.Equal(t, 1, ask[int](t, stores[0], "select count(*) from jobs where idempotency_key is not null"))
	require.Equal(t, 1+2*racers, ask[int](t, stores[0], "select count(*) from jobs"))
	requireSound(t, stores[0])
}

func TestARacerWaitsForTheFirstToCommitAndGetsItsJob(t *testing.T) {
	s := open(t)
	keyed := submission(t, func(j *job.Submission) { j.IdempotencyKey = "k" })
	first := keyed
	first.ID = newID(t)
	entries := []entry{newEntry(&first)}
	inserted := newInsertion(entries, []int{0})
	commit := locked(t, s, sql.Text(inserted.statement()), inserted.columns()...)
	wait := after(func() []job.Submitted { return s.Submit(context.Background(), []job.Submission{keyed}) })
	awaitBlocked(t, s, 1)
	commit()
	done := wait()[0]
	require.NoError(t, done.Err)
	require.Equal(t, first.ID, done.Receipt.ID)
	require.True(t, done.Receipt.Replayed)
	requireSound(t, s)
}

func TestBatchesWithTheSameKeysInAnyOrderDoNotDeadlock(t *testing.T) {
	s := open(t)
	const keys = 40
	var all sync.WaitGroup
	for racer := range 6 {
		batch := submissions(t, keys)
		for i := range batch {
			batch[i].IdempotencyKey = fmt.Sprintf("key-%d", ((i+1)*(2*racer+3)+5*racer)%(keys+1))
		}
		all.Go(func() {
			for range 10 {
				for _, done := range s.Submit(context.Background(), batch) {
					if done.Err != nil {
						t.Error(done.Err)
					}
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, deadlocks(t, s))
	requireSound(t, s)
}

func TestASubmissionThatCannotBeStoredFailsAlone(t *testing.T) {
	bad := map[string]func(*job.Submission){
		"payload that is no JSON":       func(j *job.Submission) { j.Payload = json.RawMessage(`{"n": `) },
		"empty payload":                 func(j *job.Submission) { j.Payload = nil },
		"payload that is no UTF-8":      func(j *job.Submission) { j.Payload = json.RawMessage("\"\xff\"") },
		"payload with a NUL byte":       func(j *job.Submission) { j.Payload = json.RawMessage("\"\x00\"") },
		"payload nested without end":    func(j *job.Submission) { j.Payload = []byte(strings.Repeat("[", 300_000)) },
		"type with a NUL byte":          func(j *job.Submission) { j.Type = "A\x00B" },
		"tag with a NUL byte":           func(j *job.Submission) { j.Tags = []string{"fine", "\x00"} },
		"trace that is no UTF-8":        func(j *job.Submission) { j.Trace.State = "\xc3\x28" },
		"key too long for an index":     func(j *job.Submission) { j.IdempotencyKey = noise(9000) },
		"type too long for an index":    func(j *job.Submission) { j.Type = noise(9000) },
		"priority that has no negative": func(j *job.Submission) { j.Priority = -32768 },
		"no attempt at all":             func(j *job.Submission) { j.MaxAttempts = 0 },
		"timeout of nothing":            func(j *job.Submission) { j.Timeout = 0 },
	}
	s := open(t)
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			batch := submissions(t, 100)
			spoil(&batch[37])
			for i, done := range s.Submit(t.Context(), batch) {
				if i == 37 {
					require.ErrorIs(t, done.Err, job.ErrBadData)
					require.NotErrorIs(t, done.Err, job.ErrUnavailable)
					continue
				}
				require.NoError(t, done.Err)
				require.Equal(t, batch[i].ID, done.Receipt.ID)
			}
		})
	}
	require.Equal(t, 99*len(bad), ask[int](t, s, "select count(*) from jobs"))
	requireSound(t, s)
}

func FuzzPayloadsAreKeptToTheLetterOrRefused(f *testing.F) {
	for _, seed := range []string{`{}`, `"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, "\"\xed\xa0\x80\"", `1e999999`, "{\"\x00\":1}", "\ufeff{}"} {
		f.Add([]byte(seed))
	}
	s := open(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		spoiled := submission(t, func(j *job.Submission) { j.Payload = slices.Clone(payload) })
		done := s.Submit(t.Context(), []job.Submission{spoiled, submission(t)})
		require.NoError(t, done[1].Err, "its neighbour")
		if done[0].Err != nil {
			require.ErrorIs(t, done[0].Err, job.ErrBadData)
			return
		}
		require.Equal(t, string(payload), ask[string](t, s, "select payload::text from jobs where job_id = $1", postgres.UUID(spoiled.ID)))
	})
}

func TestSubmittingNothingDoesNothing(t *testing.T) {
	require.Empty(t, open(t).Submit(t.Context(), nil))
}

// noise is text that cannot be compressed.
func noise(n int) string {
	var text strings.Builder
	for i := 0; text.Len() < n; i++ {
		fmt.Fprintf(&text, "%x", sha256.Sum256([]byte(fmt.Sprint(i))))
	}
	return text.String()[:n]
}

func TestAKeyIsKnownByTheJobThatItMade(t *testing.T) {
	s := open(t)
	first := submission(t, keyed("k"))
	known := func(s *Store, of job.Submission) bool {
		t.Helper()
		found, err := s.Known(t.Context(), of)
		require.NoError(t, err)
		return found
	}
	require.False(t, known(s, first))
	submit(t, s, first)
	require.True(t, known(s, first))
	other, elsewhere := first, first
	other.Payload, elsewhere.Tenant = []byte(`{"n": 2}`), "elsewhere"
	require.False(t, known(s, other))
	require.False(t, known(s, elsewhere))
}
