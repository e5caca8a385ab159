package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	somePlan = `{"at":"2026-02-20T12:00:00Z","sampledShare":0.125,"policies":[{"succeeded":"168h0m0s","canceled":"1h30m0s","dead":"keep","keys":"1m0s"},
		{"jobType":"SEND_EMAIL","succeeded":"24h0m0s","canceled":"1h0m30s","dead":"keep","keys":"keep"}],
		"groups":[{"jobType":"SEND_EMAIL","state":"succeeded","fate":"delete","jobs":11042,"bytes":4416800,"oldestFinishedAt":"2026-02-19T09:00:00Z"},
		{"jobType":"SEND_EMAIL","state":"queued","fate":"open","jobs":2,"bytes":800}]}`
	someErasure = `{"erasureId":"` + firstID + `","tenant":"acme","reason":"contract ended","askedBy":"token ops","askedAt":"2026-02-20T11:59:48Z","erased":4310,"open":2,"updatedAt":"2026-02-20T11:59:50Z"`
	finished    = someErasure + `,"finishedAt":"2026-02-20T11:59:50Z"}`
)

func retentionAPI() *fake {
	return &fake{answers: map[string]string{
		"GET /retention/plan":               somePlan,
		"POST /jobs/" + firstID + "/erase":  jobJSON(firstID, "COMPLETED", `,"erasedAt":"2026-02-20T12:00:00Z"`),
		"POST /jobs/" + secondID + "/erase": problem("409", `{"status":409,"detail":"the job has not ended: cancel it first"}`),
		"POST /erasures":                    someErasure + "}",
		"GET /erasures":                     `{"erasures":[` + finished + `,` + someErasure + `}]}`,
		"GET /erasures/" + firstID:          finished,
	}}
}

func TestAPlanSaysWhatGoesAndWhatStays(t *testing.T) {
	out, notes, err := retentionAPI().run(t, "retention", "plan")
	require.NoError(t, err)
	golden(t, "retention-plan", notes+out)
	out, _, err = retentionAPI().run(t, "retention", "plan", "--json")
	require.NoError(t, err)
	require.JSONEq(t, somePlan, out)
}

func TestJobsAreErasedOneByOne(t *testing.T) {
	f := retentionAPI()
	out, notes, err := f.run(t, "erase", firstID, secondID, "--reason", "ticket 4711")
	require.Equal(t, Exit{CodeFailed}, err)
	golden(t, "erase", notes+out)
	require.JSONEq(t, `{"reason":"ticket 4711"}`, f.sent[0])
}

func TestTheErasureOfATenantIsShown(t *testing.T) {
	f := retentionAPI()
	out, _, err := f.run(t, "erase", "--tenant", "acme", "--reason", "contract ended")
	require.NoError(t, err)
	require.Contains(t, out, "erasing")
	require.JSONEq(t, `{"tenant":"acme","reason":"contract ended"}`, f.sent[0])
	out, _, err = f.run(t, "erasures")
	require.NoError(t, err)
	golden(t, "erasures", out)
	out, _, err = f.run(t, "erasures", firstID)
	require.NoError(t, err)
	require.Contains(t, out, "finished")
}

func TestAnErasureNamesJobsOrATenant(t *testing.T) {
	for _, args := range [][]string{{"erase"}, {"erase", "--tenant", "acme", firstID}, {"erasures", "a", "b"}, {"retention", "plan", "now"}} {
		f := retentionAPI()
		_, _, err := f.run(t, args...)
		require.Error(t, err, "%v", args)
		require.Empty(t, f.asked)
	}
}
