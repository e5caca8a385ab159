package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	emailLimit = `{"scope":"type","name":"SEND_EMAIL","concurrency":10,"rate":"100/1m","burst":10,"fair":true,"used":3,"configured":false,"updatedBy":"token ops","updatedAt":"2026-02-20T11:00:00Z"}`
	keyLimit   = `{"scope":"key","name":"smtp","concurrency":0,"onConflict":"queue","configured":true,"updatedAt":"2026-02-20T11:00:00Z"}`
	emailPause = `{"scope":"type","name":"SEND_EMAIL","reason":"mail server moves","pausedBy":"admin","since":"2026-02-20T11:59:30Z","until":"2026-02-20T13:00:00Z","drain":true}`
	halt       = `{"scope":"all","name":"","since":"2026-02-20T11:00:00Z","drain":false}`
	drained    = `{"workerId":"w-1","host":"alpha","pid":4711,"roles":["worker","maintenance"],"condition":"draining","startedAt":"2026-02-20T07:00:00Z","lastHeartbeat":"2026-02-20T11:59:58Z","plugins":[],"jobs":{"running":12}}`
)

func rulesAPI() *fake {
	return &fake{answers: map[string]string{
		"GET /debug/limits":                 `{"limits":[` + keyLimit + `,` + emailLimit + `]}`,
		"PUT /debug/limits/type/SEND_EMAIL": emailLimit,
		"PUT /debug/limits/tenant/%2A":      emailLimit,
		"DELETE /debug/limits/key/smtp":     problem("409", `{"status":409,"detail":"a configuration sets this limit"}`),
		"GET /debug/pauses":                 `{"pauses":[` + halt + `,` + emailPause + `]}`,
		"PUT /debug/pauses/type/SEND_EMAIL": emailPause,
		"PUT /debug/pauses/all":             halt,
		"DELETE /debug/pauses/all":          halt,
		"DELETE /debug/pauses/tenant/a%2Fb": emailPause,
		"POST /debug/workers/w-1/drain":     drained,
		"POST /debug/workers/w-1/resume":    drained,
	}}
}

func TestRulesAreShown(t *testing.T) {
	for name, args := range map[string][]string{
		"limits": {"limits", "list"}, "pauses": {"pauses"}, "drain": {"drain", "w-1"},
	} {
		out, _, err := rulesAPI().run(t, args...)
		require.NoError(t, err, name)
		golden(t, name, out)
	}
	out, _, err := rulesAPI().run(t, "pauses", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"pauses":[`+halt+`,`+emailPause+`]}`, out)
}

func TestFlagsBecomeMembersOfARule(t *testing.T) {
	for _, c := range []struct {
		args        []string
		asked, sent string
	}{
		{
			[]string{"limits", "set", "type", "SEND_EMAIL", "--concurrency", "0", "--rate", "100/1m", "--burst", "10", "--fair"},
			"PUT /debug/limits/type/SEND_EMAIL", `{"burst":10,"concurrency":0,"fair":true,"rate":"100/1m"}`,
		},
		{
			[]string{"limits", "set", "tenant", "*", "--weight", "1", "--on-conflict", "queue"},
			"PUT /debug/limits/tenant/%2A", `{"onConflict":"queue","weight":1}`,
		},
		{
			[]string{"pause", "type", "SEND_EMAIL", "--reason", "mail server moves", "--for", "1h", "--drain"},
			"PUT /debug/pauses/type/SEND_EMAIL", `{"reason":"mail server moves","for":"1h0m0s","drain":true}`,
		},
		{[]string{"pause", "all"}, "PUT /debug/pauses/all", `{}`},
		{[]string{"resume", "all"}, "DELETE /debug/pauses/all", ""},
		{[]string{"resume", "tenant", "a/b"}, "DELETE /debug/pauses/tenant/a%2Fb", ""},
		{[]string{"resume", "worker", "w-1"}, "POST /debug/workers/w-1/resume", ""},
	} {
		f := rulesAPI()
		_, _, err := f.run(t, c.args...)
		require.NoError(t, err, c.args)
		require.Equal(t, []string{c.asked}, f.asked)
		require.Equal(t, []string{c.sent}, f.sent)
	}
}

func TestRulesNeedAScopeAndATarget(t *testing.T) {
	for _, c := range []struct {
		args   []string
		reason string
	}{
		{[]string{"pause"}, "SCOPE is missing"},
		{[]string{"pause", "job"}, `"job" is not one of type, plugin, tenant, all`},
		{[]string{"pause", "type"}, "TARGET is missing: which type?"},
		{[]string{"pause", "all", "of", "it"}, `"of" is not expected`},
		{[]string{"pause", "type", "A", "B"}, `"B" is not expected`},
		{[]string{"resume", "worker"}, "TARGET is missing: which worker?"},
		{[]string{"limits", "set", "queue", "a"}, "is not one of type, tenant, key, fairness"},
		{[]string{"limits", "set", "type", "A"}, "no limit: set --concurrency"},
		{[]string{"limits", "delete", "type"}, "TARGET is missing"},
		{[]string{"limits", "delete", "key", "smtp"}, "a configuration sets this limit"},
		{[]string{"limits", "set", "type", ""}, "TARGET is empty"},
		{[]string{"pause", "", "A"}, "SCOPE is empty"},
		{[]string{"drain"}, "WORKER is missing"},
	} {
		_, _, err := rulesAPI().run(t, c.args...)
		require.ErrorContains(t, err, c.reason, c.args)
	}
}
