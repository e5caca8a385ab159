package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnIDInAnyCaseOrAKeyIsLookedUp(t *testing.T) {
	l := newLedger()
	jobIn(job.Queued)(l)
	id := strings.TrimPrefix(known, "/jobs/")
	parsed, err := job.ParseID(id)
	require.NoError(t, err)
	h := newAPI(t, l)
	for q, want := range map[string]job.Lookup{
		strings.ToUpper(id): {ID: parsed, Key: strings.ToUpper(id)},
		" " + id + " ":      {ID: parsed, Key: " " + id + " "},
		"order 7":           {Key: "order 7"},
	} {
		answer := send(h, "GET", "/debug/jobs/lookup?q="+url.QueryEscape(q), "")
		require.Equal(t, 200, answer.Code, answer.Body)
		want.Limit = l.lookup.Limit
		require.Equal(t, want, l.lookup, q)
		var found v1.Lookup
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &found))
		require.Equal(t, want.ID == parsed, len(found.Jobs) == 1)
	}
	for _, query := range []string{"", "?q=", "?q=" + strings.Repeat("x", 256), "?q=a&q=b", "?q=a&limit=1"} {
		require.Equal(t, 422, send(h, "GET", "/debug/jobs/lookup"+query, "").Code, query)
	}
}

func TestALookupSeesTheCallersTenantOnly(t *testing.T) {
	l := newLedger()
	jobIn(job.Queued)(l)
	h := behind(l, guard.Config{Access: accessFor(true)})
	for id, view := range l.jobs {
		view.Tenant = "other"
		l.jobs[id] = view
	}
	path := "/debug/jobs/lookup?q=" + strings.TrimPrefix(known, "/jobs/")
	answer := send(h, "GET", path, "", ofAcme)
	require.JSONEq(t, `{"jobs":[]}`, answer.Body.String(), "the job is of another tenant")
	require.Equal(t, "acme", l.lookup.Tenant)
	require.Equal(t, 404, send(h, "GET", path+"&tenant=other", "", ofAcme).Code)
}
