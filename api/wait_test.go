package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// outlived is a deadline of the server that something outlives. A busy machine may take most
// of it to send a request.
const outlived = 6 * time.Second

// pending is a ledger with one known job. It reports when somebody waits for the job.
func pending() *ledger {
	l := newLedger()
	jobIn(job.Running)(l)
	l.waiting = make(chan struct{}, 10)
	return l
}

func TestAWaitEndsWhenTheJobIsFinal(t *testing.T) {
	t.Parallel()
	l := pending()
	// The server's deadlines are shorter than the wait.
	server := serve(t, l, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = outlived, outlived })
	go func() {
		<-l.waiting
		time.Sleep(outlived * 3 / 2) // past the deadlines
		l.finish()
	}()
	began := time.Now()
	code, body := server.get(t, known+"?wait=1m")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"status":"COMPLETED"`)
	require.Less(t, time.Since(began), time.Minute)

	code, body = server.get(t, known+"?wait=1m")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"status":"COMPLETED"`, "it was final already")
}

func TestAWaitEndsWithTheJobAsItIsWhenTheTimeIsOver(t *testing.T) {
	for _, wait := range []string{"0s", "0", "10ms", "-0s"} {
		code, body := serve(t, pending()).get(t, known+"?wait="+wait)
		require.Equal(t, 200, code)
		require.Contains(t, body, `"status":"RUNNING"`)
	}
}

func TestAWaitDoesNotHoldUpTheServerWhenItStops(t *testing.T) {
	l := pending()
	server := serve(t, l)
	go func() {
		<-l.waiting
		server.stop()
	}()
	began := time.Now()
	code, body := server.get(t, known+"?wait=1m")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"status":"RUNNING"`)
	require.Less(t, time.Since(began), time.Minute)
}

// leaver reports when a wait has ended because its client left.
type leaver struct {
	*ledger
	left chan error
}

func (l leaver) Await(ctx context.Context, id job.ID) (job.View, error) {
	v, err := l.ledger.Await(ctx, id)
	l.left <- err
	return v, err
}

func TestAClientThatLeavesEndsItsWait(t *testing.T) {
	l := leaver{ledger: pending(), left: make(chan error, 1)}
	server := serve(t, l)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+known+"?wait=1m", nil)
	require.NoError(t, err)
	go func() {
		<-l.waiting
		leave()
	}()
	_, err = server.Client().Do(request) //nolint:bodyclose // There is no answer.
	require.ErrorIs(t, err, context.Canceled)
	select {
	case err := <-l.left:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("the wait goes on")
	}
}

func TestOddWaitsAreRefused(t *testing.T) {
	for _, wait := range []string{"30", "-1ns", "60.000000001s", "1h", "soon", "9999999999h"} {
		answer := send(newAPI(t, pending()), "GET", known+"?wait="+wait, "")
		require.Equal(t, 422, answer.Code, wait)
		require.Contains(t, answer.Body.String(), `"location":"query.wait"`)
	}
	require.Equal(t, 404, send(newAPI(t, pending()), "GET", unknown+"?wait=1m", "").Code)
}

func TestAWaitThatIsNotOneIsRefused(t *testing.T) {
	l := newLedger()
	jobIn(job.Queued)(l)
	for _, query := range []string{"?Wait=1s", "?wait=", "?wait=1s&wait=2s", "?wait=1", "?wait=61s", "?wiat=1s"} {
		require.Equal(t, 422, send(newAPI(t, l), "GET", known+query, "").Code, query)
	}
}
