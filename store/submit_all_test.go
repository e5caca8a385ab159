package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	read "github.com/holdfast-jobs/holdfast/api/submission"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func submitAll(t testing.TB, s *Store, batch ...job.Submission) []job.Submitted {
	t.Helper()
	results, err := s.SubmitAll(t.Context(), batch)
	require.NoError(t, err)
	require.Len(t, results, len(batch))
	return results
}

func keyed(key string) func(*job.Submission) {
	return func(s *job.Submission) { s.IdempotencyKey = key }
}

func jobs(t testing.TB, s *Store) int { t.Helper(); return ask[int](t, s, "select count(*) from jobs") }

func TestAllOfABatchAreStoredInTheOrderGiven(t *testing.T) {
	s := open(t)
	known := given(t, s, keyed("known"))
	batch := []job.Submission{
		submission(t, keyed("b")), submission(t, keyed("known")), submission(t), submission(t, keyed("a")),
		submission(t, keyed("b")), submission(t, func(j *job.Submission) { j.Hold = true }),
	}
	for range 2 * insertRows {
		batch = append(batch, submission(t))
	}
	results := submitAll(t, s, batch...)
	require.Equal(t, known, results[1].Receipt.ID)
	require.Equal(t, batch[0].ID, results[4].Receipt.ID, "a repetition within the batch")
	require.True(t, results[4].Receipt.Replayed)
	require.Equal(t, job.Created, results[5].Receipt.State)
	for i, result := range results {
		require.NoError(t, result.Err)
		if i != 1 && i != 4 {
			require.Equal(t, batch[i].ID, result.Receipt.ID)
		}
	}
	require.Equal(t, len(batch)-1, jobs(t, s))
	requireSound(t, s)
}

// A batch without keys is sent in one go, unless it is large.
func TestAllOfABatchWithoutKeysAreStoredInTheOrderGiven(t *testing.T) {
	for _, n := range []int{2*insertRows + 1, mostInOneGo + 1} {
		s := open(t)
		batch := submissions(t, n)
		batch[0].Hold, batch[insertRows+1].Delay = true, time.Hour
		batch[n-1] = batch[2] // an id twice
		require.Equal(t, n-1 <= mostInOneGo, newBatch(batch).inOneGo())
		for i, result := range submitAll(t, s, batch...) {
			require.NoError(t, result.Err)
			want := job.Queued
			if i == 0 || i == insertRows+1 {
				want = job.Created
			}
			require.Equal(t, want, result.Receipt.State)
			require.Equal(t, batch[i].ID, result.Receipt.ID)
			require.Equal(t, i == n-1, result.Receipt.Replayed)
			require.False(t, result.Receipt.CreatedAt.IsZero())
		}
		require.Equal(t, n-1, jobs(t, s))
		require.Equal(t, 2, ask[int](t, s, "select count(*) from timers"))
		requireSound(t, s)
	}
}

func TestABatchThatIsLargeOrDependsOnOthersIsNotSentInOneGo(t *testing.T) {
	require.True(t, newBatch(submissions(t, mostInOneGo)).inOneGo())
	require.False(t, newBatch(submissions(t, mostInOneGo+1)).inOneGo())
	for name, change := range map[string]func(*job.Submission){
		"a key":         keyed("k"),
		"a gate":        func(j *job.Submission) { j.Gates = []job.Gate{keyGate} },
		"large payload": func(j *job.Submission) { j.Payload = make([]byte, insertBytes) },
		"unique":        func(j *job.Submission) { j.Unique = &job.Unique{} },
	} {
		require.False(t, newBatch([]job.Submission{submission(t), submission(t, change)}).inOneGo(), name)
	}
}

func TestNoneOfABatchIsStoredWhenOneIsRefused(t *testing.T) {
	s := open(t)
	given(t, s, keyed("used"))
	other := func(j *job.Submission) { j.Type = "OTHER" }
	for name, c := range map[string]struct {
		at  map[int]error
		bad []job.Submission
	}{
		"a key of another job":    {map[int]error{3: job.ErrKeyReused}, []job.Submission{submission(t, keyed("used"), other)}},
		"two meanings of one key": {map[int]error{4: job.ErrKeyReused}, []job.Submission{submission(t, keyed("k")), submission(t, keyed("k"), other)}},
	} {
		t.Run(name, func(t *testing.T) {
			batch := append([]job.Submission{submission(t), submission(t, keyed("mine")), submission(t)}, c.bad...)
			for i, result := range submitAll(t, s, batch...) {
				require.ErrorIs(t, result.Err, c.at[i], i)
				require.Zero(t, result.Receipt)
			}
			require.Equal(t, 1, jobs(t, s))
			requireSound(t, s)
		})
	}
}

func TestNoneOfABatchIsStoredWhenTheDatabaseRefusesAValue(t *testing.T) {
	s := open(t)
	for name, bad := range map[string]func(*job.Submission){
		"a value that is not JSON": func(j *job.Submission) { j.Payload = json.RawMessage(`{"n": `) },
		"an attempt count too low": func(j *job.Submission) { j.MaxAttempts = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			for _, others := range [][]job.Submission{{submission(t), submission(t, keyed("mine"))}, submissions(t, insertRows)} {
				batch := append(others, submission(t, bad))
				_, err := s.SubmitAll(t.Context(), batch)
				require.ErrorIs(t, err, job.ErrBadData)
				require.Zero(t, jobs(t, s))
				requireSound(t, s)
			}
		})
	}
}

// The API reports the place of each mistake. The database does not, so it must take
// whatever the API lets through.
func TestTheDatabaseTakesWhateverTheAPILetsThrough(t *testing.T) {
	s := open(t)
	wide := func(n int) string { return strings.Repeat("\U0010fffe", n) }
	var batch []job.Submission
	for _, body := range []string{
		`{"jobType": "` + wide(200) + `", "tenant": "` + wide(200) + `", "idempotencyKey": "` + wide(63) + `abc"}`,
		`{"jobType": "A", "tags": ["` + strings.Repeat(wide(100)+`", "`, 19) + "\u2028 <&> {,} null \\\\ " + `"]}`,
		`{"jobType": "A", "payload": ` + strings.Repeat(`{"":[`, 49) + strings.Repeat(`]}`, 49) + `}`,
		`{"jobType": "A", "payload": ["\u0000 \ud800 \uffff \udc00\ud800", -1e-99999, 1E+99999, ` + strings.Repeat("9", 9999) + `]}`,
		`{"jobType": "A", "payload": {"a": 1, "a": 2}, "priority": -32767, "runAt": "0001-01-01T00:00:00Z", "timeout": "1ms"}`,
		`{"jobType": "A", "priority": 32767, "runAt": "9999-12-31T23:59:59.999999999Z", "timeout": "24h", "maxAttempts": 1000}`,
		`{"jobType": "A", "delay": "87600h", "hold": true}`,
	} {
		item := read.Parse([]byte(body), 1)
		require.Nil(t, item.Problem)
		require.Empty(t, item.Mistakes, body)
		one := item.Submission
		one.ID, one.Tenant = newID(t), cmp.Or(one.Tenant, job.DefaultTenant)
		one.MaxAttempts, one.Timeout = cmp.Or(one.MaxAttempts, 1), cmp.Or(one.Timeout, aMinute)
		batch = append(batch, one)
	}
	for _, result := range submitAll(t, s, batch...) {
		require.NoError(t, result.Err)
	}
	require.Equal(t, len(batch), jobs(t, s))
	for i := range batch {
		batch[i].ID, batch[i].IdempotencyKey = newID(t), ""
	}
	require.True(t, newBatch(batch).inOneGo())
	for _, result := range submitAll(t, s, batch...) {
		require.NoError(t, result.Err)
	}
	require.Equal(t, 2*len(batch), jobs(t, s))
	requireSound(t, s)
}

// Batches with the same keys in opposite orders take their locks in the same order.
func TestOverlappingBatchesAndSinglesMakeOneJobForEachKey(t *testing.T) {
	s := open(t)
	const racers, keys = 12, 40
	var all sync.WaitGroup
	ids := make([][]job.ID, racers)
	for racer := range racers {
		batch := make([]job.Submission, keys)
		for k := range batch {
			batch[k] = submission(t, keyed(fmt.Sprintf("key-%02d", k)))
		}
		if racer%2 == 1 {
			slices.Reverse(batch)
		}
		all.Go(func() {
			var results []job.Submitted
			if racer%3 == 2 {
				results = s.Submit(context.Background(), batch)
			} else {
				results, _ = s.SubmitAll(context.Background(), batch)
			}
			for _, result := range results {
				ids[racer] = append(ids[racer], result.Receipt.ID)
			}
			if racer%2 == 1 {
				slices.Reverse(ids[racer])
			}
		})
	}
	all.Wait()
	require.Equal(t, keys, jobs(t, s))
	for _, got := range ids {
		require.Len(t, got, keys)
		require.Equal(t, ids[0], got)
	}
	requireSound(t, s)
}

func TestABatchWhoseCommitIsNotAnsweredIsStoredOnce(t *testing.T) {
	p, s, direct := behindProxy(t)
	for name, c := range map[string]struct {
		lose  *atomic.Int32
		batch []job.Submission
	}{
		"commit":                     {&p.LoseCommits, []job.Submission{submission(t), submission(t, keyed("commit")), submission(t)}},
		"first answer":               {&p.LoseAnswers, []job.Submission{submission(t), submission(t, keyed("answer")), submission(t)}},
		"request":                    {&p.LoseRequests, []job.Submission{submission(t), submission(t, keyed("request")), submission(t)}},
		"first answer, without keys": {&p.LoseAnswers, submissions(t, insertRows+1)},
		"request, without keys":      {&p.LoseRequests, submissions(t, insertRows+1)},
	} {
		t.Run(name, func(t *testing.T) {
			before := jobs(t, direct)
			lose, batch := c.lose, c.batch
			lose.Store(1)
			for i, result := range submitAll(t, s, batch...) {
				require.NoError(t, result.Err)
				require.Equal(t, batch[i].ID, result.Receipt.ID)
				require.False(t, result.Receipt.Replayed)
			}
			require.Zero(t, lose.Load(), "it was lost")
			require.Equal(t, before+len(batch), jobs(t, direct))
		})
	}
}

func TestABatchSentASecondTimeMakesNothingNew(t *testing.T) {
	s := open(t)
	known := given(t, s, keyed("known"))
	batch := append(submissions(t, 3), submission(t, keyed("known")), submission(t, keyed("new")))
	first := submitAll(t, s, batch...)
	second := submitAll(t, s, batch...)
	for i, result := range second {
		require.NoError(t, result.Err)
		require.Equal(t, first[i].Receipt.ID, result.Receipt.ID)
	}
	require.Equal(t, known, second[3].Receipt.ID)
	require.Equal(t, len(batch), jobs(t, s))

	without := append(submissions(t, insertRows), submission(t, func(j *job.Submission) { j.Hold = true }))
	first = submitAll(t, s, without...)
	for i, result := range submitAll(t, s, without...) {
		require.NoError(t, result.Err)
		require.Equal(t, first[i].Receipt, result.Receipt)
	}
	require.Equal(t, len(batch)+len(without), jobs(t, s))

	twice := submission(t)
	_, err := s.SubmitAll(t.Context(), []job.Submission{twice, submission(t), {
		ID: twice.ID, Type: jobType, Tenant: job.DefaultTenant, IdempotencyKey: "k", Payload: twice.Payload,
		MaxAttempts: 1, Timeout: aMinute,
	}})
	require.True(t, idTaken(err), "an id that two of a batch have: %v", err)
	require.Equal(t, len(batch)+len(without), jobs(t, s))
}

func TestAHundredRacersWithOneKeyMakeOneJob(t *testing.T) {
	s := open(t)
	const racers = 100
	ids := make([]job.ID, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for racer := range racers {
		batch := []job.Submission{submission(t, keyed("the key"))}
		if racer%2 == 1 {
			batch = append(batch, submission(t))
		}
		all.Go(func() {
			<-start
			var results []job.Submitted
			if racer%2 == 0 {
				results = s.Submit(context.Background(), batch)
			} else {
				results, _ = s.SubmitAll(context.Background(), batch)
			}
			if len(results) > 0 && results[0].Err == nil {
				ids[racer] = results[0].Receipt.ID
			}
		})
	}
	close(start)
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.NotZero(t, ids[0])
	require.Equal(t, 1+racers/2, jobs(t, s))
	requireSound(t, s)
}

func TestAnInsertionHasBoundedRowsAndBytes(t *testing.T) {
	sized := func(sizes ...int) (entries []entry, places []int) {
		for i, size := range sizes {
			entries = append(entries, entry{Submission: &job.Submission{Payload: make([]byte, size)}})
			places = append(places, i)
		}
		return entries, places
	}
	for name, c := range map[string]struct{ sizes, want []int }{
		"none":             {nil, nil},
		"few":              {[]int{1, 2, 3}, []int{3}},
		"many":             {make([]int, 2*insertRows+1), []int{insertRows, insertRows, 1}},
		"large ones":       {[]int{insertBytes / 2, insertBytes / 2, 1, insertBytes}, []int{2, 1, 1}},
		"one that is more": {[]int{1, 2 * insertBytes, 1}, []int{1, 1, 1}},
	} {
		entries, places := sized(c.sizes...)
		var got, all []int
		for in := range insertions(entries, places) {
			got, all = append(got, len(in.indexes)), append(all, in.indexes...)
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, places, all, name)
	}
}
