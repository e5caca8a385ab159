package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	ran    = `,"startedAt":"2026-02-20T11:57:00Z","finishedAt":"2026-02-20T11:59:00Z"`
	during = `,"startedAt":"2026-02-20T11:59:00Z","progress":{"done": 3,"of":10}`

	detail = `{"jobId":"` + firstID + `","jobType":"SEND_EMAIL","status":"FAILED","createdAt":"2026-02-20T11:00:00Z","updatedAt":"2026-02-20T11:59:00Z",
"startedAt":"2026-02-20T11:58:58Z","finishedAt":"2026-02-20T11:59:00Z","progress":"sending","state":"dead","tenant":"acme","payload":{"to": "a@b.c"},
"checkpoint":{"page":7},"idempotencyKey":"order-4711","callbackUrl":"https://example.com/hook","tags":["mail","vip"],"priority":5,"runAt":"2026-02-20T11:00:00Z","held":false,"attemptsCharged":2,
"maxAttempts":2,"interruptions":1,"crashes":2,"fence":3,"timeoutSeconds":30,"lastError":"mailbox \u001b[31mfull","worker":"w-1","traceParent":"x","traceId":"0af7651916cd43dd8448eb211c80319c","traceUrl":"http://localhost:16686/trace/0af7651916cd43dd8448eb211c80319c",
"attempts":[{"number":1,"fence":1,"outcome":"timeout","worker":"w-1","plugin":"builtin","pluginVersion":"v1","claimedAt":"2026-02-20T11:50:00Z","endedAt":"2026-02-20T11:50:30Z","durationSeconds":30,"code":"TIMEOUT","error":"took longer than 30s"},
{"number":1,"fence":2,"outcome":"interrupted","worker":"w-2","dueAt":"2026-02-20T11:50:30Z","claimedAt":"2026-02-20T11:51:00Z","endedAt":"2026-02-20T11:51:00.25Z","durationSeconds":0.25},
{"number":2,"fence":3,"outcome":"permanent","worker":"w-1","plugin":"builtin","pluginVersion":"v1","dueAt":"2026-02-20T11:52:00Z","claimedAt":"2026-02-20T11:58:58Z","beganAt":"2026-02-20T11:58:59Z","endedAt":"2026-02-20T11:59:00Z","durationSeconds":2,"code":"MAILBOX","error":"mailbox \u001b[31mfull","stack":"goroutine 1\n\tmain.go:1\u0007\n"}]}`

	running = `{"jobId":"` + secondID + `","jobType":"SLEEP_JOB","status":"RUNNING","createdAt":"2026-02-20T11:59:00Z","updatedAt":"2026-02-20T11:59:00Z",
"startedAt":"2026-02-20T11:59:00Z","state":"running","tenant":"default","payload":null,"workflowId":"` + thirdID + `","resubmissionOf":"` + firstID + `","resubmissions":["` + thirdID + `"],"tags":[],"priority":0,"held":true,"attemptsCharged":1,"maxAttempts":4,"interruptions":0,
"fence":1,"timeoutSeconds":0.5,"worker":"w-1","lease":{"worker":"w-1","claimedAt":"2026-02-20T11:59:00Z","beganAt":"2026-02-20T11:59:01Z","expiresAt":"2026-02-20T12:00:20Z","cancelRequested":true},"attempts":[]}`

	queued = `{"jobId":"` + thirdID + `","jobType":"SEND_EMAIL","status":"PENDING","createdAt":"2026-02-20T11:59:00Z","updatedAt":"2026-02-20T11:59:00Z","state":"queued","tenant":"acme",
"payload":null,"tags":[],"priority":0,"runAt":"2026-02-20T11:59:00Z","held":false,"concurrencyKey":"tenant-7","concurrencyLimit":3,"onConflict":"cancel_oldest","fairnessKey":"e\u001b[31mu","attemptsCharged":0,"maxAttempts":4,"interruptions":0,"crashes":0,"fence":0,"timeoutSeconds":30,
"waits":[{"reason":"paused","message":"type paused by ann: mig\u001b[31mration","pause":{"scope":"type","name":"SEND_EMAIL","reason":"mig\u001b[31mration","by":"ann","since":"2026-02-20T11:00:00Z"},"ahead":0},
{"reason":"concurrency_key","message":"waits for a slot of key tenant-7 (3 of 3 running), behind 41 jobs","gate":{"scope":"key","name":"tenant-7","used":3,"limit":3},"ahead":41}],"attempts":[]}`

	found = `{"jobId":"` + firstID + `","jobType":"SEND_EMAIL","status":"PENDING","createdAt":"2026-02-20T11:50:00Z","updatedAt":"2026-02-20T11:50:01Z","startedAt":"2026-02-20T11:50:00Z","state":"retry","tenant":"acme",` +
		`"tags":["nightly","\u001b[31mred"],"priority":7,"runAt":"2026-02-20T12:00:00Z","attemptsCharged":2,"maxAttempts":4,"worker":"w-1","errorCode":"MAILBOX","lastError":"mailbox \u001b[31mfull"},` +
		`{"jobId":"` + secondID + `","jobType":"SEND_EMAIL","status":"PENDING","createdAt":"2026-02-20T11:50:00Z","updatedAt":"2026-02-20T11:50:01Z","state":"created","tenant":"default","tags":[],"priority":0,"held":true,"attemptsCharged":0,"maxAttempts":4}`

	logs = `{"jobId":"` + firstID + `","attempts":[{"number":1,"fence":1,"dropped":1234,"lines":[{"time":"2026-02-20T11:58:58Z","level":"info","message":"begun\nat once"}]},` +
		`{"number":2,"fence":3,"dropped":0,"lines":[{"time":"2026-02-20T11:59:00.0125Z","level":"warn","message":"mailbox \u001b[31mfull","attributes":{"of": "\u009bada"},"truncated":true},` +
		`{"time":"2026-02-20T11:59:00Z","level":"error","message":""}]}]}`

	types = `{"jobTypes":[{"jobType":"PRINT","plugin":"printing","version":"v1.2","description":"Puts ink on paper.","concurrency":2,"maxAttempts":6,"timeoutSeconds":1.5,"retry":{"backoff":"exponential","initialDelaySeconds":0.25,"factor":3,"maxDelaySeconds":600,"jitterMin":0.7,"jitterMax":1,"immediateAfterTimeout":true},"hasSchema":true},` +
		`{"jobType":"漢字","plugin":"odd","version":"","maxAttempts":1,"timeoutSeconds":60,"retry":{"backoff":"immediate","initialDelaySeconds":0,"factor":0,"maxDelaySeconds":0,"jitterMin":0,"jitterMax":0,"immediateAfterTimeout":false},"hasSchema":false}]}`
	oneType = `{"jobType":"PRINT","plugin":"printing","version":"v1.2","description":"Puts ink on paper.","concurrency":2,"maxAttempts":6,"timeoutSeconds":330,"retry":{"backoff":"fixed","initialDelaySeconds":2,"factor":1,"maxDelaySeconds":2,"jitterMin":1,"jitterMax":1,"immediateAfterTimeout":false},"terms":{"concurrencyKey":"/customerId","keyClass":"customer","concurrencyLimit":1,"onConflict":"cancel_oldest","fairnessKey":"/region"},"hasSchema":true}`

	promoted    = `{"trigger":"restart","from":{"version":"1.0","sha256":"2c26b46b68ffc68f"},"to":{"version":"1.0","sha256":"2c26b46b68ffc68f"},"begunAt":"2026-02-20T11:59:50Z","endedAt":"2026-02-20T11:59:51Z","result":"promoted"}`
	rolledBack  = `{"trigger":"request","from":{"version":"1.0","sha256":"2c26b46b68ffc68f"},"to":{"version":"","sha256":"fcde2b2edba56bf4"},"begunAt":"2026-02-20T11:58:50Z","endedAt":"2026-02-20T11:58:53Z","result":"rolled_back","reason":"it ended during its start: exit status 1\u001b[2J"}`
	mailHandler = `{"version":"1.0","sha256":"2c26b46b68ffc68f","name":"mail","path":"/opt/mail","state":"up","jobTypes":["SEND_EMAIL"],"pids":[17,18],"processes":2,"running":3,"free":17,"isolated":1,"draining":0,"restarts":2,"crashes":1,"use":[{"pid":17,"memory":67108864,"cpus":0.25,"processes":9},{"pid":18,"memory":33554432,"cpus":0.01,"processes":8}],"lastError":"exit status 3","skipReason":"stat /opt/mail: no such file",` +
		`"candidate":{"version":"1.1","sha256":"fcde2b2edba56bf4","state":"canary","pids":[19],"running":1,"ended":12,"failed":2,"servingEnded":90,"servingFailed":0,"slowest":{"jobType":"SEND_EMAIL","medianSeconds":2.5,"servingMedianSeconds":0.125}},"lastSwap":` + rolledBack + `}`
	idleHandler = `{"version":"","sha256":"fcde2b2edba56bf4","name":"idle","path":"/opt/idle","state":"disabled","jobTypes":[],"pids":[],"processes":1,"running":0,"free":0,"isolated":0,"draining":0,"restarts":0,"crashes":0}`
	workers     = `{"workers":[{"workerId":"w-1","host":"alpha","pid":4711,"roles":["api","worker","maintenance"],"condition":"alive","startedAt":"2026-02-20T07:00:00Z","lastHeartbeat":"2026-02-20T11:59:58Z","plugins":[],"jobs":{"running":12,"succeeded":1234567,"dead":2}},` +
		`{"workerId":"w-2","host":"beta","pid":1,"roles":["worker"],"condition":"stopped","startedAt":"2026-02-19T11:00:00Z","lastHeartbeat":"2026-02-20T11:00:00Z","stoppedAt":"2026-02-20T11:00:00Z","plugins":[],"jobs":{}}]}`

	queues = `{"queues":[{"jobType":"SEND_EMAIL","queued":1200,"oldestQueuedSeconds":192,"scheduled":3,"held":1,"retrying":4,"running":10,"dead":2,"served":true},` +
		`{"jobType":"OLD_JOB","queued":0,"oldestQueuedSeconds":0,"scheduled":0,"held":0,"retrying":0,"running":0,"dead":0,"served":false},` +
		`{"jobType":"PAUSED_JOB","queued":1,"oldestQueuedSeconds":5,"scheduled":0,"held":0,"retrying":0,"running":0,"dead":0,"served":true,"paused":true}],"unserved":["OLD_JOB"]}`

	overTime = `{"at":"2026-02-20T12:00:00Z","window":"15m","slotSeconds":10,"jobType":"SEND_EMAIL","slots":[` +
		`{"start":"2026-02-20T11:59:50Z","submitted":1200,"succeeded":1100,"retried":3,"dead":1,"canceled":0,"requeued":0,"open":120,` +
		`"wait":{"attempts":1200,"p50Seconds":0.0042,"p95Seconds":1.25,"p99Seconds":3},"run":{"attempts":1104,"p50Seconds":1,"p95Seconds":9.5,"p99Seconds":12}},` +
		`{"start":"2026-02-20T12:00:00Z","partial":true,"submitted":0,"succeeded":0,"retried":0,"dead":0,"canceled":0,"requeued":0,"open":120}]}`

	metrics = `{"at":"2026-02-20T12:00:00Z","statusCounts":{"created":1,"queued":2,"running":3,"retry":4,"succeeded":5000,"dead":6,"canceled":7},"byWorker":{},"attemptDistribution":{"0":3},"scheduledForRetry":4,` +
		`"recent":{"sinceMinutes":15,"submitted":100,"succeeded":90,"dead":1,"canceled":2,"failedAttempts":12,"requeued":0},"processedLastMinute":20,` +
		`"failuresByJobType":{"SEND_EMAIL":12},"avgDurationSecondsByJobType":{"SEND_EMAIL":0.0421,"SLEEP_JOB":5.01},"queues":[],"oldestSnapshotSeconds":0,"snapshotAgeTransactions":0}`

	dead = `{"deadLetters":[{"jobId":"` + firstID + `","jobType":"SEND_EMAIL","tenant":"acme","deadAt":"2026-02-20T11:56:48Z","attempts":8,"lastError":"mailbox full\n\u001b[2J"}]}`

	problems = `{"severity":"problem","checks":[{"name":"ledger","severity":"ok","summary":"Every job is on its list.","details":[]},` +
		`{"name":"unserved_types","severity":"warning","summary":"1 job type has no handler.","details":["OLD_JOB: 3 jobs"],"remedy":"Start a worker that has it."},` +
		`{"name":"snapshots","severity":"problem","summary":"Vacuum is held up.","details":[],"remedy":"End the transaction of pid 17."}]}`
	warnings = `{"severity":"warning","checks":[{"name":"unserved_types","severity":"warning","summary":"1 job type has no handler.","details":[]}]}`
)

// family is a tree of three generations.
var family = `{"jobs":[` + strings.Join([]string{
	relative(firstID, "", "IMPORT", "succeeded"), relative(secondID, firstID, "RESIZE", "running"), relative(thirdID, firstID, "MA\\u001b[31mIL", "dead"),
	relative("019c79a0-0000-7000-8000-000000000004", secondID, "RESIZE", "queued"), relative("019c79a0-0000-7000-8000-000000000005", secondID, "RESIZE", "retry"),
	relative("019c79a0-0000-7000-8000-000000000006", thirdID, "RESIZE", "canceled"),
}, ",") + `],"truncated":true}`

// relative is a job of a tree; the parent is empty for none.
func relative(id, parent, jobType string, state job.State) string {
	if parent != "" {
		parent = `"parentId":"` + parent + `",`
	}
	times := `"createdAt":"2026-02-20T11:56:00Z"`
	if state.Final() {
		times += ran
	}
	return `{"jobId":"` + id + `",` + parent + `"depth":0,"jobType":"` + jobType + `","status":"` + string(state.Status()) + `","state":"` + string(state) + `",` + times + `}`
}

// usual returns an API with an answer for every command.
func usual() *fake {
	return &fake{answers: map[string]string{
		"POST /jobs":                          jobJSON(firstID, "PENDING", ""),
		"GET /jobs/" + firstID:                jobJSON(firstID, "COMPLETED", ran+`,"result":{"text":"\u001b]0;x\u0007 `+"\u009b"+`"}`),
		"GET /jobs?limit=100":                 `{"jobs":[` + jobJSON(firstID, "COMPLETED", ran) + `,` + jobJSON(secondID, "RUNNING", during) + `]}`,
		"POST /jobs/" + firstID + "/cancel":   jobJSON(firstID, "CANCELED", ""),
		"POST /jobs/" + firstID + "/hold":     jobJSON(firstID, "PENDING", ""),
		"POST /jobs/" + firstID + "/release":  jobJSON(firstID, "PENDING", ""),
		"POST /jobs/" + firstID + "/requeue":  jobJSON(firstID, "PENDING", ""),
		"PATCH /jobs/" + firstID:              jobJSON(firstID, "PENDING", ""),
		"PATCH /jobs?limit=1000&state=queued": `{"count":12}`,
		"POST /jobs/" + secondID + "/cancel":  problem("409", `{"status":409,"detail":"the job's state does not allow this"}`),
		"POST /jobs/" + thirdID + "/cancel":   jobJSON(thirdID, "RUNNING", during),
		"GET /dead-letter?limit=100":          dead,
		"GET /dead-letter/groups": `{"groups":[{"jobType":"ECHO","errorCode":"smtp_451","fingerprint":"0123456789abcdef",` +
			`"message":"try # again","count":10000,"more":true,"firstDeadAt":"2026-02-20T09:00:00Z","lastDeadAt":"2026-02-20T09:29:00Z",` +
			`"versions":["v1","v2"],"sampleIds":[]}],"more":true}`,
		"POST /dead-letter/retry?limit=100":                   `{"count":1}`,
		"GET /job-types":                                      types,
		"GET /job-types/PRINT":                                oneType,
		"GET /job-types/PRINT/schema":                         `{"type":"object"}`,
		"GET /debug/config":                                   `{"settings":[{"key":"database.url","value":"xxxxx"},{"key":"worker.lease","value":"30s"},{"key":"plugins[0].path","value":"bin/a\u001b[31m"}]}`,
		"GET /debug/plugins":                                  `{"plugins":[` + mailHandler + `,` + idleHandler + `]}`,
		"POST /debug/plugins/mail/swap?force=true":            rolledBack,
		"POST /debug/plugins/mail/restart":                    promoted,
		"POST /debug/plugins/mail/disable":                    idleHandler,
		"POST /debug/plugins/mail/enable?force=true":          mailHandler,
		"GET /debug/workers":                                  workers,
		"GET /debug/queues":                                   queues,
		"GET /debug/jobs/" + firstID:                          detail,
		"GET /debug/jobs/" + secondID:                         running,
		"GET /debug/jobs/" + thirdID:                          queued,
		"GET /debug/jobs/" + firstID + "/logs":                logs,
		"GET /jobs/" + firstID + "/tree":                      family,
		"GET /jobs/" + firstID + "/tree?depth=2&root=true":    family,
		"GET /debug/jobs/" + firstID + "/logs?attempt=2":      logs,
		"GET /debug/jobs?limit=100&state=retrying&state=held": `{"jobs":[` + found + `]}`,
		"POST /debug/jobs/" + firstID + "/resubmit":           jobJSON(secondID, "PENDING", ""),
		"GET /debug/jobs/lookup?q=order+7&tenant=acme":        `{"jobs":[` + found + `],"more":true,"workflow":{"workflowId":"` + thirdID + `","tenant":"acme","state":"stuck","jobs":2,"remaining":1,"unsuccessful":0,"createdAt":"2026-02-20T11:50:00Z"}}`,
		"GET /metrics?sinceMinutes=5":                         metrics,
		"GET /debug/series?jobType=SEND_EMAIL&window=15m":     overTime,
		"GET /debug/doctor":                                   problems,
		"GET /jobs/" + secondID + "?wait=30s":                 jobJSON(secondID, "COMPLETED", ran),
	}}
}

// commands are all commands that print an answer of the usual API.
var commands = map[string]struct {
	args []string
	code int
}{
	"submit":             {args: []string{"submit", "SLEEP_JOB"}},
	"get":                {args: []string{"get", firstID}},
	"get-wait":           {args: []string{"get", secondID, "--wait"}},
	"list":               {args: []string{"list"}},
	"list-found":         {args: []string{"list", "--state", "retrying,held"}},
	"find":               {args: []string{"find", "order 7", "--tenant", "acme"}},
	"resubmit":           {args: []string{"resubmit", firstID, "--payload", `{"a": 1.0}`, "--tag", "x"}},
	"cancel":             {args: []string{"cancel", firstID}},
	"hold":               {args: []string{"hold", firstID}},
	"release":            {args: []string{"release", firstID}},
	"edit":               {args: []string{"edit", firstID, "--priority", "1"}},
	"edit-many":          {args: []string{"edit", "--state", "queued", "--priority", "1"}},
	"requeue":            {args: []string{"requeue", firstID}},
	"dead-letter-list":   {args: []string{"dead-letter", "list"}},
	"dead-letter-groups": {args: []string{"dead-letter", "groups"}},
	"dead-letter-retry":  {args: []string{"dead-letter", "retry"}},
	"job-types":          {args: []string{"job-types"}},
	"job-type":           {args: []string{"job-types", "PRINT"}},
	"job-type-schema":    {args: []string{"job-types", "PRINT", "--schema"}},
	"workers":            {args: []string{"workers"}},
	"config-show":        {args: []string{"config", "show"}},
	"plugins-list":       {args: []string{"plugins", "list"}},
	"plugins-swap":       {args: []string{"plugins", "swap", "mail", "--force"}, code: CodeFound},
	"plugins-restart":    {args: []string{"plugins", "restart", "mail"}},
	"plugins-disable":    {args: []string{"plugins", "disable", "mail"}},
	"plugins-enable":     {args: []string{"plugins", "enable", "mail", "--force"}},
	"queues":             {args: []string{"queues"}},
	"inspect":            {args: []string{"inspect", firstID}},
	"inspect-running":    {args: []string{"inspect", secondID}},
	"inspect-waiting":    {args: []string{"inspect", thirdID}},
	"tree":               {args: []string{"tree", firstID}},
	"tree-from-root":     {args: []string{"tree", firstID, "--root", "--depth", "2"}},
	"logs":               {args: []string{"logs", firstID}},
	"logs-of-one":        {args: []string{"logs", firstID, "--attempt", "2"}},
	"metrics":            {args: []string{"metrics"}},
	"series":             {args: []string{"series", "--window", "15m", "--type", "SEND_EMAIL"}},
	"doctor":             {args: []string{"doctor"}, code: CodeFound},
}

func codeOf(err error) int {
	var exit Exit
	if errors.As(err, &exit) {
		return exit.Code
	}
	if err != nil {
		return CodeFailed
	}
	return 0
}

func TestEveryCommandPrintsATable(t *testing.T) {
	for name, test := range commands {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := usual().run(t, test.args...)
			require.Equal(t, test.code, codeOf(err), err)
			golden(t, name, stdout+stderr)
			require.NotContains(t, stdout, "\x1b")
			require.NotContains(t, stdout, "\u009b")
			require.NotContains(t, stdout, "\x07")
		})
	}
}

func TestEveryCommandPrintsTheJSONOfTheAPI(t *testing.T) {
	for name, test := range commands {
		t.Run(name, func(t *testing.T) {
			f := usual()
			stdout, stderr, err := f.run(t, append(test.args, "--json")...)
			require.Equal(t, test.code, codeOf(err), err)
			require.Equal(t, f.answers[f.asked[len(f.asked)-1]]+"\n", stdout)
			require.Empty(t, stderr)
		})
	}
}

func TestTheColorFlagTurnsColorsOn(t *testing.T) {
	stdout, _, err := usual().run(t, "list", "--color=always")
	require.NoError(t, err)
	require.Contains(t, stdout, "\x1b[32mCOMPLETED\x1b[0m")
	stdout, _, err = usual().run(t, "list", "--color=auto")
	require.NoError(t, err)
	require.NotContains(t, stdout, "\x1b", "not a terminal")
	_, _, err = usual().run(t, "list", "--color=pink")
	require.ErrorAs(t, err, &UsageError{})
}

func TestInspectSaysThatPayloadsAreWithheld(t *testing.T) {
	f := usual()
	f.answers["GET /debug/jobs/"+thirdID] = strings.Replace(queued, `"payload":null`, `"payload":null,"payloadsWithheld":true`, 1)
	stdout, _, err := f.run(t, "inspect", thirdID)
	require.NoError(t, err)
	require.Contains(t, stdout, "the credentials lack the scope payloads")
	require.NotContains(t, stdout, "\nPAYLOAD")
}
