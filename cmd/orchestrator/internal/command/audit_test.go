package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const someActs = `{"acts":[
	{"actId":"2","at":"2026-02-20T11:59:48Z","actor":"admin","action":"job.requeue","tenant":"acme","jobId":"` + firstID + `","reason":"the bank is back","result":"done"},
	{"actId":"1","at":"2026-02-20T11:59:00Z","actor":"token ops","action":"dead-letter.requeue","filter":{"limit":"100","jobType":"SEND_EMAIL"},"count":100,
		"result":"refused: it needs the scope operate"}]}`

func TestTheAuditLogIsListed(t *testing.T) {
	const asked = "GET /debug/audit?action=job.requeue&actor=admin&before=2026-02-21T00%3A00%3A00Z&from=2026-02-20T00%3A00%3A00Z&jobId=" +
		firstID + "&limit=100&tenant=acme"
	f := &fake{answers: map[string]string{asked: someActs}}
	out, _, err := f.run(t, "audit", "--actor", "admin", "--action", "job.requeue", "--tenant", "acme", "--job", firstID,
		"--from", "2026-02-20T00:00:00Z", "--before", "2026-02-21T00:00:00Z")
	require.NoError(t, err)
	golden(t, "audit", out)
	_, _, err = f.run(t, "audit", "--limit", "0")
	require.Error(t, err)
}

func TestALinkLeadsToTheServer(t *testing.T) {
	f := &fake{answers: map[string]string{"POST /login-links": `{"path":"/ui/link?code=secret","expiresInSeconds":60}`}}
	out, _, err := f.run(t, "ui")
	require.NoError(t, err)
	require.Regexp(t, `^http://[^/]+/ui/link\?code=secret\n$`, out)
	out, _, err = f.run(t, "ui", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"/ui/link?code=secret","expiresInSeconds":60}`, out)
	_, _, err = f.run(t, "ui", "--direct")
	require.ErrorContains(t, err, "--direct does not work with this command")
}
