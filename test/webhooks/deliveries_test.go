package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// receiver is told of ends. What it does with a delivery, its path says.
type receiver struct {
	url string

	mu       sync.Mutex
	requests map[string]int // of each webhook-id
	accepted map[string]v1.Webhook
	unsigned int
	followed int // redirects
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{requests: make(map[string]int), accepted: make(map[string]v1.Webhook)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	id := request.Header.Get("Webhook-Id")
	var event v1.Webhook
	r.mu.Lock()
	if request.URL.Path == "/inside" {
		r.followed++
	}
	if err != nil || !signed(request.Header, body) || json.Unmarshal(body, &event) != nil {
		r.unsigned++
	}
	r.requests[id]++
	nth := r.requests[id]
	r.mu.Unlock()
	switch {
	case request.URL.Path == "/redirects":
		http.Redirect(w, request, r.url+"/inside", http.StatusTemporaryRedirect)
		return
	case request.URL.Path == "/hangs" && nth == 1:
		<-request.Context().Done()
		return
	case request.URL.Path == "/fails" && nth <= 2:
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	r.accepted[id] = event
	r.mu.Unlock()
}

func signed(header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("Webhook-Id") + "." + header.Get("Webhook-Timestamp") + "."))
	mac.Write(body)
	return err == nil && header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// seen is how many deliveries were accepted.
func (r *receiver) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.accepted)
}

// allowed are settings for deliveries to this machine, which are retried soon.
var allowed = []string{
	"plugins.0.env.WEBHOOK_ALLOW_PRIVATE=true",
	"jobs.types.WEBHOOK.timeout=1s",
	"jobs.types.WEBHOOK.max_attempts=1000",
	"jobs.types.WEBHOOK.retry.backoff=fixed",
	"jobs.types.WEBHOOK.retry.initial_delay=50ms",
}

func TestEachEndIsDeliveredWhateverIsKilled(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, 2, allowed...), newReceiver(t)
	ends := 0
	submitted := func(o *rig.Orchestrator) {
		var batch []rig.Submission
		for _, path := range []string{"/accepts", "/fails", "/hangs", "/redirects"} {
			for range 5 {
				batch = append(batch,
					rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]int{"sleepSeconds": 1}, CallbackURL: r.url + path},
					rig.Submission{JobType: "FAIL_JOB", MaxAttempts: 1, CallbackURL: r.url + path},
					rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]int{"sleepSeconds": 1}, Hold: true, CallbackURL: r.url + path})
			}
		}
		ids, err := o.SubmitBatch(t.Context(), batch)
		require.NoError(t, err)
		for i, one := range batch {
			if one.Hold {
				cancel(t, o, ids[i])
			}
		}
		ends += len(batch)
	}
	for kill := range 4 {
		o, before := s.orchestrators[kill%2], r.seen()
		submitted(o)
		require.Eventually(t, func() bool { return r.seen() > before+3 }, patience, time.Millisecond)
		if victims := o.Handlers("handlers"); kill >= 2 && len(victims) > 0 {
			_ = victims[0].Signal(syscall.SIGKILL)
			continue
		}
		require.NoError(t, o.Kill())
		start(t, o)
	}
	s.await(t, `select count(*) from jobs where finished_at is null and job_type <> 'WEBHOOK'`)
	// A job that is dead again has another end.
	again := rigtest.Submit(t, s.orchestrators[0], rig.Submission{JobType: "FAIL_JOB", MaxAttempts: 1, CallbackURL: r.url + "/accepts"})
	rigtest.Await(t, s.orchestrators[0], again, "FAILED")
	require.NoError(t, s.orchestrators[0].Call(t.Context(), http.MethodPost, "/jobs/"+again+"/requeue", nil, http.StatusOK, nil))
	rigtest.Await(t, s.orchestrators[0], again, "FAILED")
	ends += 2
	s.await(t, `select count(*) from (select from ends union all select from undelivered) waiting`)
	s.await(t, `select count(*) from jobs where finished_at is null`)

	require.Equal(t, ends, ask[int](t, s, `select count(*) from jobs where job_type = 'WEBHOOK'`), "one delivery for each end")
	require.Equal(t, 2, ask[int](t, s, `select count(*) from jobs where job_type = 'WEBHOOK' and parent_id = $1::text::uuid`, again))
	s.shutDown(t)
	require.Zero(t, ask[int](t, s, `select count(*) from jobs
		where job_type = 'WEBHOOK' and (state = 'dead') <> (payload ->> 'url' like '%/redirects')`), "a redirect is the receiver's fault, and nothing else")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Zero(t, r.unsigned)
	require.Zero(t, r.followed, "no redirect is followed")
	rows, err := s.db.Query(t.Context(), `select job_id::text, parent_id::text, payload ->> 'url', max_attempts,
		(select count(*) from unsuccessful_attempts a where a.job_id = j.job_id) from jobs j where job_type = 'WEBHOOK'`)
	require.NoError(t, err)
	defer rows.Close()
	more := 0
	for rows.Next() {
		var id, parent, url string
		var most, failed int
		require.NoError(t, rows.Scan(&id, &parent, &url, &most, &failed))
		require.LessOrEqual(t, r.requests[id], failed+1, "one request for each attempt")
		require.NotZero(t, r.requests[id])
		more += r.requests[id] - 1
		event, ok := r.accepted[id]
		require.Equal(t, !strings.HasSuffix(url, "/redirects"), ok, "%s of job %s", url, parent)
		if ok {
			require.Equal(t, parent, event.Data.JobID.String())
			require.Contains(t, []string{"job.succeeded", "job.dead", "job.canceled"}, event.Type)
		}
	}
	require.NoError(t, rows.Err())
	t.Logf("%d ends, %d more requests", ends, more)
	require.Len(t, r.requests, ends, "the same end has the same webhook-id")
}

func TestAReceiverOnThisMachineIsRefused(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, 1), newReceiver(t)
	o := s.orchestrators[0]
	cancel(t, o, rigtest.Submit(t, o, rig.Submission{JobType: "FAIL_JOB", Hold: true, CallbackURL: r.url}))
	require.Eventually(t, func() bool {
		return ask[int](t, s, `select count(*) from jobs where job_type = 'WEBHOOK' and state = 'dead'`) == 1
	}, patience, glance)
	id := ask[string](t, s, `select job_id::text from jobs where job_type = 'WEBHOOK'`)
	var shown v1.JobDetail
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &shown))
	require.Len(t, shown.Attempts, 1)
	require.Equal(t, job.PermanentFailure, shown.Attempts[0].Outcome)
	require.Equal(t, "private_address", shown.Attempts[0].Code)
	require.Empty(t, r.requests)
	s.shutDown(t)
}
